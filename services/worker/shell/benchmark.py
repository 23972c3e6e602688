"""How fast this PC trains, in samples/s: a fixed small model on made-up numbers, for a moment. For shard sizes only."""

import time

import numpy as np

from services.common.learning.inner import build_inner
from services.common.learning.models import build_model
from services.common.learning.parameters import Floats
from services.common.learning.speed import BENCHMARK_BATCH as BATCH
from services.common.learning.speed import BENCHMARK_CLASSES as CLASSES
from services.common.learning.speed import BENCHMARK_INPUTS as INPUTS
from services.common.learning.speed import BENCHMARK_MODEL

WARM_UP_STEPS = 5
DURATION_S = 0.3


def measure(duration_s: float = DURATION_S) -> float:
    """Samples per second of single local steps; more than 0."""
    model = build_model(BENCHMARK_MODEL, INPUTS, CLASSES)
    optimizer = build_inner({"name": "sgd", "lr": 0.01}, model.n_parameters)
    parameters = model.initial_parameters(0)
    x = np.linspace(0, 1, BATCH * INPUTS, dtype=np.float32).reshape(BATCH, INPUTS)
    y = np.arange(BATCH, dtype=np.int64) % CLASSES

    def take(start: int, gradient: Floats) -> None:
        optimizer.step(parameters[start : start + len(gradient)], gradient, start=start)

    def step() -> None:
        model.gradient_in_parts(parameters, x, y, take)

    for _ in range(WARM_UP_STEPS):
        step()
    steps, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < duration_s or not steps:
        step()
        steps += 1
    return steps * BATCH / elapsed if elapsed > 0 else 1.0
