"""The rule by which rounds are cut where the link is slow. Times in ms; pure arithmetic.

The master decides by it, the estimate foretells by it. Not for what was measured, nor for when it is decided.
"""

import math

SYNC_SHARE_MAX = 0.05  # of the local steps' time: an exchange that takes more is worth hiding
SYNC_NOTICED_MS = 100.0  # a shorter exchange is no reason for longer rounds: its rounds are short, too
STEPS_FOR_SYNC = 9.0  # blocking, workers train 90 % of the time
STEPS_FOR_SYNC_AHEAD = 1.05  # overlapped, they wait for nothing


def is_worth_hiding(sync_ms: float, steps_ms: float) -> bool:
    """Whether workers had better train on while deltas and updates travel."""
    return sync_ms > SYNC_SHARE_MAX * steps_ms


def steps_wanted(k_steps: int, sync_ms: float, step_ms: float, *, overlaps: bool) -> int:
    """Local steps that hide the exchange, or make little of it; never fewer than the `k_steps` asked for."""
    if sync_ms < SYNC_NOTICED_MS:
        return k_steps
    factor = STEPS_FOR_SYNC_AHEAD if overlaps else STEPS_FOR_SYNC
    return max(k_steps, math.ceil(factor * sync_ms / step_ms))
