"""The catalog's recommended settings, run as two simulated workers with FedAvg, reach the accuracy they promise."""

from typing import Any

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

WORKERS = 2
BOUND = 2.0**10
ENTRIES: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in catalog()}


def accuracy_by_round(entry: dict[str, Any], seed: int, rounds: int) -> list[float]:
    dataset, settings = load(entry["descriptor"]), entry["recommended"]
    model = build_model(settings["model"], entry["dimensions"], entry["classes"])
    params = model.initial_parameters(seed)
    outer, accumulator = build_outer({"name": "fedavg"}, model.n_parameters), Accumulator(model.n_parameters, BOUND)
    cursor, curve = 0, []
    for round_ in range(rounds):
        accumulator.reset()
        for shard in range(WORKERS):
            held = settings["k_steps"] * settings["batch"]
            task = LocalTask(seed, round_, shard, ((cursor, cursor + held),), settings["batch"], settings["k_steps"])
            cursor += held
            inner = build_inner(settings["inner"], model.n_parameters)
            result = run_local_steps(model, inner, params, dataset, task, lambda _step, _loss: False)
            accumulator.fold(result.delta, 1 / WORKERS, 1.0)
        apply_update(params, outer.update(accumulator.mean(accumulator.folded_weight)))
        curve.append(model.evaluate(params, dataset.x_test, dataset.y_test)[1])
    return curve


@pytest.mark.parametrize("seed", range(5))
def test_digits_reach_96_percent_within_the_recommended_rounds(seed: int) -> None:
    entry = ENTRIES["digits"]
    curve = accuracy_by_round(entry, seed, entry["recommended"]["rounds"])
    assert max(curve[:15]) >= 0.96
    assert curve[-1] >= 0.95


@pytest.mark.parametrize(("name", "least"), [("gauss3", 0.9), ("rings4", 0.95), ("spiral3", 0.97)])
@pytest.mark.parametrize("seed", range(3))
def test_generated_sets_are_learned(name: str, least: float, seed: int) -> None:
    entry = ENTRIES[name]
    assert accuracy_by_round(entry, seed, entry["recommended"]["rounds"])[-1] >= least
