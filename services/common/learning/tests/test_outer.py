"""The outer step: sign, published formulas, a state that goes on, and that the update is all a replica needs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from services.common.errors import SettingsError
from services.common.kernels import Threads
from services.common.learning.outer import ENTRIES_AT_ONCE, apply_update, build_outer, warnings_of

N, ROUNDS = ENTRIES_AT_ONCE + 1000, 12
SPECS: list[dict[str, Any]] = [
    {"name": "fedavg", "lr": 0.7},
    {"name": "momentum", "lr": 0.5, "mu": 0.8},
    {"name": "nesterov", "lr": 0.7, "mu": 0.9},
    {"name": "fedadam", "lr": 0.02, "beta1": 0.8, "beta2": 0.95, "tau": 0.01},
]
IDS = [str(spec["name"]) for spec in SPECS]
EACH = pytest.mark.parametrize("spec", SPECS, ids=IDS)


def drawn(n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(2)
    return random.normal(size=n).astype(np.float32), random.normal(size=n).astype(np.float32)


def deltas(n: int = N) -> list[np.ndarray]:
    random = np.random.default_rng(6)
    return [(random.normal(size=n) * 10.0 ** random.integers(-4, 1)).astype(np.float32) for _ in range(ROUNDS)]


def formula(spec: Mapping[str, Any], past: list[np.ndarray]) -> np.ndarray:
    """The update of the newest of `past`, unrolled: what went before weighs mu^age, or (1 - beta) beta^age."""
    newest, ages = past[-1], np.arange(len(past))[::-1]
    if spec["name"] == "fedavg":
        return np.asarray(0.7 * newest)
    stack = np.stack(past)
    if spec["name"] == "momentum":
        return np.asarray(0.5 * (0.8**ages @ stack))
    if spec["name"] == "nesterov":
        return np.asarray(0.7 * (newest + 0.9 * (0.9**ages @ stack)))
    first = 0.2 * 0.8**ages @ stack
    second = 0.05 * 0.95**ages @ stack**2 + 0.95 ** len(past) * 0.01**2
    return np.asarray(0.02 * first / (np.sqrt(second) + 0.01))


def test_fedavg_with_lr_1_goes_to_the_weighted_mean_of_the_locals() -> None:
    anchor, _ = drawn()
    random = np.random.default_rng(3)
    locals_ = [anchor + random.normal(size=1000).astype(np.float32) for _ in range(3)]
    weights = np.array([0.5, 0.3, 0.2])
    mean_delta = sum(w * (anchor - local).astype(np.float64) for w, local in zip(weights, locals_, strict=True))
    params = anchor.copy()
    apply_update(params, build_outer({"name": "fedavg"}, 1000).update(mean_delta.astype(np.float32)))
    np.testing.assert_allclose(params, np.average(locals_, axis=0, weights=weights), atol=1e-6)


@EACH
def test_many_rounds_equal_the_formula(spec: Mapping[str, Any]) -> None:
    optimizer, past = build_outer(spec, N), []
    for delta in deltas():
        given = delta.copy()
        update = optimizer.update(delta)
        assert np.array_equal(delta, given) and update.dtype == np.float32
        past.append(delta.astype(np.float64))
        expected = formula(spec, past)
        np.testing.assert_allclose(update, expected, rtol=1e-5, atol=2e-6 * np.abs(expected).max())


def test_defaults_are_those_of_the_papers_or_milder() -> None:
    for short, whole in (
        ({"name": "fedavg"}, {"name": "fedavg", "lr": 1.0}),
        ({"name": "momentum"}, {"name": "momentum", "lr": 0.7, "mu": 0.6}),
        ({"name": "nesterov"}, {"name": "nesterov", "lr": 0.7, "mu": 0.6}),
        ({"name": "fedadam"}, {"name": "fedadam", "lr": 0.01, "beta1": 0.9, "beta2": 0.99, "tau": 1e-3}),
    ):
        first, second = build_outer(short, 100), build_outer(whole, 100)
        for delta in deltas(100):
            assert np.array_equal(first.update(delta), second.update(delta))


@pytest.mark.parametrize("name", ["momentum", "nesterov"])
def test_one_round_of_the_momenta_has_the_bits_of_their_float32_formula(name: str) -> None:
    """As the kernels promise: each operation rounded by itself, no multiply-add fused."""
    lr, mu = np.float32(0.7), np.float32(0.6)
    optimizer, m = build_outer({"name": name}, N), np.zeros(N, np.float32)
    for delta in deltas():
        m = mu * m + delta
        expected = lr * m if name == "momentum" else lr * (delta + mu * m)
        assert np.array_equal(optimizer.update(delta).view(np.uint32), expected.view(np.uint32))


@EACH
def test_a_replica_that_takes_the_update_away_has_the_same_bits(spec: Mapping[str, Any]) -> None:
    params, _ = drawn(N)
    replica, other, by_update = params.copy(), build_outer(spec, N), build_outer(spec, N)
    for delta in deltas():
        before = params.astype(np.float64)
        apply_update(params, other.update(delta))
        update = by_update.update(delta)
        apply_update(replica, update)
        assert np.array_equal(params, replica)
        np.testing.assert_allclose(params, before - update.astype(np.float64), rtol=1e-6, atol=1e-6)


@EACH
def test_a_large_step_on_three_threads_gives_equal_bits(spec: Mapping[str, Any]) -> None:
    n = 2**20 + 7
    (params, delta), threads = drawn(n), Threads(3)
    replica, alone, together = params.copy(), build_outer(spec, n), build_outer(spec, n, threads)
    for _ in range(2):
        apply_update(params, together.update(delta), threads)
        apply_update(replica, alone.update(delta))
    threads.close()
    assert np.array_equal(params.view(np.uint32), replica.view(np.uint32))


@EACH
def test_a_loaded_state_goes_on_bit_for_bit_and_is_a_copy(spec: Mapping[str, Any]) -> None:
    first, second = build_outer(spec, N), build_outer(spec, N)
    rounds = deltas()
    for delta in rounds[:5]:
        first.update(delta)
    kept = first.state()
    assert all(array.dtype == np.float32 and array.shape == (N,) for array in kept.values())
    second.load(kept)
    for array in kept.values():
        array[:] = 7
    for delta in rounds[5:]:
        assert np.array_equal(first.update(delta), second.update(delta))
    assert all(np.array_equal(first.state()[name], array) for name, array in second.state().items())


def test_a_state_that_does_not_fit_is_refused() -> None:
    m = {"momentum": np.zeros(3, np.float32)}
    build_outer({"name": "nesterov"}, 3).load(m)
    build_outer({"name": "fedavg"}, 3).load({})
    for name, state in (("fedavg", m), ("nesterov", {}), ("fedadam", m), ("momentum", {"momentum": np.zeros(3)})):
        with pytest.raises(SettingsError, match="optimizer state"):
            build_outer({"name": name}, 3).load(state)
    with pytest.raises(SettingsError, match="optimizer state momentum"):
        build_outer({"name": "momentum"}, 4).load(m)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "outer optimizer name is None; allowed: fedadam, fedavg, momentum, nesterov."),
        ({"name": "fedavg", "lr": 0}, "fedavg lr is 0; allowed: a number from 1e-06 to 10."),
        ({"name": "fedavg", "mu": 0.5}, "fedavg field is 'mu'; allowed: lr, name."),
        ({"name": "momentum", "mu": 1.0}, "momentum mu is 1.0; allowed: a number from 0 to 0.999."),
        ({"name": "nesterov", "momentum": 0.9}, "nesterov field is 'momentum'; allowed: lr, mu, name."),
        ({"name": "nesterov", "mu": float("nan")}, "nesterov mu is nan;"),
        ({"name": "fedadam", "beta1": 1.0}, "fedadam beta1 is 1.0;"),
        ({"name": "fedadam", "beta2": -0.1}, "fedadam beta2 is -0.1;"),
        ({"name": "fedadam", "tau": 0.0}, "fedadam tau is 0.0; allowed: a number from 1e-08 to 1."),
        ({"name": "fedadam", "eps": 1e-3}, "fedadam field is 'eps'; allowed: beta1, beta2, lr, name, tau."),
    ],
)
def test_a_bad_outer_optimizer_is_refused_with_field_value_and_what_is_allowed(
    spec: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        build_outer(spec, 3)
    assert said in caught.value.sentence


@pytest.mark.parametrize(
    ("spec", "rounds", "said"),
    [
        (
            {"name": "nesterov", "mu": 0.9},
            30,
            "outer momentum 0.9 needs about 100 rounds; this run has 30: use mu 0.6 or fedavg",
        ),
        ({"name": "momentum", "mu": 0.9}, 24, "outer momentum 0.9 needs about 100 rounds; this run has 24: use fedavg"),
        ({"name": "nesterov"}, 24, "outer momentum 0.6 needs about 25 rounds; this run has 24: use fedavg"),
        ({"name": "nesterov"}, 25, None),
        ({"name": "momentum", "mu": 0.9}, 99, "outer momentum 0.9 needs about 100 rounds; this run has 99: use mu 0.6"),
        ({"name": "momentum", "mu": 0.9}, 100, None),
        ({"name": "nesterov", "mu": 0}, 1, None),
        ({"name": "fedavg"}, 1, None),
        ({"name": "fedadam", "beta1": 0.9}, 1, None),
    ],
)
def test_momentum_in_a_short_run_is_warned_of(spec: Mapping[str, Any], rounds: int, said: str | None) -> None:
    warnings = warnings_of(spec, rounds)
    assert len(warnings) == (said is not None)
    assert said is None or warnings[0].startswith(said)
