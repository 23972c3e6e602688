"""Models: what a model can do, and how a specification becomes one.

A model is data, never code: `{"family": "softmax"}` or `{"family": "mlp", "hidden": [64, 64]}`. The numbers live in
a flat vector that the caller owns; a model object holds only shapes and scratch buffers. Classes 0 is a regression: one
number is learnt, with squared error, by `linear` or `mlp`.
"""

from typing import Protocol

from services.common.learning.examples import Rows
from services.common.learning.losses import CROSS_ENTROPY, SQUARED_ERROR
from services.common.learning.parameters import Floats, Layout, TakePart, Targets
from services.common.learning.perceptron import Perceptron
from services.common.learning.shapes import CLASSES_MAX, INPUTS_MAX
from services.common.learning.specification import Specification, check_fields, choice, refuse, whole

HIDDEN_WIDTH_MAX = 4096
HIDDEN_LAYERS_MAX = 8

FAMILIES = ("linear", "mlp", "softmax")


class Model(Protocol):
    """A model of one shape. It keeps scratch buffers, so one object serves one thread at a time."""

    layout: Layout

    @property
    def n_parameters(self) -> int:
        """Length of the flat vector."""

    def initial_parameters(self, seed: int) -> Floats:
        """A new float32[n_parameters], the same on every machine for the same seed."""

    def loss_and_gradient(self, params: Floats, x: Floats, y: Targets, gradient_out: Floats) -> tuple[float, int]:
        """Mean loss over the rows and the number classified right (0 in a regression); the gradient of that mean goes
        to `gradient_out`.
        """

    def gradient_in_parts(self, params: Floats, x: Floats, y: Targets, take: TakePart) -> tuple[float, int]:
        """The same, but the gradient goes to `take` in parts that follow one another from the last to the first.

        A part comes as soon as it is known and its parameters are read no more: `take` may change these, and the part.
        So an optimizer finds both in the CPU's cache, and the whole gradient need not lie in memory.
        """

    def evaluate(self, params: Floats, x: Rows, y: Targets) -> tuple[float, float]:
        """Mean loss over all rows, and the accuracy (0..1), which of a regression is R^2 (-1..1, see `losses`)."""

    def predict(self, params: Floats, x: Rows) -> Floats:
        """Probabilities, float32[rows, classes], or standardised numbers, float32[rows, 1]; the caller owns them."""


def build_model(spec: Specification, inputs: int, classes: int) -> Model:
    """The model of `spec` for rows of `inputs` numbers and labels 0..classes-1, or for a number when `classes` is 0.

    SettingsError names a bad field.
    """
    whole("inputs", inputs, 1, INPUTS_MAX)
    if whole("classes", classes, 0, CLASSES_MAX) == 1:
        raise refuse("classes", classes, f"2 to {CLASSES_MAX}, or 0 where a number is learnt")
    family = choice("model", spec, "family", FAMILIES)
    if family == ("linear" if classes else "softmax"):
        allowed = "softmax or mlp, for classes" if classes else "linear or mlp, for a number"
        raise refuse("model family", family, allowed)
    hidden: tuple[int, ...] = ()
    if family == "mlp":
        check_fields("mlp model", spec, ("family", "hidden"))
        hidden = _hidden_widths(spec)
    else:
        check_fields(f"{family} model", spec, ("family",))
    return Perceptron((inputs, *hidden, classes or 1), CROSS_ENTROPY if classes else SQUARED_ERROR)


def _hidden_widths(spec: Specification) -> tuple[int, ...]:
    hidden = spec.get("hidden")
    if not isinstance(hidden, list | tuple) or not 1 <= len(hidden) <= HIDDEN_LAYERS_MAX:
        raise refuse("model hidden", hidden, f"a list of 1 to {HIDDEN_LAYERS_MAX} widths")
    return tuple(whole(f"model hidden[{i}]", width, 1, HIDDEN_WIDTH_MAX) for i, width in enumerate(hidden))
