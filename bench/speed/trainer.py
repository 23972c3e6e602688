"""The shipped trainer with `mnist10k`, which notes when the local steps of a round began and ended. Run by the agent.

One JSON object a round, in the file `steps_file`, there before the delta leaves; times are CLOCK_MONOTONIC.
"""

import json
import os
import time
from pathlib import Path

from bench.speed import mnist
from services.common.learning.examples import Dataset
from services.common.learning.inner import InnerOptimizer
from services.common.learning.local_steps import LocalResult, LocalTask, OnBase, OnStep, run_local_steps
from services.common.learning.models import Model
from services.common.learning.parameters import Floats
from services.worker.shell import trainer

FOLDER = "MAHE_BENCH_STEPS"


def steps_file(folder: Path, worker: str) -> Path:
    """Where the worker of this name writes."""
    return folder / f"{worker}.steps"


def noted(
    model: Model,
    optimizer: InnerOptimizer,
    anchor: Floats,
    dataset: Dataset,
    task: LocalTask,
    on_step: OnStep,
    on_base: OnBase | None = None,
) -> LocalResult:
    """`run_local_steps`, with a line about it. The time in which it waits for its base is left out at the end."""
    waited_s = 0.0

    def timed(all_done: bool) -> Floats | None:
        nonlocal waited_s
        asked = time.monotonic()
        base = on_base(all_done) if on_base is not None else None
        waited_s += time.monotonic() - asked
        return base

    began = time.monotonic()
    result = run_local_steps(model, optimizer, anchor, dataset, task, on_step, timed if on_base is not None else None)
    ended = time.monotonic() - waited_s
    row = {"round": task.round, "samples": result.samples, "began_s": began, "ended_s": ended}
    with steps_file(Path(os.environ[FOLDER]), os.environ["MAHE_WORKER_NAME"]).open("a") as file:
        file.write(json.dumps(row) + "\n")
    return result


if __name__ == "__main__":
    mnist.register()
    trainer.main(noted)
