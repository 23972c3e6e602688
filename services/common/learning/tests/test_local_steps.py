"""Local steps against a second walk over the same batches, and the sign of the delta."""

from dataclasses import replace

import numpy as np
import pytest

from services.common.learning import LocalTask, build_inner, build_model, describe, load, run_local_steps
from services.common.learning.local_steps import Cancelled
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
