"""Measures against figures written out by hand."""

import math

import numpy as np
import pytest

from services.common.learning.measures import Alarm, ClassMeasures, classification, regression

# Ten rows of classes 0 to 3; class 3 is in no row and never answered, class 2 is never answered.
Y = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2])
ANSWERS = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1])


def test_a_classification_by_hand() -> None:
    found = classification(Y, ANSWERS, [10, 30, 5, 1])
    assert found.confusion == [[3, 1, 0, 0], [1, 2, 0, 0], [1, 2, 0, 0], [0, 0, 0, 0]]
    assert (found.accuracy, found.majority, found.baseline) == (0.5, 1, 0.3)
    assert found.classes == [
        ClassMeasures(3 / 5, 3 / 4, 6 / 9, 4),
        ClassMeasures(2 / 5, 2 / 3, 4 / 8, 3),
        ClassMeasures(None, 0.0, 0.0, 3),
        ClassMeasures(None, None, None, 0),
    ]
    assert found.alarms == []


def test_one_answer_for_all_is_an_alarm_with_its_class_and_share() -> None:
    found = classification(Y, np.zeros_like(Y), [10, 9, 8])
    assert found.alarms == [
        Alarm("LEARNED_NOTHING", {"accuracy": 0.4, "baseline": 0.4}),
        Alarm("ONE_CLASS", {"class": 0, "share": 0.4}),
    ]


def test_worse_than_the_most_frequent_class_has_learnt_nothing() -> None:
    found = classification(np.array([0, 0, 0, 1]), np.array([1, 0, 0, 0]), [3, 1])
    assert found.alarms == [Alarm("LEARNED_NOTHING", {"accuracy": 0.5, "baseline": 0.75})]


@pytest.mark.parametrize("y", [Y, np.zeros_like(Y)], ids=["all classes", "one class"])
def test_all_right_is_never_an_alarm(y: np.ndarray) -> None:
    assert classification(y, y, [10, 9, 8]).alarms == []


def test_a_regression_by_hand() -> None:
    found = regression(np.array([1.0, 2, 3, 6]), np.array([1.0, 3, 3, 4]), train_mean=2.0)
    assert (found.mae, found.rmse) == (3 / 4, math.sqrt(5 / 4))
    assert found.r2 == pytest.approx(1 - 5 / 14)
    assert (found.baseline_mae, found.baseline_rmse) == (6 / 4, math.sqrt(18 / 4))
    assert found.alarms == []


def test_a_regression_no_better_than_the_mean_is_an_alarm() -> None:
    y = np.array([1.0, 3])
    assert regression(y, np.array([2.0, 2]), 2.0).alarms == [Alarm("LEARNED_NOTHING", {"rmse": 1.0, "baseline": 1.0})]
    [alarm] = regression(y, np.array([math.nan, 2]), 2.0).alarms
    assert alarm.kind == "LEARNED_NOTHING"
    assert regression(np.ones(3), np.ones(3), 1.0).alarms == []
    assert regression(np.ones(3), np.ones(3), 1.0).r2 is None
