"""MAHE: idle PCs as one training cluster."""

from services.common.protocol.limits import APP_VERSION as __version__  # noqa: N811

__all__ = ["__version__"]
