"""Local steps against a second walk over the same batches, and the sign of the delta."""

from dataclasses import replace

import numpy as np
import pytest

from services.common.learning import LocalTask, build_inner, build_model, describe, load, run_local_steps
from services.common.learning.local_steps import Cancelled
from services.common.learning.parameters import Floats
from services.common.learning.shards import batches, indices

DATASET = load(describe("gauss3", n=100))
MODEL = build_model({"family": "softmax"}, 2, 3)
ANCHOR = MODEL.initial_parameters(1)
TASK = LocalTask(seed=5, round=2, shard=1, ranges=((70, 90), (100, 117)), batch=8, k_steps=12)
SGD = {"name": "sgd", "lr": 0.1}


def never(_step: int, _loss: float) -> bool:
    return False


def test_the_delta_is_anchor_minus_local_after_k_steps_over_cycled_batches() -> None:
    anchor = ANCHOR.copy()
    seen: list[tuple[int, float]] = []

    def note(step: int, loss: float) -> bool:
        seen.append((step, loss))
        return False

    result = run_local_steps(MODEL, build_inner(SGD, len(anchor)), anchor, DATASET, TASK, note)
    made = list(batches(5, 2, 1, indices(5, 80, TASK.ranges), 8))
    assert [len(b) for b in made] == [8, 8, 8, 8, 5]
    local, gradient = ANCHOR.astype(np.float64), np.empty_like(ANCHOR)
    losses, samples, correct = [], 0, 0
    for step in range(12):
        rows = made[step % 5]
        loss, right = MODEL.loss_and_gradient(
            local.astype(np.float32), DATASET.x_train[rows], DATASET.y_train[rows], gradient
        )
        local -= 0.1 * gradient.astype(np.float64)
        losses.append(loss)
        samples += len(rows)
        correct += right
    np.testing.assert_allclose(result.delta, ANCHOR - local, rtol=1e-4, atol=1e-6)
    assert result.delta.dtype == np.float32
    assert (result.samples, result.steps, result.n_correct) == (samples, 12, correct)
    assert [s for s, _ in seen] == list(range(1, 13))
    assert [loss for _, loss in seen] == pytest.approx(losses, rel=1e-5)
    weights = [len(made[step % 5]) for step in range(12)]
    assert result.loss == pytest.approx(np.average(losses, weights=weights), rel=1e-5)
    assert np.array_equal(anchor, ANCHOR), "the anchor is only read"


def test_taking_the_delta_away_lowers_the_loss() -> None:
    delta = run_local_steps(MODEL, build_inner(SGD, len(ANCHOR)), ANCHOR, DATASET, TASK, never).delta
    before = MODEL.evaluate(ANCHOR, DATASET.x_test, DATASET.y_test)[0]
    assert MODEL.evaluate(ANCHOR - delta, DATASET.x_test, DATASET.y_test)[0] < before


def test_fewer_steps_than_batches_stop_at_k() -> None:
    result = run_local_steps(MODEL, build_inner(SGD, len(ANCHOR)), ANCHOR, DATASET, replace(TASK, k_steps=2), never)
    assert (result.steps, result.samples) == (2, 16)


def test_the_same_task_gives_the_same_bits_and_delta_scale_multiplies_them() -> None:
    plain, again, scaled = (
        run_local_steps(MODEL, build_inner(SGD, len(ANCHOR)), ANCHOR, DATASET, task, never).delta
        for task in (TASK, TASK, replace(TASK, delta_scale=1.7))
    )
    assert np.array_equal(plain, again)
    assert np.array_equal(scaled, plain * np.float32(1.7))


def test_on_step_cancels() -> None:
    with pytest.raises(Cancelled, match="after 3 of 12"):
        run_local_steps(MODEL, build_inner(SGD, len(ANCHOR)), ANCHOR, DATASET, TASK, lambda step, _: step == 3)


