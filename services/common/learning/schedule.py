"""The learning rate over a run, as a factor of `lr`, by position in the run: 0 at its begin, 1 at its end.

Not by a count of steps: a worker that joined late, one that takes other numbers of steps, and a unit that carries
nothing over all have the rate of the moment.
"""

import math
from dataclasses import dataclass

from services.common.learning.specification import Specification, choice, real

CONSTANT, COSINE = "constant", "cosine"
SCHEDULE_FIELDS = ("schedule", "warmup")
WARMUP_MAX = 0.5
WARMUP_FLOOR = 0.01
"""The factor of the very first step of a warm-up: small, but a step."""
COSINE_FLOOR = 0.1
"""The factor at the end of a cosine."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A shape, and the part of the run (0..0.5) in which the rate rises to `lr`."""

    shape: str = CONSTANT
    warmup: float = 0.0

    def factor(self, position: float) -> float:
        """The factor of `lr` at `position`, 0..1."""
        return lr_factor(self.shape, self.warmup, position)


def read_schedule(spec: Specification) -> Schedule:
    """From the fields `schedule` and `warmup` of an inner optimizer; SettingsError names a bad one."""
    shape = choice("inner optimizer", {"schedule": CONSTANT, **spec}, "schedule", (CONSTANT, COSINE))
    return Schedule(shape, real("warmup", spec.get("warmup", 0.0), 0.0, WARMUP_MAX))


def lr_factor(schedule: str, warmup: float, position: float) -> float:
    """The factor of `lr` at `position` (0..1) of the run; above 0, at most 1, and exactly 1 for a plain constant.

    Linear from 0.01 to 1 in the first `warmup` of the run (Goyal et al., arXiv 1706.02677, section 2.2); then constant,
    or half a cosine from 1 to 0.1 (Loshchilov & Hutter, ICLR 2017, eq. 5, without restarts).
    """
    assert 0 <= position <= 1, f"position {position} is not in the run; 0 to 1 is needed"
    if position < warmup:
        return WARMUP_FLOOR + (1 - WARMUP_FLOOR) * position / warmup
    if schedule == CONSTANT:
        return 1.0
    along = (position - warmup) / (1 - warmup)
    return COSINE_FLOOR + (1 - COSINE_FLOOR) * (1 + math.cos(math.pi * along)) / 2
