"""Preprocessing: what turns raw rows into a model's inputs, labels into its targets, and its answers back into words.

It is a part of the model: fitted once, kept as JSON (version 1), and the same at training, evaluation, prediction and
export. Not for reading files (the master's intake does) nor for fitting. Everything here is pure NumPy.
"""

from collections.abc import Callable, Mapping
from typing import Any

from services.common.learning.preprocessing.image import Image, read_image
from services.common.learning.preprocessing.labels import Category, Label, Number
from services.common.learning.preprocessing.plain import Plain, plain, read_plain
from services.common.learning.preprocessing.table import CategoryColumn, NumberColumn, Table, read_table
from services.common.learning.preprocessing.text import Text, read_text
from services.common.learning.specification import Specification, choice, refuse

Preprocessing = Table | Image | Text | Plain
VERSION = 1

_READERS: dict[str, Callable[[Specification], Preprocessing]] = {
    "image": read_image,
    "plain": read_plain,
    "table": read_table,
    "text": read_text,
}

__all__ = [
    "VERSION",
    "Category",
    "CategoryColumn",
    "Image",
    "Label",
    "Number",
    "NumberColumn",
    "Plain",
    "Preprocessing",
    "Table",
    "Text",
    "plain",
    "read_preprocessing",
]


def read_preprocessing(data: Mapping[str, Any]) -> Preprocessing:
    """The preprocessing that JSON describes; SettingsError names the field that is wrong, its value and what may be."""
    if not isinstance(data, Mapping):
        raise refuse("preprocessing", data, "an object with version, kind and what belongs to the kind")
    if isinstance(data.get("version"), bool) or data.get("version") != VERSION:
        raise refuse("preprocessing version", data.get("version"), f"{VERSION}")
    return _READERS[choice("preprocessing", data, "kind", _READERS)](data)
