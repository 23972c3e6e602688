"""Predictions against sums by hand."""

import math

import numpy as np
import pytest

from services.common.errors import CheckpointError, DatasetError
from services.common.learning.prediction import predict
from services.common.learning.preprocessing import plain, read_preprocessing

AGE = {"name": "age", "kind": "number", "fill": 40.0, "mean": 30.0, "scale": 10.0}
PRICE = {"name": "price", "kind": "number", "mean": 100.0, "scale": 50.0}
REGRESSION = read_preprocessing({"version": 1, "kind": "table", "columns": [AGE], "label": PRICE})


def test_a_number_comes_in_the_unit_of_the_label() -> None:
    parameters = np.array([2, 0.5], dtype=np.float32)  # weight and bias
    found = predict(parameters, {"family": "linear"}, REGRESSION, [["50"], {"age": None}])
    assert found == [{"value": (2 * 2 + 0.5) * 50 + 100}, {"value": (2 * 1 + 0.5) * 50 + 100}]


def test_the_likeliest_classes_come_first_and_no_more_than_asked_for() -> None:
    parameters = np.array([0, math.log(3), math.log(6), 0, 0, 0], dtype=np.float32)
    [answer, even] = predict(parameters, {"family": "softmax"}, plain(1, 3), [[1], [0]], top=2)
    assert [one["label"] for one in answer["top"]] == ["2", "1"]
    assert [one["probability"] for one in answer["top"]] == pytest.approx([0.6, 0.3])
    assert [one["label"] for one in even["top"]] == ["0", "1"], "equal ones in their order"
    assert predict(parameters, {"family": "softmax"}, plain(1, 3), []) == []


def test_a_bad_row_and_other_parameters_are_refused() -> None:
    with pytest.raises(DatasetError, match="Row 1"):
        predict(np.zeros(2, np.float32), {"family": "linear"}, REGRESSION, [["old"]])
    with pytest.raises(CheckpointError, match="has 3 parameters, but its model has 2"):
        predict(np.zeros(3, np.float32), {"family": "linear"}, REGRESSION, [["1"]])
