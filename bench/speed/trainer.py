"""The shipped trainer with `mnist10k`, which notes when the local steps of a round began and ended. Run by the agent.

One JSON object a round, in the file `steps_file`, there before the delta leaves; times are CLOCK_MONOTONIC.
"""

import json
import os
import time
from pathlib import Path

from bench.speed import mnist
from services.common.learning.datasets import Dataset
from services.common.learning.inner import InnerOptimizer
from services.common.learning.local_steps import LocalResult, LocalTask, OnStep, run_local_steps
from services.common.learning.models import Model
from services.common.learning.parameters import Floats
from services.worker.shell import trainer

FOLDER = "MAHE_BENCH_STEPS"


def steps_file(folder: Path, worker: str) -> Path:
    """Where the worker of this name writes."""
    return folder / f"{worker}.steps"


def noted(
    model: Model, optimizer: InnerOptimizer, anchor: Floats, dataset: Dataset, task: LocalTask, on_step: OnStep
) -> LocalResult:
    """`run_local_steps`, with a line about it."""
    began = time.monotonic()
    result = run_local_steps(model, optimizer, anchor, dataset, task, on_step)
    row = {"round": task.round, "samples": result.samples, "began_s": began, "ended_s": time.monotonic()}
    with steps_file(Path(os.environ[FOLDER]), os.environ["MAHE_WORKER_NAME"]).open("a") as file:
        file.write(json.dumps(row) + "\n")
    return result


if __name__ == "__main__":
    mnist.register()
    trainer.run_local_steps = noted
    trainer.main()
