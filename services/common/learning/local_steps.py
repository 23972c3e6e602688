"""A worker's part of one round: K mini-batch steps from the anchor, and the delta they make.

Pure numbers: no files, no clock, no messages. The trainer process wraps it; the simulator calls it directly.
The sign is written here and nowhere else: delta = anchor - local, the outer optimizer's gradient.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

from services.common.kernels import reduce_add
from services.common.learning.examples import Dataset
from services.common.learning.inner import InnerOptimizer
from services.common.learning.models import Model
from services.common.learning.parameters import Floats, aligned_empty
from services.common.learning.shards import Range, batches, indices

OnStep = Callable[[int, float], bool]
"""(steps done, that batch's mean loss) -> True to cancel."""
OnBase = Callable[[bool], Floats | None]
"""(all steps are done) -> the base if it came meanwhile, else None; when all are done it must come."""


class Cancelled(Exception):
    """`on_step` asked to stop; there is no delta."""


@dataclass(frozen=True, slots=True)
class LocalTask:
    """What a worker is asked to do in one round."""

    seed: int
    round: int
    shard: int
    ranges: tuple[Range, ...]
    """Positions in the stream of training examples; at least one example in all."""
    batch: int
    k_steps: int
    delta_scale: float = 1.0
    """K / K_i when this worker takes K_i steps in place of K (FedNova: Wang et al., NeurIPS 2020, eq. 8), else 1."""
    begin: float = 0.0
    """Position in the run before the first step, 0..1: round / rounds, with rounds counted from 0."""
    end: float = 0.0
    """Position after the last step, `begin`..1."""

    def position(self, step: int) -> float:
        """Where step 1..k_steps begins: its learning rate is that of this position."""
        return self.begin + (self.end - self.begin) * (step - 1) / self.k_steps


@dataclass(frozen=True, slots=True, eq=False)
class LocalResult:
    """What came of it."""

    delta: Floats
    """float32[n], owned by the receiver."""
    loss: float
    """Mean over the samples of all steps, each at the parameters before its step; without the term of FedProx."""
    samples: int
    """Samples processed; examples count again when the shard is cycled."""
    steps: int
    n_correct: int
    """Of `samples`, before each step."""
    local: Floats
    """float32[n], owned by the receiver: the parameters after the last step."""


LocalSteps = Callable[[Model, InnerOptimizer, Floats, Dataset, LocalTask, OnStep, OnBase | None], LocalResult]
"""`run_local_steps`, or what takes its place."""


def run_local_steps(
    model: Model,
    optimizer: InnerOptimizer,
    anchor: Floats,
    dataset: Dataset,
    task: LocalTask,
    on_step: OnStep,
    on_base: OnBase | None = None,
) -> LocalResult:
    """Takes `task.k_steps` steps over the shard's batches, again from the first when they run out.

    `anchor` (float32[n]) is only read; `optimizer` keeps its state. Raises `Cancelled` when `on_step` returns True.
    With `optimizer.prox` = mu > 0 the loss stepped on is F(local) + mu / 2 * |local - anchor|^2 (FedProx: Li et al.,
    MLSys 2020, eq. 2).
    `on_base` is for steps that begin before their base is made: from `anchor`, where the round before ended. The base
    takes the anchor's place when it comes, and local moves along: local <- base + (local - anchor). Nothing is mixed,
    as it is in Streaming DiLoCo (arXiv:2501.18512): what was learnt since is kept whole, and counts once.
    A run that diverges gives a loss and a delta that are not finite, without a warning: the receiver refuses those.
    """
    assert 0 <= task.begin <= task.end <= 1, f"positions {task.begin} to {task.end}; 0 <= begin <= end <= 1 is needed"
    held = indices(task.seed, len(dataset.y_train), task.ranges)
    assert len(held), f"shard {task.shard} of round {task.round} is empty"
    shard_batches = list(batches(task.seed, task.round, task.shard, held, task.batch))
    local = aligned_empty(len(anchor))
    local[:] = anchor
    lr_scale = 1.0

    def take(start: int, gradient: Floats) -> None:
        part = slice(start, start + len(gradient))
        if optimizer.prox:
            _add_prox(gradient, optimizer.prox, local[part], anchor[part])
        optimizer.step(local[part], gradient, lr_scale, start)

    loss_sum, samples, n_correct = 0.0, 0, 0
    for step, rows in enumerate(islice(cycle(shard_batches), task.k_steps), start=1):
        if on_base is not None and (base := on_base(False)) is not None:
            anchor, on_base = _rebase(local, anchor, base), None
        lr_scale = optimizer.schedule.factor(task.position(step))
        loss, batch_correct = model.gradient_in_parts(local, dataset.x_train[rows], dataset.y_train[rows], take)
        loss_sum += loss * len(rows)
        samples += len(rows)
        n_correct += batch_correct
        if on_step(step, loss):
            raise Cancelled(f"cancelled after {step} of {task.k_steps} steps")
    if on_base is not None:
        base = on_base(True)
        assert base is not None, "without its base there is no delta"
        anchor = _rebase(local, anchor, base)
    with np.errstate(over="ignore", invalid="ignore"):
        delta = np.subtract(anchor, local)
        if task.delta_scale != 1.0:
            delta *= np.float32(task.delta_scale)
    return LocalResult(delta, loss_sum / samples, samples, task.k_steps, n_correct, local)


@np.errstate(over="ignore", invalid="ignore")
def _rebase(local: Floats, anchor: Floats, base: Floats) -> Floats:
    """local <- base + (local - anchor), in place; returns the base, the anchor from now on."""
    np.subtract(local, anchor, out=local)
    np.add(local, base, out=local)
    return base


@np.errstate(over="ignore", invalid="ignore")
def _add_prox(gradient: Floats, mu: float, local: Floats, anchor: Floats) -> None:
    """gradient += mu * (local - anchor), in place."""
    reduce_add(gradient, local - anchor, mu)
