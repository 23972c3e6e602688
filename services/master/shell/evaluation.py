"""The master's side of the evaluator process. One evaluation runs, at most one waits, a newer one takes its place."""

import contextlib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from services.common.host.children import Child
from services.common.host.logs import Log
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


class Process(Protocol):
    """The evaluator process, as much of it as is used: `Child`, or the simulator's."""

    def send(self, line: Mapping[str, Any]) -> bool:
        """Ask; False when it is gone."""

    def kill(self) -> None:
        """End it at once; its exit line still comes."""

    def stop(self) -> None:
        """End it and wait."""


def evaluator(on_line: Callable[[dict[str, Any]], None], log: Log) -> Process:
    """Spawn the evaluator; OSError when this PC cannot."""
    return Child(MODULE, {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}, on_line, log)


class Evaluation:
    """Used by the loop only. What the process that `spawn` starts has to say comes back to `take`, in the loop."""

    def __init__(self, spawn: Callable[[], Process]) -> None:
        self._spawn = spawn
        self._child: Process | None = None
        self._running: _Job | None = None
        self._waiting: _Job | None = None
        self._last: int | None = None  # until its MarkBest, if any, has surely been queued
        self._failures, self._failed_ms = 0, 0
        self._now_ms = 0
        self._asked_ms: int | None = None  # None: since the last tick

    def warm(self) -> None:
        """Start the process ahead of the first question of a run."""
        self._failures = 0
        with contextlib.suppress(OSError):  # the first question tells
            self._start()

    def tick(self, now_ms: int) -> None:
        """End a child that takes too long; its exit line says so to `take`. A rest makes failures forgotten."""
        self._now_ms = now_ms
        if self._asked_ms is None:
            self._asked_ms = now_ms
        if self._running is not None and self._child is not None and now_ms - self._asked_ms >= DEADLINE_MS:
            self._asked_ms = None
            self._child.kill()
        if self._failures and now_ms - self._failed_ms >= REST_MS:
            self._failures = 0

    def _start(self) -> None:
        if self._child is None:
            self._child = self._spawn()

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
            events.append(_unmeasured(job, line))
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
        try:
            self._start()
        except OSError as error:
            self._failures += 1
            self._failed_ms = self._now_ms
            return [_skip(job, f"not evaluated: this PC cannot start the evaluator ({error.strerror or error})")]
        self._running, self._asked_ms = job, None
        if self._child is not None:
            self._child.send(job.line)
        return []


def _unmeasured(job: _Job, line: dict[str, Any]) -> EvalSkipped:
    if line["t"] == "done":
        return EvalSkipped(job.run, job.version, "the evaluation loss is not finite", not_finite=True)
    return _skip(job, f"not evaluated: {line.get('reason', 'the evaluator ended')}")


def _skip(job: _Job, reason: str) -> EvalSkipped:
    return EvalSkipped(job.run, job.version, reason)
