"""Numbers on their way into JSON, which has no NaN."""

import math


def finite_or_none(value: float) -> float | None:
    """The number, or None when it is NaN or infinite."""
    return value if math.isfinite(value) else None
