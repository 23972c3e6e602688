"""How good a model is on rows that it did not learn from, beside what answering without looking would give.

Pure: true values and answers in, figures out. What cannot be said (a class that no row has) is None, never 0.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.common.learning.parameters import Ints

Numbers = npt.NDArray[np.floating[Any]]

LEARNED_NOTHING = "LEARNED_NOTHING"
ONE_CLASS = "ONE_CLASS"


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that people must be told; `values` go into the sentence, by name."""

    kind: str
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class ClassMeasures:
    """Of one class. `precision` is None when it was never answered, `recall` when no row has it, `f1` when both."""

    precision: float | None
    recall: float | None
    f1: float | None
    rows: int


@dataclass(frozen=True, slots=True)
class ClassificationMeasures:
    """`confusion[i][j]`: rows of class i answered j. `baseline`: the accuracy of training's most frequent class."""

    accuracy: float
    baseline: float
    majority: int
    confusion: list[list[int]]
    classes: list[ClassMeasures]
    alarms: list[Alarm]


@dataclass(frozen=True, slots=True)
class RegressionMeasures:
    """In the unit of the label. R^2 is None when all true values are equal. `baseline_*`: answering training's mean."""

    mae: float
    rmse: float
    r2: float | None
    baseline_mae: float
    baseline_rmse: float
    alarms: list[Alarm]


def confusion_matrix(y: Ints, answers: Ints, classes: int) -> Ints:
    """int64[classes, classes]: rows are the true classes, columns the answers."""
    matrix = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(matrix, (y, answers), 1)
    return matrix


def classification(y: Ints, answers: Ints, train_counts: list[int]) -> ClassificationMeasures:
    """Of labels and answers int64[n], n >= 1; `train_counts`: training rows of each class.

    LEARNED_NOTHING: the accuracy is not above the baseline. ONE_CLASS: all rows got one answer, and not all have it.
    """
    assert len(y) == len(answers) >= 1, f"{len(y)} labels and {len(answers)} answers"
    matrix = confusion_matrix(y, answers, len(train_counts))
    accuracy = int(np.trace(matrix)) / len(y)
    majority = int(np.argmax(train_counts))
    baseline = int(matrix[majority].sum()) / len(y)
    alarms = []
    if accuracy <= baseline and accuracy < 1:
        alarms.append(Alarm(LEARNED_NOTHING, {"accuracy": accuracy, "baseline": baseline}))
    if np.count_nonzero(matrix.sum(axis=0)) == 1 and accuracy < 1:
        alarms.append(Alarm(ONE_CLASS, {"class": int(answers[0]), "share": accuracy}))
    each = [_of_class(matrix, i) for i in range(len(matrix))]
    return ClassificationMeasures(accuracy, baseline, majority, matrix.tolist(), each, alarms)


def regression(y: Numbers, answers: Numbers, train_mean: float) -> RegressionMeasures:
    """Of true numbers and answers float[n], n >= 1, both in the unit of the label; sums are in float64.

    LEARNED_NOTHING: the root mean squared error is not below that of always answering the mean of training, or is NaN.
    """
    assert len(y) == len(answers) >= 1, f"{len(y)} numbers and {len(answers)} answers"
    truth = np.asarray(y, dtype=np.float64)
    mae, rmse = _errors(truth, np.asarray(answers, dtype=np.float64))
    baseline_mae, baseline_rmse = _errors(truth, np.full(len(truth), train_mean))
    spread = float(np.var(truth))
    r2 = 1 - rmse**2 / spread if spread > 0 else None
    nothing = rmse > 0 and not rmse < baseline_rmse
    alarms = [Alarm(LEARNED_NOTHING, {"rmse": rmse, "baseline": baseline_rmse})] if nothing or math.isnan(rmse) else []
    return RegressionMeasures(mae, rmse, r2, baseline_mae, baseline_rmse, alarms)


def _of_class(matrix: Ints, i: int) -> ClassMeasures:
    right, answered, rows = int(matrix[i, i]), int(matrix[:, i].sum()), int(matrix[i].sum())
    return ClassMeasures(
        right / answered if answered else None,
        right / rows if rows else None,
        2 * right / (answered + rows) if answered + rows else None,
        rows,
    )


def _errors(truth: np.ndarray, answers: np.ndarray) -> tuple[float, float]:
    differences = truth - answers
    return float(np.mean(np.abs(differences))), math.sqrt(float(np.mean(np.square(differences))))
