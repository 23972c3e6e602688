"""What the agent tells the trainer about its tasks, by lease: stop this one; the base of that one is here.

Told by the thread that reads the agent's lines, heeded by the one that computes, between two local steps.
"""

import threading
from typing import Any

CANCELLATIONS_KEPT = 16

Line = dict[str, Any]


class Orders:
    """A late cancellation is kept a while, for nothing; of bases only the last one counts."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._cancelled: dict[str, None] = {}
        self._base: tuple[str, Line] | None = None

    def cancel(self, lease: str) -> None:
        """Stop this lease, now or when its turn comes."""
        with self._changed:
            self._cancelled = dict.fromkeys([*self._cancelled, lease][-CANCELLATIONS_KEPT:])
            self._changed.notify()

    def give(self, lease: str) -> None:
        """This lease is to be done, after all perhaps."""
        with self._changed:
            self._cancelled.pop(lease, None)

    def rebase(self, lease: str, line: Line) -> None:
        """The base of this lease, which is ahead."""
        with self._changed:
            self._base = (lease, line)
            self._changed.notify()

    def is_cancelled(self, lease: str) -> bool:
        """Whether this lease is to stop."""
        return lease in self._cancelled

    def base(self, lease: str) -> Line | None:
        """Its base, once; None while it is not here."""
        if self._base is None:  # asked after each step
            return None
        with self._changed:
            return self._take(lease)

    def await_base(self, lease: str) -> Line | None:
        """Its base; None when the lease is to stop. Ends with the process when the agent is gone."""
        with self._changed:
            while (line := self._take(lease)) is None and not self.is_cancelled(lease):
                self._changed.wait()
            return line

    def _take(self, lease: str) -> Line | None:
        if self._base is None or self._base[0] != lease:
            return None
        line, self._base = self._base[1], None
        return line
