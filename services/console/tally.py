"""What the console has counted since it started: closed rounds with their samples, bytes and seconds, and its refusals.

The mirror forgets: its history is of one run, and not longer than HISTORY_MAX rounds. So a round is counted here as it
is told, once. Pure: no clock, no sockets. A count never goes down, whatever becomes of the master or its runs.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

CODES_MAX = 200  # of refusals; more than there are, so that no fault elsewhere makes the counts grow without end
CODE_REST = "OTHER"
BYTES_PER_PARAMETER = 4

Dict = dict[str, Any]


class Tally:
    """Sums over the rounds that were closed while this console looked on. `refusals`: answered problems by code."""

    def __init__(self) -> None:
        self.round_seconds: Counter[float] = Counter()  # how many rounds took so long; see SECONDS
        self.seconds = 0.0
        self.samples = 0
        self.delta_bytes = 0
        self.avoided_bytes = 0
        self.refusals: Counter[str] = Counter()
        self._looked = False
        self._term = 0
        self._run: str | None = None
        self._last = 0  # the newest round of that run which is counted, or was closed before we looked

    @property
    def rounds(self) -> int:
        """How many rounds are counted."""
        return self.round_seconds.total()

    def look(self, term: int, snapshot: Dict) -> None:
        """Count the rounds that are new in the history of the run, which is in order.

        What the first look finds was closed before this console started and is not counted. A term that goes back
        is another master: it may use the names of runs again.
        """
        run, history = snapshot.get("run") or {}, snapshot.get("history") or []
        if run.get("id") != self._run or term < self._term:
            self._run, self._last = run.get("id"), 0
        self._term = term
        rows = list(self._new(history))
        if rows:
            self._last = rows[0]["round"]
        if self._looked:
            for row in rows:
                self._count(row, run)
        self._looked = True

    def refuse(self, code: str) -> None:
        """A request was answered with this problem."""
        known = code in self.refusals or len(self.refusals) < CODES_MAX
        self.refusals[code if known else CODE_REST] += 1

    def _new(self, history: list[Dict]) -> Iterator[Dict]:
        """The rows that were not seen yet, newest first."""
        for row in reversed(history):
            if row["round"] <= self._last:
                return
            yield row

    def _count(self, row: Dict, run: Dict) -> None:
        seconds, sent = row.get("seconds", 0.0), row.get("bytes", 0)
        self.round_seconds[bucket_of(seconds)] += 1
        self.seconds += seconds
        self.samples += row.get("samples", 0)
        self.delta_bytes += sent
        per_step = (
            row.get("workers", 0) * (run.get("k_steps") or 0) * (run.get("n_parameters") or 0) * BYTES_PER_PARAMETER
        )
        self.avoided_bytes += max(0, per_step - sent)


SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0)
"""Upper bounds of the classes in which rounds are counted by their duration; the last class has none."""


def bucket_of(seconds: float) -> float:
    """The upper bound of the class that this duration falls in."""
    return next((bound for bound in SECONDS if seconds <= bound), float("inf"))
