"""The shipped trainer process without local steps: a fixed random delta comes at once. Run by the agent.

All else is done as always: updates are followed and written, the delta is encoded with its residual, files are synced.
It does not give way to other programs, as those it is compared with do not.
"""

import os

import numpy as np

from bench.wire import times
from services.common.learning.examples import Dataset
from services.common.learning.inner import InnerOptimizer
from services.common.learning.local_steps import LocalResult, LocalTask, OnBase, OnStep
from services.common.learning.models import Model
from services.common.learning.parameters import Floats
from services.worker.shell import trainer
from services.worker.shell.task_files import TaskFiles

SIZE = 1e-3  # of an entry of the delta
_deltas: dict[tuple[int, int], Floats] = {}


def no_local_steps(
    model: Model,
    optimizer: InnerOptimizer,
    anchor: Floats,
    dataset: Dataset,
    task: LocalTask,
    on_step: OnStep,
    on_base: OnBase | None = None,
) -> LocalResult:
    """In place of `run_local_steps`: the same delta for the same shard, each round."""
    del model, optimizer, dataset
    if on_base is not None:
        on_base(True)
    key = (task.shard, len(anchor))
    if key not in _deltas:
        noise = np.random.default_rng(task.shard).standard_normal(len(anchor), dtype=np.float32)
        _deltas.clear()
        _deltas[key] = noise * np.float32(SIZE)
    on_step(task.k_steps, 1.0)
    return LocalResult(_deltas[key], 1.0, task.batch * task.k_steps, task.k_steps, 0, anchor)


def main() -> None:
    """The trainer with these local steps; they are timed as part of its `_run`."""
    trainer.give_way = lambda nice: None
    found = times.wanted("trainer")
    if found is not None:
        found.around(trainer, "follow", "encode", "bytes_digest")
        found.around(TaskFiles, "read_anchor", "read_updates", "write_anchor", "read_residual", "write_results")
        found.around(trainer.Trainer, "_run", "_is_finite", "train")
        found.around(os, "fsync")
    trainer.main(no_local_steps)


if __name__ == "__main__":
    main()
