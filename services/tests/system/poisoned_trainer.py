"""The shipped trainer process, whose deltas are poison: the honest one times a factor. Run by poisoned_agent.

Residual, encoding and files are the shipped ones, so what arrives at the master is well-formed.
"""

import os
from dataclasses import replace

import numpy as np

from services.common.learning.examples import Dataset
from services.common.learning.inner import InnerOptimizer
from services.common.learning.local_steps import LocalResult, LocalTask, OnBase, OnStep, run_local_steps
from services.common.learning.models import Model
from services.common.learning.parameters import Floats
from services.worker.shell import trainer

VARIABLE = "MAHE_POISON"  # one of FACTORS
FACTORS = {"nan": float("nan"), "x-10": -10.0, "flip": -1.0}


def poisoned_local_steps(
    model: Model,
    optimizer: InnerOptimizer,
    anchor: Floats,
    dataset: Dataset,
    task: LocalTask,
    on_step: OnStep,
    on_base: OnBase | None = None,
) -> LocalResult:
    """In place of `run_local_steps`: the same work, and then the poison. The loss that it tells is the honest one."""
    honest = run_local_steps(model, optimizer, anchor, dataset, task, on_step, on_base)
    return replace(honest, delta=honest.delta * np.float32(FACTORS[os.environ[VARIABLE]]))


if __name__ == "__main__":
    trainer.main(poisoned_local_steps)
