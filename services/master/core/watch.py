"""What a run counts to know when to stop or to go back: the time it was RUNNING, and evaluations that were no better.

Only counts; `stopping` and `reverting` draw the conclusions. After a restart the evaluations are noted once more from
the rows of the rounds, and the time comes from the checkpoint's meta.
"""

from dataclasses import dataclass

IMPROVEMENT_MIN = 0.001  # relative: a loss that fell by less than a thousandth is no better
FAR_FACTOR, FAR_MARGIN = 3.0, 2.0
"""A loss above 3 x the best + 2 is far. As bad as guessing among seven classes and three times the best besides:
digits under momentum 0.9 inside and outside, which overshoots by 12 x its best, stays below."""
FAR_EVALS_MAX = 2  # in a row: one alone may be one bad round, which the next one mends


@dataclass
class Watch:
    """One run's counts."""

    running_ms: int = 0
    counted_ms: int = 0  # the time up to which `running_ms` is counted
    loss: float | None = None  # the last that was better
    waited: int = 0  # evaluations since, none of them better
    far: int = 0  # evaluations in a row with a loss far above it

    def count_time(self, now_ms: int, gap_ms_max: int, *, running: bool) -> None:
        """Up to now. A longer gap is a PC that slept: it counts for `gap_ms_max`."""
        gap_ms, self.counted_ms = now_ms - self.counted_ms, now_ms
        self.running_ms += min(gap_ms, gap_ms_max) if running else 0

    def note(self, loss: float, *, counts: bool) -> None:
        """An evaluation; one that does not count (of a version before the run went back) can only be better."""
        if self.loss is None or loss < self.loss * (1 - IMPROVEMENT_MIN):
            self.loss, self.waited, self.far = loss, 0, 0
        elif counts:
            self.waited += 1
            self.far = self.far + 1 if loss > FAR_FACTOR * self.loss + FAR_MARGIN else 0

    def begin_again(self) -> None:
        """The run went back: what it was doing is forgotten, the best is not."""
        self.waited = self.far = 0
