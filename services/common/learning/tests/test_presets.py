"""Each preset learns, trained by two workers as a run is: encoding, residuals, schedule, outer optimizer."""

from typing import Any

import numpy as np
import pytest

from services.common.learning import (
    Accumulator,
    LocalTask,
    apply_update,
    build_inner,
    build_model,
    build_outer,
    catalog,
    load,
    run_local_steps,
)
from services.common.learning.encodings import decode, encode
from services.common.learning.outer import warnings_of
from services.common.protocol.encodings import down_encoding
from services.common.protocol.presets import LEARNING_RATES, PRESETS, fill_in
from services.common.protocol.spec import RunSpec

WORKERS = 2
BOUND = 2.0**10
ENTRIES: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in catalog()}
LEAST = {"digits": 0.95, "gauss3": 0.95, "rings4": 0.97, "spiral3": 0.98}
NOISE = 0.005  # two of the 400 examples held out


def never(_step: int, _loss: float) -> bool:
    return False


def spec_of(preset: str, dataset: str, **given: Any) -> RunSpec:
    filled = fill_in({"dataset": dataset, **given}, PRESETS[preset], ENTRIES[dataset]["recommended"])
    return RunSpec.model_validate(filled)


def accuracy(spec: RunSpec) -> float:
    """Of the last version, on the examples held out."""
    entry = ENTRIES[spec.dataset]
    dataset, model = load(entry["descriptor"]), build_model(spec.model, entry["dimensions"], entry["classes"])
    n, down = model.n_parameters, down_encoding(spec.encoding)
    params = model.initial_parameters(spec.seed)
    outer, accumulator = build_outer(spec.outer, n), Accumulator(n, BOUND)
    residuals, owed = [np.zeros(n, np.float32) for _ in range(WORKERS)], np.zeros(n, np.float32)
    cursor, held = 0, spec.k_steps * spec.batch
    for round_ in range(spec.rounds):
        accumulator.reset()
        for shard in range(WORKERS):
            span = round_ / spec.rounds, (round_ + 1) / spec.rounds
            ranges = ((cursor, cursor + held),)
            task = LocalTask(spec.seed, round_, shard, ranges, spec.batch, spec.k_steps, 1.0, *span)
            cursor += held
            inner = build_inner(spec.inner, n)
            result = run_local_steps(model, inner, params, dataset, task, never)
            sent = encode(spec.encoding, result.delta, residuals[shard])
            accumulator.fold(decode(spec.encoding, sent, n), 1 / WORKERS, 1.0)
        update = outer.update(accumulator.mean(accumulator.folded_weight))
        apply_update(params, decode(down, encode(down, update, owed), n))
    return model.evaluate(params, dataset.x_test, dataset.y_test)[1]


@pytest.mark.parametrize(
    ("preset", "dataset"),
    [
        *(("quick", name) for name in LEAST),
        *(("standard", name) for name in LEAST),
        *(("long", name) for name in ("gauss3", "spiral3")),  # the others take the longest
    ],
)
def test_each_preset_learns(preset: str, dataset: str) -> None:
    assert accuracy(spec_of(preset, dataset)) >= LEAST[dataset]


@pytest.mark.parametrize("dataset", LEAST)
def test_thorough_is_not_worse_than_quick(dataset: str) -> None:
    assert accuracy(spec_of("thorough", dataset)) >= accuracy(spec_of("quick", dataset)) - NOISE


@pytest.mark.parametrize("inner", LEARNING_RATES)
def test_an_inner_optimizer_without_a_rate_gets_one_that_works(inner: str) -> None:
    assert accuracy(spec_of("quick", "digits", inner={"name": inner})) >= 0.9


@pytest.mark.parametrize("dataset", LEAST)
@pytest.mark.parametrize("preset", PRESETS)
def test_no_preset_needs_a_warning(preset: str, dataset: str) -> None:
    spec = spec_of(preset, dataset)
    assert warnings_of(spec.outer, spec.rounds) == []
