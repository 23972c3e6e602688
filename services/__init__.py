"""MAHE: idle PCs as one training cluster."""

__version__ = "0.1.0"
