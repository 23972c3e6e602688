"""Numbers that are a model's inputs as they are: the built-in data sets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from services.common.learning.parameters import Floats
from services.common.learning.preprocessing.labels import Category, Label, places_in, read_label
from services.common.learning.preprocessing.values import cells, number_of, refuse_value
from services.common.learning.shapes import INPUTS_MAX
from services.common.learning.specification import Specification, check_fields, whole


@dataclass(frozen=True, slots=True)
class Plain:
    """Rows of `inputs` finite numbers."""

    inputs: int
    label: Label

    def transform(self, rows: Sequence[object] | Floats) -> Floats:
        """Lists of numbers, or an array, as float32[n, inputs], finite; DatasetError names what is not so."""
        names = [f"input{i}" for i in range(self.inputs)]
        inputs = np.empty((len(rows), self.inputs), dtype=np.float32)
        lists = rows.tolist() if isinstance(rows, np.ndarray) else rows
        for i, row in enumerate(cells(lists, names)):
            for j, value in enumerate(row):
                try:
                    with np.errstate(over="ignore"):
                        inputs[i, j] = number_of(value)
                except ValueError:
                    inputs[i, j] = np.nan
                if not np.isfinite(inputs[i, j]):
                    raise refuse_value(i + 1, names[j], value, "a finite number")
        return inputs


def plain(inputs: int, classes: int) -> Plain:
    """What a built-in data set needs: numbers as they are, classes named "0", "1" and so on."""
    values = tuple(str(i) for i in range(classes))
    return Plain(inputs, Category("class", values, places_in(values)))


def read_plain(data: Specification) -> Plain:
    """From JSON; SettingsError names a bad field."""
    check_fields("preprocessing", data, ("version", "kind", "inputs", "label"))
    return Plain(whole("preprocessing inputs", data.get("inputs"), 1, INPUTS_MAX), read_label(data))
