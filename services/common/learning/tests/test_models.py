"""Models against finite differences and a second implementation that shares no code with them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from services.common.errors import SettingsError
from services.common.learning.models import HIDDEN_LAYERS_MAX, Model, build_model
from services.common.learning.parameters import digest
from services.common.learning.perceptron import EVALUATION_ROWS, PART_VALUES

SPECS: list[dict[str, Any]] = [
    {"family": "softmax"},
    {"family": "mlp", "hidden": [5]},
    {"family": "mlp", "hidden": [7, 4, 6]},
]
INPUTS, CLASSES = 4, 3


def examples(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.normal(size=(rows, INPUTS)).astype(np.float32), random.integers(0, CLASSES, rows)


def off_the_kinks(params: np.ndarray) -> np.ndarray:
    """Biases away from 0: a ReLU whose inputs are all 0 has no derivative, and differences would see that."""
    return params + np.random.default_rng(6).normal(scale=0.1, size=len(params)).astype(np.float32)


def reference(model: Model, flat: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Loss, gradient and probabilities in float64, one example and one layer at a time."""
    flat = flat.astype(np.float64)
    arrays = [
        flat[o : o + int(np.prod(s))].reshape(s) for s, o in zip(model.layout.shapes, model.layout.offsets, strict=True)
    ]
    pairs = list(zip(arrays[0::2], arrays[1::2], strict=True))
    gradients = [np.zeros_like(a) for a in arrays]
    loss, probabilities = 0.0, np.zeros((len(x), CLASSES))
    for row in range(len(x)):
        values = [x[row].astype(np.float64)]
        for depth, (w, b) in enumerate(pairs):
            z = np.einsum("i,ij->j", values[-1], w) + b
            values.append(z if depth == len(pairs) - 1 else np.where(z > 0, z, 0.0))
        p = np.exp(values[-1]) / np.sum(np.exp(values[-1]))
        probabilities[row] = p
        loss -= np.log(p[y[row]])
        delta = p - np.eye(CLASSES)[y[row]]
        for depth in range(len(pairs) - 1, -1, -1):
            gradients[2 * depth] += np.outer(values[depth], delta)
            gradients[2 * depth + 1] += delta
            delta = (pairs[depth][0] @ delta) * (values[depth] > 0)
    return loss / len(x), np.concatenate([g.ravel() for g in gradients]) / len(x), probabilities


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_gradient_equals_finite_differences(spec: Mapping[str, Any]) -> None:
    model = build_model(spec, INPUTS, CLASSES)
    params = off_the_kinks(model.initial_parameters(3))
    x, y = examples(11)
    gradient = np.full_like(params, np.nan)
    model.loss_and_gradient(params, x, y, gradient)
    step, wide = 1e-6, params.astype(np.float64)
    numeric = np.empty(len(params))
    for i in range(len(params)):
        up, down = wide.copy(), wide.copy()
        up[i] += step
        down[i] -= step
        numeric[i] = (reference(model, up, x, y)[0] - reference(model, down, x, y)[0]) / (2 * step)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("rows", [1, 32, 7])
def test_loss_gradient_accuracy_and_probabilities_equal_a_second_implementation(
    spec: Mapping[str, Any], rows: int
) -> None:
    model = build_model(spec, INPUTS, CLASSES)
    params = off_the_kinks(model.initial_parameters(5))
    x, y = examples(rows, seed=rows)
    model.loss_and_gradient(params, *examples(50), np.empty_like(params))  # larger buffers from before do no harm
    gradient = np.empty_like(params)
    loss, n_correct = model.loss_and_gradient(params, x, y, gradient)
    true_loss, true_gradient, probabilities = reference(model, params, x, y)
    true_correct = int(np.sum(probabilities.argmax(axis=1) == y))
    assert loss == pytest.approx(true_loss, rel=1e-5)
    assert n_correct == true_correct
    np.testing.assert_allclose(gradient, true_gradient, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.predict(params, x), probabilities, rtol=1e-5, atol=1e-6)
    assert model.evaluate(params, x, y) == pytest.approx((true_loss, true_correct / rows), rel=1e-5)


