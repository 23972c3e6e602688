"""Inner optimizers against the published formulas in plain float64."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from services.common.errors import SettingsError
from services.common.learning.inner import build_inner

N, STEPS = 1000, 30
Rule = Callable[[np.ndarray, list[np.ndarray]], np.ndarray]


def sgd(theta: np.ndarray, gradients: list[np.ndarray]) -> np.ndarray:
    for gradient in gradients:
        theta = theta - 0.1 * gradient
    return theta


def momentum(theta: np.ndarray, gradients: list[np.ndarray]) -> np.ndarray:
    """Unrolled: the velocity at t is sum over s <= t of 0.9^(t-s) g_s."""
    for t in range(len(gradients)):
        theta = theta - 0.05 * np.sum([0.9 ** (t - s) * gradients[s] for s in range(t + 1)], axis=0)
    return theta


def adamw(theta: np.ndarray, gradients: list[np.ndarray]) -> np.ndarray:
    """Loshchilov & Hutter, algorithm 2, with the moments written as normalised weighted means."""
    for t in range(1, len(gradients) + 1):
        first = np.array([0.9 ** (t - s) * (1 - 0.9) for s in range(1, t + 1)])
        second = np.array([0.999 ** (t - s) * (1 - 0.999) for s in range(1, t + 1)])
        past = np.stack(gradients[:t])
        m_hat = first @ past / first.sum()
        v_hat = second @ past**2 / second.sum()
        theta = theta - 0.01 * (m_hat / (np.sqrt(v_hat) + 1e-8) + 0.1 * theta)
    return theta


CASES: list[tuple[dict[str, Any], Rule]] = [
    ({"name": "sgd", "lr": 0.1}, sgd),
    ({"name": "momentum", "lr": 0.05}, momentum),
    ({"name": "adamw", "lr": 0.01, "weight_decay": 0.1}, adamw),
]
IDS = [str(spec["name"]) for spec, _ in CASES]


def drawn() -> tuple[np.ndarray, list[np.ndarray]]:
    random = np.random.default_rng(1)
    return (
        random.normal(size=N).astype(np.float32),
        [random.normal(size=N).astype(np.float32) for _ in range(STEPS)],
    )


@pytest.mark.parametrize(("spec", "rule"), CASES, ids=IDS)
def test_many_steps_equal_the_formula(spec: Mapping[str, Any], rule: Rule) -> None:
    params, gradients = drawn()
    expected = rule(params.astype(np.float64), [g.astype(np.float64) for g in gradients])
    optimizer = build_inner(spec, N)
    for gradient in gradients:
        before = gradient.copy()
        optimizer.step(params, gradient)
        assert np.array_equal(gradient, before)
    np.testing.assert_allclose(params, expected, rtol=2e-5, atol=5e-6)


@pytest.mark.parametrize(("spec", "rule"), CASES, ids=IDS)
def test_a_loaded_state_goes_on_bit_for_bit(spec: Mapping[str, Any], rule: Rule) -> None:
    params, gradients = drawn()
    first = build_inner(spec, N)
    for gradient in gradients[:10]:
        first.step(params, gradient)
    kept, state = params.copy(), first.state()
    for gradient in gradients[10:]:
        first.step(params, gradient)
    second = build_inner(spec, N)
    second.load(state)
    for gradient in gradients[10:]:
        second.step(kept, gradient)
    assert np.array_equal(params, kept)
    del rule


@pytest.mark.parametrize(("spec", "rule"), CASES, ids=IDS)
def test_steps_in_parts_have_the_bits_of_whole_steps(spec: Mapping[str, Any], rule: Rule) -> None:
    params, gradients = drawn()
    in_parts, whole, parted = params.copy(), build_inner(spec, N), build_inner(spec, N)
    for gradient in gradients:
        whole.step(params, gradient, 0.5)
        for part in (slice(700, N), slice(33, 700), slice(0, 33)):
            parted.step(in_parts[part], gradient[part], 0.5, part.start)
    assert np.array_equal(params, in_parts)
    for name, array in whole.state().items():
        assert np.array_equal(parted.state()[name], array)
    del rule


def test_state_is_a_copy_and_a_state_that_does_not_fit_changes_nothing() -> None:
    optimizer = build_inner({"name": "momentum", "lr": 0.1}, 3)
    optimizer.step(np.zeros(3, np.float32), np.ones(3, np.float32))
    optimizer.state()["velocity"][:] = 7
    for bad in ({}, {"velocity": np.zeros(4, np.float32)}, {"velocity": np.zeros(3)}, {"first": np.zeros(3)}):
        with pytest.raises(SettingsError, match="optimizer state"):
            optimizer.load(bad)
    assert optimizer.state()["velocity"].tolist() == [1, 1, 1]
    with pytest.raises(SettingsError):
        build_inner({"name": "sgd", "lr": 0.1}, 3).load({"velocity": np.zeros(3, np.float32)})


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"lr": 0.1}, "inner optimizer name is None; allowed: adamw, momentum, sgd."),
        ({"name": "adam", "lr": 0.1}, "inner optimizer name is 'adam'"),
        ({"name": "sgd"}, "sgd lr is None; allowed: a number from 1e-08 to 10."),
        ({"name": "sgd", "lr": 0}, "sgd lr is 0;"),
        ({"name": "sgd", "lr": float("nan")}, "sgd lr is nan;"),
        ({"name": "sgd", "lr": "0.1"}, "sgd lr is '0.1';"),
        ({"name": "sgd", "lr": True}, "sgd lr is True;"),
        (
            {"name": "sgd", "lr": 0.1, "momentum": 0.9},
            "sgd field is 'momentum'; allowed: lr, name, prox, schedule, warmup.",
        ),
        ({"name": "momentum", "lr": 0.1, "momentum": 1.0}, "momentum is 1.0; allowed: a number from 0 to 0.99999."),
        ({"name": "adamw", "lr": 0.1, "beta2": 1.5}, "adamw beta2 is 1.5;"),
        ({"name": "adamw", "lr": 0.1, "eps": 0.0}, "adamw eps is 0.0;"),
        ({"name": "adamw", "lr": 0.1, "weight_decay": -1}, "adamw weight_decay is -1;"),
    ],
)
def test_a_bad_optimizer_is_refused_with_field_value_and_what_is_allowed(spec: Mapping[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build_inner(spec, 3)
    assert said in caught.value.sentence
