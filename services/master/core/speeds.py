"""How fast each worker trains: what its tasks show, kept comparable. Not for how work is cut by it: see `policy`.

A score from the micro-benchmark is the first guess, maybe of a PC that was busy at that moment; what a task took
replaces it. Scores and speeds are samples/s of two models, so only their ratios are carried from one to the other.
"""

import statistics
from collections.abc import Sequence

from services.common.protocol.messages import DeltaBegin, RunSpec
from services.master.core.state import Run, Worker

SPEED_WEIGHT = 0.5  # of the newest measurement in the exponential average
CHANGE = 1.25  # a speed that differs by more is no noise: its PC got busy, or idle
COMPUTE_MS_MIN = 100  # shorter local steps say little of a PC: shares would wander with the noise


def measure(worker: Worker, begin: DeltaBegin) -> None:
    """Take a task that is done into its worker's speed; short ones when they make `COMPUTE_MS_MIN` together."""
    if begin.samples <= 0:
        return
    if begin.compute_ms >= COMPUTE_MS_MIN:
        speed = _of_task(begin)
    else:
        worker.gathered_samples += begin.samples
        worker.gathered_ms += begin.compute_ms
        if worker.gathered_ms < COMPUTE_MS_MIN:
            return
        speed = 1000.0 * worker.gathered_samples / worker.gathered_ms
    worker.gathered_samples, worker.gathered_ms = 0, 0.0
    if worker.measured and not _differ(speed, worker.samples_per_s):
        speed = SPEED_WEIGHT * speed + (1 - SPEED_WEIGHT) * worker.samples_per_s
    worker.samples_per_s, worker.measured = speed, True


def comparable(workers: Sequence[Worker]) -> list[float]:
    """Speeds of these workers in samples/s of the present run. Of one that was not measured in it by its score."""
    samples_per_score = _samples_per_score(workers)
    return [one.samples_per_s if one.measured else one.score * samples_per_score for one in workers]


def begin_run(workers: Sequence[Worker], before: Run | None, spec: RunSpec) -> None:
    """Samples/s of another model mean nothing, their ratios do: they are the scores with which the new run begins."""
    if before is None or _workload(before.spec) == _workload(spec):
        return
    samples_per_score = _samples_per_score(workers)
    for worker in workers:
        worker.gathered_samples, worker.gathered_ms = 0, 0.0
        if worker.measured:
            worker.score = worker.samples_per_s = worker.samples_per_s / samples_per_score
            worker.measured = False


def _samples_per_score(workers: Sequence[Worker]) -> float:
    return statistics.median([one.samples_per_s / one.score for one in workers if one.measured] or [1.0])


def _workload(spec: RunSpec) -> tuple[object, ...]:
    return spec.model, spec.dataset, spec.batch


def _of_task(begin: DeltaBegin) -> float:
    speed = 1000.0 * begin.samples / begin.compute_ms
    if not begin.steps or begin.late_ms is None or begin.late_ms < COMPUTE_MS_MIN:
        return speed
    late = (begin.steps - begin.steps // 2) / begin.steps
    now = 1000.0 * late * begin.samples / begin.late_ms
    return now if _differ(now, speed) else speed  # it changed in mid-round: what comes goes on as the end did


def _differ(speed: float, other: float) -> bool:
    return not 1 / CHANGE <= speed / other <= CHANGE
