"""One thread, one queue, one seed: the clock and the chance of a simulated cluster. Nothing here knows MAHE."""

import heapq
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import xxhash

LAST_KEPT = 50
WALL_MS = 1_700_000_000_000  # what the wall clock shows at first


class World:
    """Time goes from event to event. The same seed gives the same run, which `digest` proves."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now_ms = 0
        self.steps = 0
        self.jumped_ms = 0  # the wall clock, in all
        self.last: deque[tuple[int, str, Any]] = deque(maxlen=LAST_KEPT)
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._trace = xxhash.xxh3_128()

    def clock(self) -> int:
        """Monotonic, in ms; never 0, as on a real PC."""
        return 1_000_000 + self.now_ms

    def wall_ns(self) -> int:
        """The wall clock: it goes on like the other, and somebody may set it."""
        return (WALL_MS + self.now_ms + self.jumped_ms) * 1_000_000

    @contextmanager
    def on_the_wall(self) -> Iterator[None]:
        """Whoever asks `time` for the wall clock gets this one."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "time_ns", self.wall_ns)
            patch.setattr(time, "time", lambda: self.wall_ns() / 1e9)
            yield

    def after(self, wait_ms: float, action: Callable[[], None]) -> None:
        """Do this later. At one time, what was asked first is done first."""
        self._order += 1
        heapq.heappush(self._queue, (self.now_ms + max(0, int(wait_ms)), self._order, action))

    def run(self, until_ms: int) -> None:
        """All that happens up to then."""
        while self._queue and self._queue[0][0] <= until_ms:
            self.now_ms, _, action = heapq.heappop(self._queue)
            self.steps += 1
            action()
        self.now_ms = until_ms

    def note(self, who: str, what: Any) -> None:
        """Into the trace (text or bytes count for the digest) and the last events."""
        self.last.append((self.now_ms, who, what))
        self._trace.update(f"{self.now_ms} {who} ".encode())
        self._trace.update(what if isinstance(what, bytes) else str(what).encode())

    @property
    def digest(self) -> str:
        """Of everything that happened so far."""
        return self._trace.hexdigest()

    def tell_last(self) -> str:
        """The last events, one a line."""
        lines = []
        for at_ms, who, what in self.last:
            text = what.decode(errors="replace") if isinstance(what, bytes) else str(what)
            lines.append(f"{at_ms / 1000:12.3f} s  {who:<16} {text[:200]}")
        return "\n".join(lines)
