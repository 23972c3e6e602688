"""When each version became durable, seen from outside: a thread looks at the run's folder for the rename that commits.

Depends on no service, so it also sees while the master is dead. Not for what a checkpoint holds (ledger.py).
"""

import itertools
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from services.master.shell.checkpoints import rounds_in

LOOK_EVERY_S = 0.02


class Watch:
    """`closings` grows by (monotonic time in s, version) for each new newest checkpoint."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.closings: list[tuple[float, int]] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ending.set()
        self._thread.join()

    @property
    def version(self) -> int:
        """The newest durable version; -1 before there is one."""
        return self.closings[-1][1] if self.closings else -1

    def wait_for(self, version: int, limit_s: float) -> float:
        """When this version was there; raises TimeoutError after `limit_s`."""
        deadline = time.monotonic() + limit_s
        while self.version < version:
            if time.monotonic() > deadline:
                raise TimeoutError(f"version {version} is not durable after {limit_s:.0f} s; newest is {self.version}")
            time.sleep(LOOK_EVERY_S / 2)
        return next(at for at, seen in self.closings if seen >= version)

    def _look(self) -> None:
        while not self._ending.wait(LOOK_EVERY_S):
            newest = max(rounds_in(self._folder), default=-1)
            if newest > self.version:
                self.closings.append((time.monotonic(), newest))


def first_after(closings: list[tuple[float, int]], moment: float) -> float | None:
    """How long after `moment` the next version became durable, in s; None when none did."""
    return next((at - moment for at, _ in closings if at >= moment), None)


def longest_gap(closings: list[tuple[float, int]], began: float, ended: float) -> float:
    """The longest time between two neighbours among `began`, the closings and `ended`, in s."""
    moments = [began, *(at for at, _ in closings if began <= at <= ended), ended]
    return max(after - before for before, after in itertools.pairwise(moments))
