"""The dense network behind the families `softmax` and `linear` (no hidden layer) and `mlp` (ReLU layers), in float32.

Gradients by backpropagation (Rumelhart, Hinton & Williams, Nature 323, 1986) of the mean loss; what is lost is a part,
`losses`. Matrix products are BLAS calls: bits are equal on machines of one CPU type, BLAS build and thread count, not
between them.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from services.common.learning.bits import Purpose, raw_bits, unit_uniforms
from services.common.learning.examples import Rows
from services.common.learning.losses import CROSS_ENTROPY, Loss
from services.common.learning.parameters import Floats, Layout, TakePart, Targets, aligned_empty, layout_of

EVALUATION_ROWS = 4096
"""Rows per forward pass in `evaluate` and `predict`, so that memory does not grow with the data."""

PART_VALUES = 1 << 17
"""Parameters in a part of the gradient: with these it takes 1 MiB, for the CPU's second-level cache to hold."""


class Perceptron:
    """Layers of `widths`: inputs, hidden widths, outputs (one for each class, or one). Satisfies `models.Model`."""

    def __init__(self, widths: tuple[int, ...], loss: Loss = CROSS_ENTROPY) -> None:
        self.widths = widths
        self._loss = loss
        self.layout = layout_of(
            array
            for i, (rows, columns) in enumerate(pairwise(widths))
            for array in ((f"weight{i}", (rows, columns)), (f"bias{i}", (columns,)))
        )
        self._pieces = _pieces_of(self.layout)
        self._capacity = 0
        self._buffers: list[Floats] = []
        self._gradients: list[Floats] = []

    @property
    def n_parameters(self) -> int:
        """Length of the flat vector."""
        return self.layout.n

    def initial_parameters(self, seed: int) -> Floats:
        """He-uniform weights and zero biases, float32[n], owned by the caller.

        U(-b, b) with b = sqrt(6 / inputs of the layer) has the variance 2 / inputs of He et al., ICCV 2015, eq. 10.
        Only raw bits, exact scalings and a correctly rounded square root: the same bits on every CPU.
        """
        flat = np.zeros(self.layout.n, dtype=np.float32)
        uniforms = unit_uniforms(raw_bits(Purpose.PARAMETERS, seed, 0, 0, self.layout.n))
        for name, shape, offset in zip(self.layout.names, self.layout.shapes, self.layout.offsets, strict=True):
            if name.startswith("weight"):
                part = slice(offset, offset + shape[0] * shape[1])
                flat[part] = (2.0 * uniforms[part] - 1.0) * np.sqrt(6.0 / shape[0])
        return flat

    def loss_and_gradient(self, params: Floats, x: Floats, y: Targets, gradient_out: Floats) -> tuple[float, int]:
        """Mean loss of x float32[b, inputs] and y (int64[b] or float32[b]), and the number classified right.

        `gradient_out` (float32[n], the caller's) is overwritten with the gradient of the mean. Numbers that are not
        finite give a loss that is not finite, without a warning: the caller looks at the loss.
        """

        def take(start: int, part: Floats) -> None:
            gradient_out[start : start + len(part)] = part

        return self.gradient_in_parts(params, x, y, take)

    def gradient_in_parts(self, params: Floats, x: Floats, y: Targets, take: TakePart) -> tuple[float, int]:
        """The same, but the gradient goes to `take` in parts that follow one another from the last to the first.

        Each is within one layer, and small enough for the CPU's cache; a small model is one part.
        """
        weights, biases = self._split(params)
        with np.errstate(over="ignore", invalid="ignore"):
            activations = [x, *self._forward(weights, biases, x)]
            error = activations.pop()
            loss, n_correct = self._loss.measure(error, y)
            self._loss.differentiate(error, y)
            error /= np.float32(len(y))  # of the mean
            for i in reversed(range(len(weights))):
                back = error
                if i:  # before `take` changes these weights
                    back = self._gradients[i - 1][: len(y)]
                    np.matmul(error, weights[i].T, out=back)
                    back *= activations[i] > 0
                for piece in self._pieces[i]:
                    np.matmul(activations[i][:, piece.rows].T, error, out=piece.weights)
                    if piece.biases is not None:
                        np.add.reduce(error, axis=0, out=piece.biases)
                    if piece.part is not None:
                        take(piece.start, piece.part)
                error = back
        return loss / len(y), n_correct

    def evaluate(self, params: Floats, x: Rows, y: Targets) -> tuple[float, float]:
        """Mean loss over x float32[rows, inputs] and y, and the accuracy (0..1), or R^2 where a number is learnt."""
        weights, biases = self._split(params)
        loss, n_correct = 0.0, 0
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(y), EVALUATION_ROWS):
                part = slice(start, start + EVALUATION_ROWS)
                part_loss, part_correct = self._loss.measure(self._forward(weights, biases, x[part])[-1], y[part])
                loss += part_loss
                n_correct += part_correct
        return loss / len(y), self._loss.score(loss, n_correct, y)

    def predict(self, params: Floats, x: Rows) -> Floats:
        """Probabilities float32[rows, classes], or numbers float32[rows, 1], for x; the caller owns the result."""
        weights, biases = self._split(params)
        answers = np.empty((len(x), self.widths[-1]), dtype=np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(x), EVALUATION_ROWS):
                part = slice(start, start + EVALUATION_ROWS)
                outputs = self._forward(weights, biases, x[part])[-1]
                self._loss.answer(outputs)
                answers[part] = outputs
        return answers

    def _split(self, flat: Floats) -> tuple[list[Floats], list[Floats]]:
        arrays = list(self.layout.views(flat).values())
        return arrays[0::2], arrays[1::2]

    def _forward(self, weights: list[Floats], biases: list[Floats], x: Floats) -> list[Floats]:
        """The output of every layer, in this object's buffers: valid until the next call."""
        self._reserve(len(x))
        outputs: list[Floats] = []
        value = x
        for weight, bias, buffer in zip(weights, biases, self._buffers, strict=True):
            output = buffer[: len(x)]
            np.matmul(value, weight, out=output)
            output += bias
            if len(outputs) < len(weights) - 1:
                np.maximum(output, np.float32(0), out=output)
            outputs.append(output)
            value = output
        return outputs

    def _reserve(self, rows: int) -> None:
        if rows > self._capacity:
            self._capacity = rows
            self._buffers = [aligned_empty(rows, width) for width in self.widths[1:]]
            self._gradients = [aligned_empty(rows, width) for width in self.widths[1:-1]]


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Some rows of one layer's weights, and where their gradient is written."""

    rows: slice
    weights: Floats
    biases: Floats | None
    """With the layer's last rows come its biases."""
    start: int
    """The first of these parameters."""
    part: Floats | None
    """The part of the gradient that begins there and is complete with this piece, if one does."""


def _pieces_of(layout: Layout) -> list[list[_Piece]]:
    """The pieces of each layer, the last rows first. All share one buffer, of a part or of the whole gradient."""
    whole = layout.n <= PART_VALUES
    buffer = aligned_empty(layout.n if whole else PART_VALUES + 2 * max(columns for (columns,) in layout.shapes[1::2]))
    layers: list[list[_Piece]] = []
    for (rows, columns), offset in zip(layout.shapes[0::2], layout.offsets[0::2], strict=True):
        n_pieces = 1 if whole else math.ceil(rows * columns / PART_VALUES)
        height = math.ceil(rows / n_pieces)
        layers.append([])
        for first in reversed(range(0, rows, height)):
            last = min(first + height, rows)
            start = offset + first * columns
            begin = start if whole else 0
            end = begin + (last - first) * columns
            weights = buffer[begin:end].reshape(last - first, columns)
            biases = buffer[end : end + columns] if last == rows else None
            if whole:
                part = buffer if start == 0 else None
            else:
                part = buffer[:end] if biases is None else buffer[: end + columns]
            layers[-1].append(_Piece(slice(first, last), weights, biases, start, part))
    return layers
