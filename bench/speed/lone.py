"""One PC without a cluster: local steps, again and again. What a second PC must beat.

`python -m bench.speed.lone` is the process, `measure` starts it.
"""

import signal
import statistics
import time
from typing import Any

from bench.speed import mnist, trial
from bench.speed.arms import Arm, spec_of
from services.common.learning import LocalTask, apply_update, build_inner, build_model, describe, load, run_local_steps

LIMIT_S = 600.0


def measure(arm: Arm, cores: float, rounds: int) -> float:
    """Samples per second: the median over blocks of k_steps steps."""
    rows = trial.beside("bench.speed.lone", [{"arm": arm, "rounds": rounds}], cores, None, LIMIT_S)
    return statistics.median(float(row["samples"] / row["seconds"]) for row in rows[1:])


def train(arm: Arm, blocks: int) -> list[dict[str, Any]]:
    """Samples and seconds of each block, as a round's local steps and its update would be."""
    spec = spec_of(arm, 1)
    dataset = load(describe(spec.dataset))
    model = build_model(spec.model, dataset.x_train.shape[1], dataset.classes)
    optimizer = build_inner(spec.inner, model.n_parameters)
    parameters = model.initial_parameters(spec.seed)
    samples = spec.k_steps * spec.batch
    rows = []
    for block in range(blocks):
        began = time.monotonic()
        ranges = ((block * samples, (block + 1) * samples),)
        task = LocalTask(spec.seed, block + 1, 0, ranges, spec.batch, spec.k_steps)
        result = run_local_steps(model, optimizer, parameters, dataset, task, lambda step, loss: False)
        apply_update(parameters, result.delta)
        rows.append({"samples": result.samples, "seconds": time.monotonic() - began})
    return rows


if __name__ == "__main__":
    mnist.register()
    told = trial.job()
    trial.answer(told, train(told["arm"], told["rounds"] + 1))
    signal.pause()
