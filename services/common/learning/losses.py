"""What a dense network minimises and what its outputs mean: classes by cross-entropy, a number by squared error."""

from typing import Protocol

import numpy as np

from services.common.learning.parameters import Floats, Targets

R2_MIN = -1.0
"""A regression's R^2 as `score` tells it is never less: what diverges must not stretch every scale."""


class Loss(Protocol):
    """All work in place on the last layer's outputs float32[rows, outputs]: a training step allocates nothing large."""

    def answer(self, outputs: Floats) -> None:
        """Turns outputs into what the model answers."""

    def measure(self, outputs: Floats, y: Targets) -> tuple[float, int]:
        """The same; returns the summed loss and the number of rows classified right."""

    def differentiate(self, answers: Floats, y: Targets) -> None:
        """Turns answers into d(summed loss) / d(outputs)."""

    def score(self, loss: float, n_correct: int, y: Targets) -> float:
        """One figure for people, 1 at best, of the summed loss and the number right over all of y."""


class CrossEntropy:
    """Softmax over classes, y int64[rows]; answers are probabilities, the score is the accuracy."""

    def answer(self, outputs: Floats) -> None:
        """Logits become probabilities."""
        outputs -= outputs.max(axis=1, keepdims=True)  # the largest is 0: exp cannot overflow
        _normalised_exp(outputs)

    def measure(self, outputs: Floats, y: Targets) -> tuple[float, int]:
        """Logits become probabilities; summed cross-entropy and number right."""
        n_correct = int(np.count_nonzero(outputs.argmax(axis=1) == y))
        outputs -= outputs.max(axis=1, keepdims=True)
        at_label = outputs[np.arange(len(y)), y]
        total = _normalised_exp(outputs)
        return float(np.sum(np.log(total[:, 0]) - at_label, dtype=np.float64)), n_correct

    def differentiate(self, answers: Floats, y: Targets) -> None:
        """p - onehot."""
        answers[np.arange(len(y)), y] -= np.float32(1)

    def score(self, loss: float, n_correct: int, y: Targets) -> float:
        """Accuracy, 0..1."""
        return n_correct / len(y)


class SquaredError:
    """One output for a number y float32[rows]; the loss is (y - f)^2 without a half, as in torch's MSELoss and Keras.

    The score is R^2 = 1 - sum (y - f)^2 / sum (y - mean of y)^2, at least R2_MIN. Where all y are equal it is 1 when
    every answer is exact, else 0, as in scikit-learn.
    """

    def answer(self, outputs: Floats) -> None:
        """The output is the answer."""

    def measure(self, outputs: Floats, y: Targets) -> tuple[float, int]:
        """Summed squared error; nothing is classified, so 0 are right."""
        return float(np.sum(np.square(outputs[:, 0] - y), dtype=np.float64)), 0

    def differentiate(self, answers: Floats, y: Targets) -> None:
        """2 (f - y)."""
        answers[:, 0] -= y
        answers *= np.float32(2)

    def score(self, loss: float, n_correct: int, y: Targets) -> float:
        """R^2."""
        about_mean = float(np.sum(np.square(y - np.mean(y, dtype=np.float64))))
        if about_mean == 0:
            return 1.0 if loss == 0 else 0.0
        return max(R2_MIN, 1 - loss / about_mean)  # R2_MIN, too, when the loss is NaN


CROSS_ENTROPY, SQUARED_ERROR = CrossEntropy(), SquaredError()


def _normalised_exp(shifted: Floats) -> Floats:
    """Shifted logits become probabilities, in place; returns the sums that they were divided by, float32[rows, 1]."""
    np.exp(shifted, out=shifted)
    total: Floats = shifted.sum(axis=1, keepdims=True)
    shifted /= total
    return total
