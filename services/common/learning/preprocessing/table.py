"""Tables: numbers are filled, standardised and clamped; categories become one input for each value and one for others.

Two steps, as in an exported model: `parse` reads raw values, `encode` is arithmetic alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from services.common.learning.parameters import Floats, Ints
from services.common.learning.preprocessing.labels import (
    SIZE_MAX,
    Label,
    place_of,
    places_in,
    read_label,
    read_name,
    read_scaling,
    read_values,
)
from services.common.learning.preprocessing.values import DECIMALS, cells, number_of, refuse_value
from services.common.learning.shapes import INPUTS_MAX
from services.common.learning.specification import Specification, check_fields, choice, real, refuse

CLAMP = 10.0
"""An input lies in -CLAMP..CLAMP: one wild value must not drown the others."""

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """One input: clamp(((x if known else fill) - mean) / scale)."""

    name: str
    fill: float
    mean: float
    scale: float
    inputs: int = 1


@dataclass(frozen=True, slots=True)
class CategoryColumn:
    """len(values) + 1 inputs, one of them 1: the last for a missing value and for one that is not in `values`."""

    name: str
    values: tuple[str, ...]
    places: dict[str, int] = field(repr=False, compare=False)

    @property
    def inputs(self) -> int:
        """How many inputs it makes."""
        return len(self.values) + 1


@dataclass(frozen=True, slots=True)
class Table:
    """Columns in the order of the inputs; `decimal` is the mark in numbers that come as strings."""

    columns: tuple[NumberColumn | CategoryColumn, ...]
    label: Label
    decimal: str = "."

    @property
    def inputs(self) -> int:
        """Numbers in a model's row."""
        return sum(column.inputs for column in self.columns)

    @property
    def numbers(self) -> list[NumberColumn]:
        """The columns of `parse`'s first array."""
        return [column for column in self.columns if isinstance(column, NumberColumn)]

    @property
    def categories(self) -> list[CategoryColumn]:
        """The columns of `parse`'s second array."""
        return [column for column in self.columns if isinstance(column, CategoryColumn)]

    def transform(self, rows: Sequence[object]) -> Floats:
        """Raw rows (a list of values each, or a dict by column) as float32[n, inputs], finite; the caller owns it.

        DatasetError names row (from 1), column and value of what cannot be used; the rule is in `values`.
        """
        return self.encode(*self.parse(rows))

    def parse(self, rows: Sequence[object]) -> tuple[Doubles, Ints]:
        """float64[n, numbers], NaN for what is missing; int64[n, categories], places, and len(values) for others."""
        numbers = np.empty((len(rows), len(self.numbers)))
        places = np.empty((len(rows), len(self.categories)), dtype=np.int64)
        for i, row in enumerate(cells(rows, [column.name for column in self.columns])):
            a = b = 0
            for column, value in zip(self.columns, row, strict=True):
                if isinstance(column, NumberColumn):
                    numbers[i, a] = self._number(i, column, value)
                    a += 1
                else:
                    places[i, b] = _place(i, column, value)
                    b += 1
        return numbers, places

    def encode(self, numbers: Doubles, places: Ints) -> Floats:
        """float32[n, inputs] of what `parse` gives; for columns that are arrays already, too."""
        inputs = np.zeros((len(numbers), self.inputs), dtype=np.float32)
        rows = np.arange(len(numbers))
        at = a = b = 0
        for column in self.columns:
            if isinstance(column, NumberColumn):
                inputs[:, at] = _scaled(numbers[:, a], column)
                a += 1
            else:
                known = (places[:, b] >= 0) & (places[:, b] < len(column.values))
                inputs[rows, at + np.where(known, places[:, b], len(column.values))] = 1
                b += 1
            at += column.inputs
        return inputs

    def _number(self, i: int, column: NumberColumn, value: object) -> float:
        try:
            return number_of(value, self.decimal)
        except ValueError:
            allowed = f"a number with {self.decimal!r} as its decimal mark, or nothing"
            raise refuse_value(i + 1, column.name, value, allowed) from None


def _place(i: int, column: CategoryColumn, value: object) -> int:
    try:
        place = place_of(value, column.places)
    except ValueError:
        raise refuse_value(i + 1, column.name, value, "a string, a number or nothing") from None
    return len(column.values) if place is None else place


def _scaled(numbers: Doubles, column: NumberColumn) -> Doubles:
    filled = np.where(np.isfinite(numbers), numbers, column.fill)
    with np.errstate(over="ignore"):
        return np.clip((filled - column.mean) / column.scale, -CLAMP, CLAMP)


def read_table(data: Specification) -> Table:
    """A table's preprocessing from JSON; SettingsError names a bad field."""
    check_fields("preprocessing", data, ("version", "kind", "columns", "label", "decimal"))
    decimal = data.get("decimal", ".")
    if decimal not in DECIMALS:
        raise refuse("preprocessing decimal", decimal, " or ".join(map(repr, DECIMALS)))
    found = data.get("columns")
    if not isinstance(found, list | tuple) or not 1 <= len(found) <= INPUTS_MAX:
        raise refuse("preprocessing columns", found, f"a list of 1 to {INPUTS_MAX} columns")
    columns = tuple(_read_column(f"columns[{i}]", column) for i, column in enumerate(found))
    table = Table(columns, read_label(data, decimal), decimal)
    names = [column.name for column in columns]
    if len(set(names)) < len(names) or table.label.name in names:
        twice = next(name for name in (*names, table.label.name) if [*names, table.label.name].count(name) > 1)
        raise refuse("preprocessing columns", twice, "names that differ, also from the label's")
    if table.inputs > INPUTS_MAX:
        raise refuse("preprocessing columns", f"{table.inputs} inputs", f"at most {INPUTS_MAX} inputs")
    return table


def _read_column(where: str, data: object) -> NumberColumn | CategoryColumn:
    if not isinstance(data, dict):
        raise refuse(where, data, "an object with name and kind")
    name = read_name(f"{where} name", data.get("name"))
    if choice(where, data, "kind", ("category", "number")) == "category":
        check_fields(where, data, ("name", "kind", "values"))
        values = read_values(f"{where} values", data.get("values"), 0, INPUTS_MAX)
        return CategoryColumn(name, values, places_in(values))
    check_fields(where, data, ("name", "kind", "fill", "mean", "scale"))
    fill = real(f"{where} fill", data.get("fill"), -SIZE_MAX, SIZE_MAX)
    return NumberColumn(name, fill, *read_scaling(where, data))
