"""The turns of both sides: the same numbers, batches and optimizer, on this process's one thread."""

import statistics
import time
from collections.abc import Callable
from itertools import cycle, islice, pairwise
from typing import Any

import numpy as np
import torch

from services.common.learning import Dataset, LocalTask, build_inner, run_local_steps
from services.common.learning.parameters import aligned_empty
from services.common.learning.perceptron import Perceptron

BATCH, EXAMPLES, CLASSES = 32, 4000, 10
WARM_UP_TURNS = 3

Turn = Callable[[], None]


def compare(widths: tuple[int, ...], spec: dict[str, Any], steps: int, turns: int) -> dict[str, float]:
    """Samples/s of both, and how they compare."""
    dataset = _dataset(widths[0])
    times = _medians(
        {"ours": _ours(widths, spec, steps, dataset), "torch": _torch(widths, spec, steps, dataset)}, turns
    )
    return {
        "samples_s": round(steps * BATCH / times["ours"], 1),
        "torch_samples_s": round(steps * BATCH / times["torch"], 1),
        "ratio": round(times["torch"] / times["ours"], 3),
    }


def products(widths: tuple[int, ...], steps: int, turns: int) -> dict[str, float]:
    """What the matrix products of one step take in NumPy and in torch, in µs, with nothing else between them.

    Each in its own layout: torch keeps a weight as (outputs, inputs). The layer of the inputs has no product back.
    """
    random = np.random.default_rng(2)
    ours: list[tuple[np.ndarray, ...]] = []
    theirs: list[tuple[torch.Tensor, ...]] = []
    for i, (inputs, outputs) in enumerate(pairwise(widths)):
        x, w, error = (_filled(random, *s) for s in ((BATCH, inputs), (inputs, outputs), (BATCH, outputs)))
        ours += [(x, w, aligned_empty(BATCH, outputs)), (x.T, error, aligned_empty(inputs, outputs))]
        tx, tw, te = torch.from_numpy(x), torch.from_numpy(np.ascontiguousarray(w.T)), torch.from_numpy(error)
        theirs += [(tx, tw.T, torch.empty(BATCH, outputs)), (te.T, tx, torch.empty(outputs, inputs))]
        if i:
            ours.append((error, w.T, aligned_empty(BATCH, inputs)))
            theirs.append((te, tw, torch.empty(BATCH, inputs)))

    def numpy_turn() -> None:
        for _ in range(steps):
            for a, b, out in ours:
                np.matmul(a, b, out=out)

    def torch_turn() -> None:
        for _ in range(steps):
            for a, b, out in theirs:
                torch.mm(a, b, out=out)

    times = _medians({"ours": numpy_turn, "torch": torch_turn}, turns)
    return {"us": round(times["ours"] / steps * 1e6, 1), "torch_us": round(times["torch"] / steps * 1e6, 1)}


def _ours(widths: tuple[int, ...], spec: dict[str, Any], steps: int, dataset: Dataset) -> Turn:
    """The shipped `run_local_steps`: with the batches it draws, a copy of the anchor and the delta at the end."""
    model = Perceptron(widths)
    optimizer, anchor = build_inner(spec, model.n_parameters), model.initial_parameters(1)
    task = LocalTask(seed=5, round=0, shard=0, ranges=((0, steps * BATCH),), batch=BATCH, k_steps=steps)

    def turn() -> None:
        run_local_steps(model, optimizer, anchor, dataset, task, lambda step, loss: False)

    return turn


def _torch(widths: tuple[int, ...], spec: dict[str, Any], steps: int, dataset: Dataset) -> Turn:
    """The loop that torch's tutorials show, the batch gathered by indices and the loss read in each step."""
    layers: list[torch.nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    optimizer = _torch_optimizer(model, spec)
    x, y = torch.tensor(dataset.x_train[:]), torch.tensor(dataset.y_train)

    def turn() -> None:
        for rows in torch.randperm(len(y))[: steps * BATCH].split(BATCH):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            loss.item()

    return turn


def _torch_optimizer(model: torch.nn.Module, spec: dict[str, Any]) -> torch.optim.Optimizer:
    if spec["name"] == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=spec["lr"])
    return torch.optim.SGD(model.parameters(), lr=spec["lr"], momentum=spec.get("momentum", 0.0))


def _dataset(inputs: int) -> Dataset:
    random = np.random.default_rng(1)
    x, y = _filled(random, EXAMPLES, inputs), random.integers(0, CLASSES, EXAMPLES)
    return Dataset("made up", x, y, x[:1], y[:1], CLASSES, digest="")


def _filled(random: np.random.Generator, *shape: int) -> np.ndarray:
    array = aligned_empty(*shape)
    random.standard_normal(dtype=np.float32, out=array)
    return array


def _medians(sides: dict[str, Turn], turns: int) -> dict[str, float]:
    """The median CPU seconds of a turn of each, taken in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _, turn in islice(cycle(sides.items()), WARM_UP_TURNS * len(sides)):
        turn()
    for name, turn in islice(cycle(sides.items()), turns * len(sides)):
        began = time.process_time_ns()
        turn()
        seconds[name].append((time.process_time_ns() - began) / 1e9)
    return {name: statistics.median(values) for name, values in seconds.items()}