@pytest.mark.parametrize("hidden", [[5], [300, 900]], ids=str)
def test_a_gradient_in_parts_is_the_gradient_also_when_parts_already_taken_change_the_parameters(
    hidden: list[int],
) -> None:
    model = build_model({"family": "mlp", "hidden": hidden}, INPUTS, CLASSES)
    params = off_the_kinks(model.initial_parameters(5))
    x, y = examples(7)
    true_loss, true_gradient, _ = reference(model, params, x, y)
    taken: list[tuple[int, np.ndarray]] = []

    def take(start: int, part: np.ndarray) -> None:
        taken.append((start, part.copy()))
        params[start : start + len(part)] = np.nan  # as far from any update as can be
        part[:] = np.nan

    loss, _ = model.gradient_in_parts(params, x, y, take)
    assert loss == pytest.approx(true_loss, rel=1e-5)
    taken.reverse()
    starts, lengths = [start for start, _ in taken], [len(part) for _, part in taken]
    assert starts == [0, *np.cumsum(lengths)[:-1]], "without gaps, from the last to the first"
    assert sum(lengths) == model.n_parameters
    assert max(lengths) <= PART_VALUES + 2 * 900
    assert len(taken) == (1 if model.n_parameters <= PART_VALUES else 1 + 3 + 1)
    np.testing.assert_allclose(np.concatenate([part for _, part in taken]), true_gradient, rtol=1e-3, atol=1e-5)


def test_evaluation_in_parts_equals_one_pass() -> None:
    model = build_model(SPECS[1], INPUTS, CLASSES)
    params = model.initial_parameters(1)
    x, y = examples(EVALUATION_ROWS + 100)
    probabilities = model.predict(params, x)
    loss, accuracy = model.evaluate(params, x, y)
    assert loss == pytest.approx(float(-np.log(probabilities[np.arange(len(y)), y]).mean()), rel=1e-5)
    assert accuracy == float(np.mean(probabilities.argmax(axis=1) == y))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)


def test_predictions_belong_to_the_caller() -> None:
    model = build_model(SPECS[1], INPUTS, CLASSES)
    params = model.initial_parameters(1)
    first = model.predict(params, examples(5)[0])
    kept = first.copy()
    model.predict(params, examples(5, seed=9)[0])
    assert np.array_equal(first, kept)


def test_initial_parameters_are_he_uniform_and_the_same_everywhere() -> None:
    model = build_model({"family": "mlp", "hidden": [64, 64]}, 64, 10)
    params = model.initial_parameters(7)
    assert params.dtype == np.float32
    assert model.n_parameters == len(params) == 64 * 64 + 64 + 64 * 64 + 64 + 64 * 10 + 10
    views = model.layout.views(params)
    for i in range(3):
        weight, bound = views[f"weight{i}"], np.sqrt(6 / 64)
        assert np.abs(weight).max() <= bound
        assert float(weight.var()) == pytest.approx(2 / 64, rel=0.1)
        assert not views[f"bias{i}"].any()
    assert digest(params) == digest(model.initial_parameters(7)) == "d67bef67d3723d2b0ee1bf361b564b27"
    assert digest(params) != digest(model.initial_parameters(8))


def test_numbers_that_are_not_finite_show_in_the_loss_without_a_warning() -> None:
    model = build_model(SPECS[2], INPUTS, CLASSES)
    params = np.full(model.n_parameters, 1e30, dtype=np.float32)
    loss, _ = model.loss_and_gradient(params, *examples(4), np.empty_like(params))
    assert not np.isfinite(loss)
    assert not np.isfinite(model.evaluate(params, *examples(4))[0])
    model.predict(params, examples(4)[0])


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "model family is None; allowed: linear, mlp, softmax."),
        ({"family": "cnn"}, "model family is 'cnn'"),
        ({"family": ["mlp"]}, "model family is ['mlp']"),
        ({"family": "softmax", "hidden": [4]}, "softmax model field is 'hidden'; allowed: family."),
        ({"family": "mlp"}, f"model hidden is None; allowed: a list of 1 to {HIDDEN_LAYERS_MAX} widths."),
        ({"family": "mlp", "hidden": []}, "model hidden is []"),
        ({"family": "mlp", "hidden": [4] * 9}, "a list of 1 to 8 widths"),
        ({"family": "mlp", "hidden": [4, 0]}, "model hidden[1] is 0; allowed: a whole number from 1 to 4096."),
        ({"family": "mlp", "hidden": [4097]}, "model hidden[0] is 4097"),
        ({"family": "mlp", "hidden": [True]}, "model hidden[0] is True"),
        ({"family": "mlp", "hidden": "64"}, "model hidden is '64'"),
        ({"family": "mlp", "hidden": [4], "widht": 3}, "mlp model field is 'widht'; allowed: family, hidden."),
    ],
)
def test_a_bad_model_is_refused_with_field_value_and_what_is_allowed(spec: Mapping[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build_model(spec, INPUTS, CLASSES)
    assert said in caught.value.sentence
    assert caught.value.code == "BAD_SPECIFICATION"


@pytest.mark.parametrize(("inputs", "classes"), [(0, 3), (4, 1), (65_537, 3), (4, 4097)])
def test_shapes_out_of_range_are_refused(inputs: int, classes: int) -> None:
    with pytest.raises(SettingsError):
        build_model({"family": "softmax"}, inputs, classes)
