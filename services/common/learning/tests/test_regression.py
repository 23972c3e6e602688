"""Regression against finite differences and a second implementation in float64 that shares no code with it."""

from typing import Any

import numpy as np
import pytest

from services.common.errors import SettingsError
from services.common.learning.models import Model, build_model

SPECS: list[dict[str, Any]] = [
    {"family": "linear"},
    {"family": "mlp", "hidden": [5]},
    {"family": "mlp", "hidden": [7, 4]},
]
RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(23, 4)).astype(np.float32)
Y = (X @ np.array([1, -2, 0.5, 0]) + RANDOM.normal(scale=0.1, size=23)).astype(np.float32)


def made(spec: dict[str, Any]) -> tuple[Model, np.ndarray]:
    """A model, and parameters away from the kinks of ReLU."""
    model = build_model(spec, 4, 0)
    params = model.initial_parameters(3)
    return model, params + np.random.default_rng(6).normal(scale=0.1, size=len(params)).astype(np.float32)


def outputs(model: Model, flat: np.ndarray) -> np.ndarray:
    """In float64, one example at a time."""
    arrays = [
        flat[o : o + int(np.prod(s))].reshape(s).astype(np.float64)
        for s, o in zip(model.layout.shapes, model.layout.offsets, strict=True)
    ]
    found = []
    for row in X.astype(np.float64):
        for depth in range(0, len(arrays), 2):
            row = np.einsum("i,ij->j", row, arrays[depth]) + arrays[depth + 1]  # noqa: PLW2901
            row = np.where(row > 0, row, 0) if depth + 2 < len(arrays) else row  # noqa: PLW2901
        found.append(row[0])
    return np.array(found)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_the_gradient_of_the_mean_squared_error_equals_finite_differences(spec: dict[str, Any]) -> None:
    model, params = made(spec)
    gradient = np.full_like(params, np.nan)
    loss, n_correct = model.loss_and_gradient(params, X, Y, gradient)
    wide, numeric, step = params.astype(np.float64), np.empty(len(params)), 1e-6
    assert loss == pytest.approx(np.mean((outputs(model, wide) - Y) ** 2), rel=1e-5)
    assert n_correct == 0
    for i in range(len(params)):
        up, down = wide.copy(), wide.copy()
        up[i] += step
        down[i] -= step
        numeric[i] = (np.mean((outputs(model, up) - Y) ** 2) - np.mean((outputs(model, down) - Y) ** 2)) / (2 * step)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_evaluation_is_the_mean_squared_error_and_r2(spec: dict[str, Any]) -> None:
    model, params = made(spec)
    answers = outputs(model, params)
    loss, r2 = model.evaluate(params, X, Y)
    assert loss == pytest.approx(np.mean((answers - Y) ** 2), rel=1e-5)
    true_r2 = 1 - np.sum((answers - Y) ** 2) / np.sum((Y - Y.mean(dtype=np.float64)) ** 2)
    assert r2 == pytest.approx(max(-1.0, true_r2), rel=1e-5)
    predicted = model.predict(params, X)
    assert predicted.shape == (23, 1)
    np.testing.assert_allclose(predicted[:, 0], answers, rtol=1e-4, atol=1e-5)


def test_a_linear_model_finds_the_least_squares_answer() -> None:
    model, params = made({"family": "linear"})
    gradient = np.empty_like(params)
    for _ in range(500):
        model.loss_and_gradient(params, X, Y, gradient)
        params -= np.float32(0.1) * gradient
    best = np.linalg.lstsq(np.column_stack([X, np.ones(23)]), Y, rcond=None)[0]
    np.testing.assert_allclose(params, best, atol=1e-4)
    assert model.evaluate(params, X, Y)[1] > 0.99


def test_r2_has_a_floor_and_a_value_where_nothing_varies() -> None:
    model = build_model({"family": "linear"}, 4, 0)
    zeros = np.zeros(model.n_parameters, np.float32)
    assert model.evaluate(zeros, X, Y + 1000)[1] == -1.0
    assert model.evaluate(zeros, X, np.zeros_like(Y))[1] == 1.0
    assert model.evaluate(zeros, X, np.ones_like(Y))[1] == 0.0
    loss, r2 = model.evaluate(np.full_like(zeros, np.nan), X, Y)
    assert np.isnan(loss) and r2 == -1.0
    loss, _ = model.loss_and_gradient(np.full_like(zeros, 1e30), X, Y, np.empty_like(zeros))
    assert not np.isfinite(loss)


@pytest.mark.parametrize(
    ("spec", "classes", "said"),
    [
        ({"family": "softmax"}, 0, "model family is 'softmax'; allowed: linear or mlp, for a number."),
        ({"family": "linear"}, 3, "model family is 'linear'; allowed: softmax or mlp, for classes."),
        ({"family": "linear"}, 1, "classes is 1"),
        ({"family": "linear", "hidden": [4]}, 0, "linear model field is 'hidden'"),
    ],
)
def test_a_family_that_does_not_fit_is_refused(spec: dict[str, Any], classes: int, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build_model(spec, 4, classes)
    assert said in caught.value.sentence
