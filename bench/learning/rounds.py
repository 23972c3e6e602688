"""Rounds in this process, by the shipped pieces: local steps, encodings with residuals, fold, clip limit, outer step.

Not a simulator of networks or faults: what is looked at is only what is learnt, by which rule and in how many bytes.
"""

import statistics
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from services.common.learning import (
    Accumulator,
    Dataset,
    Floats,
    LocalTask,
    apply_update,
    build_inner,
    build_model,
    build_outer,
    coordinate_median,
    run_local_steps,
    trimmed_mean,
)
from services.common.learning.encodings import check, decode, encode, examine
from services.common.protocol.encodings import Encoding, down_encoding, encoded_bytes
from services.master.core import clipping, policy
from services.tests.system.poisoned_trainer import FACTORS

Change = dict[str, Any]


@dataclass(frozen=True)
class Arm:
    """One way to train. `attack`: what the first two workers make of their deltas: "", or one of FACTORS."""

    workers: int = 4
    k_steps: int = 10
    batch: int = 32
    rounds: int = 30
    encoding: Encoding = "fp32"
    inner: Change = field(default_factory=lambda: {"name": "sgd", "lr": 0.1})
    outer: Change = field(default_factory=lambda: {"name": "fedavg"})
    model: Change = field(default_factory=lambda: {"family": "mlp", "hidden": [64, 64]})
    aggregator: str = "clip"
    clip: float = 1.0
    trim: int = 2
    attack: str = ""
    by_label: bool = False
    seed: int = 1


@dataclass
class Learnt:
    """What came of it, on the test examples; bytes are one worker's, up and down."""

    loss: float
    accuracy: float
    up_bytes: int
    down_bytes: int
    clipped: Counter[int] = field(default_factory=Counter)  # rounds, by worker
    refused: Counter[int] = field(default_factory=Counter)


def train(dataset: Dataset, arm: Arm) -> Learnt:
    """All rounds of an arm."""
    model = build_model(arm.model, dataset.x_train.shape[1], dataset.classes)
    parameters = model.initial_parameters(arm.seed)
    n = len(parameters)
    outer = build_outer(arm.outer, n)
    parts = [_part(dataset, arm, worker) for worker in range(arm.workers)]
    optimizers = [build_inner(arm.inner, n) for _ in parts]
    owed = [np.zeros(n, np.float32) for _ in parts]
    master_owes = np.zeros(n, np.float32)
    medians: list[float] = []
    down = down_encoding(arm.encoding)
    learnt = Learnt(0.0, 0.0, arm.rounds * encoded_bytes(arm.encoding, n), arm.rounds * encoded_bytes(down, n))
    for number in range(1, arm.rounds + 1):
        deltas = {}
        for worker, part in enumerate(parts):
            task = _task(arm, number, worker)
            delta = run_local_steps(model, optimizers[worker], parameters, part, task, lambda *_: False).delta
            encoded = encode(arm.encoding, _attacked(arm, worker, delta), owed[worker])
            if check(arm.encoding, encoded, n):
                learnt.refused[worker] += 1
            else:
                deltas[worker] = encoded
        if not deltas:
            return _diverged(learnt, dataset)
        norms = {worker: examine(arm.encoding, one, n).sum_squares ** 0.5 for worker, one in deltas.items()}
        limit = policy.clip_limit(medians or list(norms.values()), arm.clip) if arm.aggregator == "clip" else None
        medians = [*medians, statistics.median(norms.values())][-policy.ROUNDS_REMEMBERED :]
        mean = _together(arm, n, {worker: (deltas[worker], norms[worker]) for worker in deltas}, limit, learnt)
        update = decode(down, encode(down, outer.update(mean), master_owes), n)
        parameters = parameters.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            apply_update(parameters, update)
        if not np.isfinite(parameters).all():
            return _diverged(learnt, dataset)
    learnt.loss, learnt.accuracy = model.evaluate(parameters, dataset.x_test, dataset.y_test)
    return learnt


def _diverged(learnt: Learnt, dataset: Dataset) -> Learnt:
    learnt.loss, learnt.accuracy = float("nan"), 1 / dataset.classes
    return learnt


def _together(arm: Arm, n: int, deltas: dict[int, tuple[Any, float]], limit: float | None, learnt: Learnt) -> Floats:
    if arm.aggregator in ("median", "trimmed"):
        stack = np.stack([decode(arm.encoding, encoded, n) for encoded, _ in deltas.values()])
        trim = min(arm.trim, (len(stack) - 1) // 2)
        return coordinate_median(stack) if arm.aggregator == "median" else trimmed_mean(stack, trim)
    total = Accumulator(n, 2.0**20)
    for worker, (encoded, norm) in deltas.items():
        clip = policy.clip_factor(norm, limit)
        learnt.clipped[worker] += clip < clipping.TOLD_BELOW
        total.fold_encoded(arm.encoding, encoded, 1 / arm.workers, clip)
    return total.mean(len(deltas) / arm.workers)


def _attacked(arm: Arm, worker: int, delta: Floats) -> Floats:
    if worker >= 2 or not arm.attack:
        return delta
    return delta * np.float32(FACTORS[arm.attack])


def _part(dataset: Dataset, arm: Arm, worker: int) -> Dataset:
    """What a worker sees: all, a shard of the stream at a time; or sorted by label, a piece of its own."""
    if not arm.by_label:
        return dataset
    order = np.argsort(dataset.y_train, kind="stable")
    own = np.array_split(order, arm.workers)[worker]
    x, y = np.ascontiguousarray(dataset.x_train[own]), dataset.y_train[own]
    return Dataset(dataset.name, x, y, dataset.x_test, dataset.y_test, dataset.classes, dataset.digest)


def _task(arm: Arm, number: int, worker: int) -> LocalTask:
    samples = arm.k_steps * arm.batch
    at = number - 1 if arm.by_label else (number - 1) * arm.workers + worker
    ranges = ((at * samples, (at + 1) * samples),)
    begin, end = (number - 1) / arm.rounds, number / arm.rounds
    return LocalTask(arm.seed, number, worker, ranges, arm.batch, arm.k_steps, begin=begin, end=end)
