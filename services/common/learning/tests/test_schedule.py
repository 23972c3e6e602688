"""The learning rate by position in the run, and that each inner optimizer steps with it."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from services.common.errors import SettingsError
from services.common.learning.inner import build_inner
from services.common.learning.schedule import Schedule, lr_factor

N = 100
INNERS: list[dict[str, Any]] = [
    {"name": "sgd", "lr": 0.1},
    {"name": "momentum", "lr": 0.05},
    {"name": "adamw", "lr": 0.01, "weight_decay": 0.1},
]
EACH = pytest.mark.parametrize("spec", INNERS, ids=[str(spec["name"]) for spec in INNERS])


def test_a_plain_constant_is_exactly_1() -> None:
    assert {lr_factor("constant", 0.0, i / 97) for i in range(98)} == {1.0}


def test_a_cosine_falls_from_1_to_a_tenth() -> None:
    for position, expected in ((0.0, 1.0), (0.25, 0.55 + 0.45 * math.sqrt(0.5)), (0.5, 0.55), (1.0, 0.1)):
        assert lr_factor("cosine", 0.0, position) == pytest.approx(expected, abs=1e-12)
    curve = [lr_factor("cosine", 0.0, i / 50) for i in range(51)]
    assert all(before > after for before, after in pairwise(curve))


@pytest.mark.parametrize("shape", ["constant", "cosine"])
def test_a_warm_up_is_a_line_from_a_hundredth_never_0_and_meets_what_follows(shape: str) -> None:
    for position, expected in ((0.0, 0.01), (0.05, 0.2575), (0.1, 0.505), (0.2, 1.0)):
        assert lr_factor(shape, 0.2, position) == pytest.approx(expected, abs=1e-12)
    assert lr_factor(shape, 0.2, math.nextafter(0.2, 0)) == pytest.approx(1.0, abs=1e-12)
    assert lr_factor("cosine", 0.2, 0.6) == pytest.approx(0.55, abs=1e-12), "half of what is left after the warm-up"
    assert lr_factor("cosine", 0.2, 1.0) == pytest.approx(0.1, abs=1e-12)


@pytest.mark.parametrize("position", [-0.01, 1.01, math.nan])
def test_a_position_outside_the_run_is_an_assertion(position: float) -> None:
    with pytest.raises(AssertionError):
        lr_factor("cosine", 0.1, position)


@EACH
def test_the_specification_of_an_inner_optimizer_says_it_all(spec: Mapping[str, Any]) -> None:
    plain = build_inner(spec, N)
    assert (plain.schedule, plain.prox) == (Schedule("constant", 0.0), 0.0)
    asked = build_inner({**spec, "schedule": "cosine", "warmup": 0.1, "prox": 0.01}, N)
    assert (asked.schedule, asked.prox) == (Schedule("cosine", 0.1), 0.01)
    assert asked.schedule.factor(0.05) == lr_factor("cosine", 0.1, 0.05)


@EACH
def test_lr_scale_is_the_step_at_another_lr_with_the_state_as_it_was(spec: Mapping[str, Any]) -> None:
    """Bit for bit: no rule keeps the rate in its state, so halves of lr are halves of steps."""
    random = np.random.default_rng(7)
    params = random.normal(size=N).astype(np.float32)
    gradients = [random.normal(size=N).astype(np.float32) for _ in range(10)]
    scaled, half = build_inner(spec, N), build_inner({**spec, "lr": spec["lr"] / 2}, N)
    mine, other = params.copy(), params.copy()
    for t, gradient in enumerate(gradients):
        scaled.step(mine, gradient, 0.5)
        half.step(other, gradient)
        assert np.array_equal(mine, other), t


def test_momentum_under_a_schedule_equals_the_formula_with_the_rate_outside_the_velocity() -> None:
    random = np.random.default_rng(8)
    params = random.normal(size=N).astype(np.float32)
    gradients = [random.normal(size=N).astype(np.float32) for _ in range(20)]
    scales = [lr_factor("cosine", 0.3, i / 20) for i in range(20)]
    expected, optimizer = params.astype(np.float64), build_inner(INNERS[1], N)
    for t, (gradient, scale) in enumerate(zip(gradients, scales, strict=True)):
        optimizer.step(params, gradient, scale)
        velocity = np.sum([0.9 ** (t - s) * gradients[s].astype(np.float64) for s in range(t + 1)], axis=0)
        expected -= 0.05 * scale * velocity
    np.testing.assert_allclose(params, expected, rtol=2e-5, atol=5e-6)


@EACH
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("schedule", "linear", "inner optimizer schedule is 'linear'; allowed: constant, cosine."),
        ("schedule", None, "inner optimizer schedule is None;"),
        ("warmup", 0.6, "warmup is 0.6; allowed: a number from 0 to 0.5."),
        ("warmup", True, "warmup is True;"),
        ("prox", -0.1, "prox is -0.1; allowed: a number from 0 to 10."),
        ("prox", math.nan, "prox is nan;"),
        ("decay", 0.1, " field is 'decay'; allowed: "),
    ],
)
def test_a_bad_field_is_refused_with_value_and_what_is_allowed(
    spec: Mapping[str, Any], field: str, value: object, said: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        build_inner({**spec, field: value}, N)
    assert said in caught.value.sentence
