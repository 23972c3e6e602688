"""Models: what a model can do, and how a specification becomes one.

A model is data, never code: `{"family": "softmax"}` or `{"family": "mlp", "hidden": [64, 64]}`. The numbers live in
a flat vector that the caller owns; a model object holds only shapes and scratch buffers.
"""

from typing import Protocol

from services.common.learning.parameters import Floats, Ints, Layout, TakePart
from services.common.learning.perceptron import Perceptron
from services.common.learning.specification import Specification, check_fields, choice, refuse, whole

HIDDEN_WIDTH_MAX = 4096
HIDDEN_LAYERS_MAX = 8
INPUTS_MAX = 65_536
CLASSES_MAX = 4096

FAMILIES = ("mlp", "softmax")


class Model(Protocol):
    """A model of one shape. It keeps scratch buffers, so one object serves one thread at a time."""

    layout: Layout

    @property
    def n_parameters(self) -> int:
        """Length of the flat vector."""

    def initial_parameters(self, seed: int) -> Floats:
        """A new float32[n_parameters], the same on every machine for the same seed."""

    def loss_and_gradient(self, params: Floats, x: Floats, y: Ints, gradient_out: Floats) -> tuple[float, int]:
        """Mean loss over the rows and the number classified right; the gradient of that mean goes to `gradient_out`."""

    def gradient_in_parts(self, params: Floats, x: Floats, y: Ints, take: TakePart) -> tuple[float, int]:
        """The same, but the gradient goes to `take` in parts that follow one another from the last to the first.

        A part comes as soon as it is known and its parameters are read no more: `take` may change these, and the part.
        So an optimizer finds both in the CPU's cache, and the whole gradient need not lie in memory.
        """

    def evaluate(self, params: Floats, x: Floats, y: Ints) -> tuple[float, float]:
        """Mean loss and accuracy (0..1) over all rows."""

    def predict(self, params: Floats, x: Floats) -> Floats:
        """Probabilities, float32[rows, classes], in memory the caller owns."""


def build_model(spec: Specification, inputs: int, classes: int) -> Model:
    """The model of `spec` for rows of `inputs` numbers and labels 0..classes-1; SettingsError names a bad field."""
    whole("inputs", inputs, 1, INPUTS_MAX)
    whole("classes", classes, 2, CLASSES_MAX)
    if choice("model", spec, "family", FAMILIES) == "softmax":
        check_fields("softmax model", spec, ("family",))
        return Perceptron((inputs, classes))
    check_fields("mlp model", spec, ("family", "hidden"))
    return Perceptron((inputs, *_hidden_widths(spec), classes))


def _hidden_widths(spec: Specification) -> tuple[int, ...]:
    hidden = spec.get("hidden")
    if not isinstance(hidden, list | tuple) or not 1 <= len(hidden) <= HIDDEN_LAYERS_MAX:
        raise refuse("model hidden", hidden, f"a list of 1 to {HIDDEN_LAYERS_MAX} widths")
    return tuple(whole(f"model hidden[{i}]", width, 1, HIDDEN_WIDTH_MAX) for i, width in enumerate(hidden))
