"""What is learnt: one of some classes, or a number; from raw label values to a model's targets, and back."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from services.common.learning.parameters import Floats, Ints
from services.common.learning.preprocessing.values import MISSING, number_of, refuse_value, words_of
from services.common.learning.shapes import CLASSES_MAX
from services.common.learning.specification import Specification, check_fields, choice, real, refuse

SIZE_MAX = 1e300
SCALE_MIN = 1e-300


@dataclass(frozen=True, slots=True)
class Category:
    """One of `values`; its target is the place in them."""

    name: str
    values: tuple[str, ...]
    _places: dict[str, int] = field(repr=False, compare=False)

    @property
    def classes(self) -> int:
        """How many there are, for `build_model`."""
        return len(self.values)

    def targets(self, values: Sequence[object]) -> Ints:
        """int64[n]; DatasetError names the row (from 1) whose label is missing or is none of the values."""
        targets = np.empty(len(values), dtype=np.int64)
        for i, value in enumerate(values):
            try:
                place = place_of(value, self._places)
            except ValueError:
                place = None
            if place is None:
                known = ", ".join(self.values[:5]) + (", ..." if len(self.values) > 5 else "")
                raise refuse_value(i + 1, self.name, value, known)
            targets[i] = place
        return targets

    def answer(self, target: int) -> str:
        """The class of a target 0..classes-1."""
        return self.values[target]


@dataclass(frozen=True, slots=True)
class Number:
    """A number; its target is standardised: (value - mean) / scale."""

    name: str
    mean: float
    scale: float
    decimal: str = "."

    @property
    def classes(self) -> int:
        """0: a regression, for `build_model`."""
        return 0

    def targets(self, values: Sequence[object]) -> Floats:
        """float32[n], finite; DatasetError names the row (from 1) whose label is missing or is no number."""
        targets = np.empty(len(values), dtype=np.float32)
        for i, value in enumerate(values):
            try:
                number = number_of(value, self.decimal)
            except ValueError:
                number = np.nan
            with np.errstate(over="ignore"):
                targets[i] = (number - self.mean) / self.scale
            if not np.isfinite(targets[i]):
                raise refuse_value(i + 1, self.name, value, "a finite number")
        return targets

    def answer(self, target: float) -> float:
        """The number of a target, in the unit of the label."""
        return float(target) * self.scale + self.mean


Label = Category | Number


def place_of(value: object, places: dict[str, int]) -> int | None:
    """Where a value stands; None when it is missing or unknown. ValueError when it is no value at all."""
    return next((places[word] for word in words_of(value) if word in places), None)


def places_in(values: Sequence[str]) -> dict[str, int]:
    """Each value's place."""
    return {value: i for i, value in enumerate(values)}


def read_label(data: Specification, decimal: str = ".") -> Label:
    """The `label` of a preprocessing; SettingsError names a bad field."""
    label = data.get("label")
    if not isinstance(label, dict):
        raise refuse("label", label, "an object with name and kind")
    name = read_name("label name", label.get("name"))
    if choice("label", label, "kind", ("category", "number")) == "category":
        check_fields("label", label, ("name", "kind", "values"))
        values = read_values("label values", label.get("values"), 2, CLASSES_MAX)
        return Category(name, values, places_in(values))
    check_fields("label", label, ("name", "kind", "mean", "scale"))
    return Number(name, *read_scaling("label", label), decimal)


def read_name(where: str, value: object) -> str:
    """The name of a column."""
    if not isinstance(value, str) or not value.strip():
        raise refuse(where, value, "a name")
    return value


def read_scaling(where: str, data: Specification) -> tuple[float, float]:
    """`mean` and `scale`: finite, and the scale positive."""
    mean = real(f"{where} mean", data.get("mean"), -SIZE_MAX, SIZE_MAX)
    return mean, real(f"{where} scale", data.get("scale"), SCALE_MIN, SIZE_MAX)


def read_values(where: str, values: Any, at_least: int, at_most: int) -> tuple[str, ...]:
    """Words that differ: none is missing, none has spaces around it, so that each can be met in a row."""
    if not isinstance(values, list | tuple) or not at_least <= len(values) <= at_most:
        raise refuse(where, values, f"a list of {at_least} to {at_most} words")
    seen: set[str] = set()
    for i, value in enumerate(values):
        if not isinstance(value, str) or value != value.strip() or value in MISSING or value in seen:
            text = "a word that no other value is, without spaces around it, and none that means missing"
            raise refuse(f"{where}[{i}]", value, text)
        seen.add(value)
    return tuple(values)