def test_an_empty_shard_is_an_assertion() -> None:
    with pytest.raises(AssertionError):
        run_local_steps(MODEL, build_inner(SGD, len(ANCHOR)), ANCHOR, DATASET, replace(TASK, ranges=((5, 5),)), never)


@pytest.mark.parametrize(
    "inner", [{"name": "sgd", "lr": 10.0}, {"name": "momentum", "lr": 10.0}, {"name": "adamw", "lr": 10.0}]
)
def test_a_diverging_run_ends_without_a_warning(inner: dict[str, object]) -> None:
    anchor = np.full_like(ANCHOR, 3e38)
    task = replace(TASK, delta_scale=2.0)
    result = run_local_steps(MODEL, build_inner(inner, len(anchor)), anchor, DATASET, task, never)
    assert not np.isfinite(result.loss)
    assert not np.isfinite(result.delta).all()


def test_step_s_of_k_has_the_rate_of_the_position_where_it_begins() -> None:
    """A second walk with plain SGD, each step at its own rate, by hand."""
    spec = {**SGD, "schedule": "cosine", "warmup": 0.25}
    task = replace(TASK, begin=0.2, end=0.4)
    result = run_local_steps(MODEL, build_inner(spec, len(ANCHOR)), ANCHOR, DATASET, task, never)
    made = list(batches(5, 2, 1, indices(5, 80, TASK.ranges), 8))
    local, gradient = ANCHOR.astype(np.float64), np.empty_like(ANCHOR)
    rates = []
    for step in range(12):
        position = 0.2 + 0.2 * step / 12
        along = (position - 0.25) / 0.75
        factor = 0.01 + 0.99 * position / 0.25 if position < 0.25 else 0.1 + 0.45 * (1 + np.cos(np.pi * along))
        rows = made[step % 5]
        MODEL.loss_and_gradient(local.astype(np.float32), DATASET.x_train[rows], DATASET.y_train[rows], gradient)
        local -= 0.1 * factor * gradient.astype(np.float64)
        rates.append(factor)
    np.testing.assert_allclose(result.delta, ANCHOR - local, rtol=1e-4, atol=1e-6)
    assert rates[0] < rates[3] > rates[-1], "both halves of the schedule are met"


def test_rounds_follow_one_another_without_a_gap() -> None:
    before, after = replace(TASK, begin=0.0, end=0.5), replace(TASK, begin=0.5, end=1.0)
    assert [before.position(1), before.position(7), after.position(1)] == [0.0, 0.25, 0.5]
    assert before.position(12) < 0.5 < after.position(2) < after.position(12) < 1.0
    assert {TASK.position(step) for step in range(1, 13)} == {0.0}, "without positions the rate is that of the begin"


@pytest.mark.parametrize(("begin", "end"), [(-0.1, 0.5), (0.5, 0.4), (0.5, 1.1)])
def test_positions_outside_the_run_are_an_assertion(begin: float, end: float) -> None:
    with pytest.raises(AssertionError):
        run_local_steps(
            MODEL, build_inner(SGD, len(ANCHOR)), ANCHOR, DATASET, replace(TASK, begin=begin, end=end), never
        )


@pytest.mark.parametrize(
    "inner", [SGD, {"name": "momentum", "lr": 0.05}, {"name": "adamw", "lr": 0.01}], ids=lambda inner: inner["name"]
)
def test_prox_adds_the_pull_to_the_anchor_to_the_gradient(inner: dict[str, object]) -> None:
    """Against the same rule fed by hand with the gradient of F(w) + mu / 2 * |w - anchor|^2."""
    mu = 0.3
    result = run_local_steps(MODEL, build_inner({**inner, "prox": mu}, len(ANCHOR)), ANCHOR, DATASET, TASK, never)
    rule, local, gradient = build_inner(inner, len(ANCHOR)), ANCHOR.copy(), np.empty_like(ANCHOR)
    made = list(batches(5, 2, 1, indices(5, 80, TASK.ranges), 8))
    for step in range(12):
        rows = made[step % 5]
        MODEL.loss_and_gradient(local, DATASET.x_train[rows], DATASET.y_train[rows], gradient)
        pulled = gradient.astype(np.float64) + mu * (local.astype(np.float64) - ANCHOR.astype(np.float64))
        rule.step(local, pulled.astype(np.float32))
    np.testing.assert_allclose(result.delta, ANCHOR - local, rtol=1e-4, atol=1e-6)
    plain = run_local_steps(MODEL, build_inner(inner, len(ANCHOR)), ANCHOR, DATASET, TASK, never)
    assert np.linalg.norm(result.delta) < np.linalg.norm(plain.delta)
    assert np.abs(result.delta - plain.delta).max() > 1e-3, "the pull is seen"


