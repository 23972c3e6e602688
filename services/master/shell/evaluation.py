"""The master's side of the evaluator process. One evaluation runs, at most one waits, a newer one takes its place."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.common.host.children import Child
from services.master.core.events import EvalDone, EvalSkipped, Event

MODULE = "services.master.shell.evaluator"
RESTARTS_MAX = 3  # in a row; then evaluations are skipped with the reason, for REST_MS
REST_MS = 600_000
DEADLINE_MS = 300_000  # of one evaluation


@dataclass(frozen=True)
class _Job:
    run: str
    version: int
    line: dict[str, Any]


class Evaluation:
    """Used by the loop only. `lines` from the child come back through `on_line`, called in the loop."""

    def __init__(self, on_line: Callable[[dict[str, Any]], None]) -> None:
        self._on_line = on_line
        self._child: Child | None = None
        self._running: _Job | None = None
        self._waiting: _Job | None = None
        self._last: int | None = None  # until its MarkBest, if any, has surely been queued
        self._failures, self._failed_ms = 0, 0
        self._now_ms, self._asked_ms = 0, 0

    def warm(self) -> None:
        """Start the process ahead of the first question of a run."""
        self._failures = 0
        self._start()

    def tick(self, now_ms: int) -> None:
        """End a child that takes too long; its exit line says so to `take`. A rest makes failures forgotten."""
        self._now_ms = now_ms
        if self._running is not None and self._child is not None and now_ms - self._asked_ms >= DEADLINE_MS:
            self._asked_ms = now_ms
            self._child.kill()
        if self._failures and now_ms - self._failed_ms >= REST_MS:
            self._failures = 0

    def _start(self) -> None:
        if self._child is None:
            env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            self._child = Child(MODULE, env, self._on_line)

    def ask(self, run: str, version: int, path: Path, data: dict[str, Any], model: dict[str, Any]) -> list[Event]:
        """Evaluate this version when free; returns an EvalSkipped for the one it takes the place of."""
        line = {"version": version, "path": str(path), "data": data, "model": model}
        job = _Job(run, version, line)
        if self._running is None:
            return self._begin(job)
        skipped, self._waiting = self._waiting, job
        return [] if skipped is None else [_skip(skipped, "not evaluated: a newer version was ready")]

    def pinned(self) -> set[int]:
        """Versions whose checkpoint must stay until they are evaluated. Called by the aggregation thread."""
        last = self._last
        return {job.version for job in (self._running, self._waiting) if job is not None} | (
            set() if last is None else {last}
        )

    def take(self, line: dict[str, Any]) -> list[Event]:
        """A line from the child, in the loop: the result as an event, and the next evaluation begins."""
        if line["t"] != "exit" and not self._expects(line):
            return []  # a library's chatter, or the answer to a question that was given up
        job, self._running = self._running, None
        events: list[Event] = []
        self._last = job.version if job is not None else self._last
        if line["t"] == "exit":
            self.stop()  # closes our end of its pipes
            self._child = None
            self._failures += 1
            self._failed_ms = self._now_ms
        if line["t"] == "done" and job is not None and math.isfinite(line["loss"]):
            self._failures = 0
            events.append(EvalDone(job.run, job.version, line["loss"], line["accuracy"]))
        elif job is not None:
            reason = line.get("reason", "the evaluator ended" if line["t"] == "exit" else "the loss is not finite")
            events.append(_skip(job, f"not evaluated: {reason}"))
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            events += self._begin(waiting)
        return events

    def stop(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.stop()

    def _expects(self, line: dict[str, Any]) -> bool:
        if self._running is None or line.get("version") != self._running.version:
            return False
        return line["t"] == "failed" or (
            line["t"] == "done" and isinstance(line.get("loss"), float) and isinstance(line.get("accuracy"), float)
        )

    def _begin(self, job: _Job) -> list[Event]:
        if self._failures > RESTARTS_MAX:
            return [_skip(job, "not evaluated: the evaluator ends again and again; see the log")]
        self._start()
        self._running, self._asked_ms = job, self._now_ms
        if self._child is not None:
            self._child.send(job.line)
        return []


def _skip(job: _Job, reason: str) -> EvalSkipped:
    return EvalSkipped(job.run, job.version, reason)
