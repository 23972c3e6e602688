"""When named functions of a process ran and how long, one JSON object a line. For finding out where a round goes.

`at_ms` is CLOCK_MONOTONIC, the same in all processes of this PC and in the master's journal.
"""

import functools
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

VARIABLE = "MAHE_BENCH_TIMES"  # the folder


class Times:
    """Writes when WRITE_ROWS are there and at `flush`; a process that is killed loses the last few."""

    WRITE_ROWS = 64

    def __init__(self, folder: Path, who: str) -> None:
        self._path = folder / f"{who}.{os.getpid()}"
        self._rows: list[str] = []
        self._lock = threading.Lock()

    def around(self, owner: Any, *names: str) -> None:
        """From now on each call of these functions, which take no argument by name, is a row."""
        for name in names:
            self._wrap(owner, name)

    def flush(self) -> None:
        """Write what is in memory."""
        rows, self._rows = self._rows, []
        with self._path.open("a") as file:
            file.writelines(rows)

    def _wrap(self, owner: Any, name: str) -> None:
        work = getattr(owner, name)

        @functools.wraps(work)
        def timed(*given: Any) -> Any:
            began, used = time.monotonic_ns(), time.thread_time_ns()
            try:
                return work(*given)
            finally:
                self._add(name, began, time.monotonic_ns() - began, time.thread_time_ns() - used)

        setattr(owner, name, timed)

    def _add(self, name: str, at_ns: int, took_ns: int, used_ns: int) -> None:
        row = {"name": name, "at_ms": _ms(at_ns), "ms": _ms(took_ns), "cpu_ms": _ms(used_ns)}
        with self._lock:
            self._rows.append(json.dumps(row) + "\n")
            if len(self._rows) >= self.WRITE_ROWS:
                self.flush()


def _ms(ns: int) -> float:
    return round(ns / 1e6, 3)


def wanted(who: str) -> Times | None:
    """The times of this process, if somebody asked for them; they go to the file `who`.<process id>."""
    folder = os.environ.get(VARIABLE)
    return Times(Path(folder), who) if folder else None