@pytest.mark.parametrize(
    "inner", [SGD, {"name": "momentum", "lr": 0.05}, {"name": "adamw", "lr": 0.01}], ids=lambda inner: inner["name"]
)
@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_a_model_whose_gradient_comes_in_parts_gets_the_bits_of_whole_steps(
    inner: dict[str, object], mu: float
) -> None:
    model = build_model({"family": "mlp", "hidden": [400, 400]}, 2, 3)
    anchor = model.initial_parameters(3)
    result = run_local_steps(model, build_inner({**inner, "prox": mu}, len(anchor)), anchor, DATASET, TASK, never)
    rule, local, gradient = build_inner(inner, len(anchor)), anchor.copy(), np.empty_like(anchor)
    made = list(batches(5, 2, 1, indices(5, 80, TASK.ranges), 8))
    for step in range(12):
        rows = made[step % 5]
        model.loss_and_gradient(local, DATASET.x_train[rows], DATASET.y_train[rows], gradient)
        rule.step(local, gradient + np.float32(mu) * (local - anchor))
    assert np.array_equal(result.delta, anchor - local)


def test_prox_0_and_a_constant_schedule_change_no_bit() -> None:
    plain = run_local_steps(MODEL, build_inner(SGD, len(ANCHOR)), ANCHOR, DATASET, TASK, never)
    spelt = {**SGD, "prox": 0, "schedule": "constant", "warmup": 0}
    task = replace(TASK, begin=0.3, end=0.9)
    again = run_local_steps(MODEL, build_inner(spelt, len(ANCHOR)), ANCHOR, DATASET, task, never)
    assert np.array_equal(plain.delta, again.delta)


def test_a_diverging_run_with_prox_ends_without_a_warning() -> None:
    anchor = np.full_like(ANCHOR, 3e38)
    inner = build_inner({"name": "sgd", "lr": 10.0, "prox": 10.0}, len(anchor))
    assert not np.isfinite(run_local_steps(MODEL, inner, anchor, DATASET, TASK, never).delta).all()


@pytest.mark.parametrize("at", [1, 5, 12, None], ids=str)
def test_the_base_takes_the_anchors_place_and_local_moves_along(at: int | None) -> None:
    base = ANCHOR + np.float32(0.25)
    asked: list[bool] = []

    def on_base(all_done: bool) -> Floats | None:
        asked.append(all_done)
        return base if all_done or len(asked) == at else None

    result = run_local_steps(MODEL, build_inner(SGD, len(ANCHOR)), ANCHOR, DATASET, TASK, never, on_base)
    assert asked == ([False] * 12 + [True] if at is None else [False] * at)
    local, gradient = ANCHOR.copy(), np.empty_like(ANCHOR)
    made = list(batches(5, 2, 1, indices(5, 80, TASK.ranges), 8))
    for step in range(12):
        if step + 1 == at:
            local = base + (local - ANCHOR)
        MODEL.loss_and_gradient(local, DATASET.x_train[made[step % 5]], DATASET.y_train[made[step % 5]], gradient)
        local -= np.float32(0.1) * gradient
    if at is None:
        local = base + (local - ANCHOR)
    np.testing.assert_allclose(result.local, local, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(result.delta, base - local, rtol=1e-4, atol=1e-6)
