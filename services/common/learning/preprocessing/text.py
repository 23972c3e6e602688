"""Text for next-character modelling: the last characters as places in an alphabet. The next one is the class."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from services.common.errors import DatasetError, quoted
from services.common.learning.parameters import Floats
from services.common.learning.preprocessing.labels import Category, places_in
from services.common.learning.preprocessing.values import DATA_ROW
from services.common.learning.shapes import INPUTS_MAX
from services.common.learning.specification import Specification, check_fields, refuse, whole

ALPHABET_MAX = 255
"""With the token for anything else, tokens fit into a byte."""
NEXT = "next character"


@dataclass(frozen=True, slots=True)
class Text:
    """`context` characters before the next one."""

    alphabet: str
    context: int
    label: Category
    """The alphabet's characters: what is predicted."""

    @property
    def inputs(self) -> int:
        """Numbers in a model's row."""
        return self.context

    def transform(self, rows: Sequence[object]) -> Floats:
        """Strings as float32[n, context] of whole numbers 0..len(alphabet), the last characters of each.

        len(alphabet) stands for a character that is not in the alphabet, and before the start of a short text.
        """
        other, places = len(self.alphabet), places_in(self.alphabet)
        tokens = np.full((len(rows), self.context), other, dtype=np.float32)
        for i, row in enumerate(rows):
            if not isinstance(row, str):
                raise DatasetError(f"Row {i + 1} is {quoted(row)}; needed: a text.", code=DATA_ROW)
            if last := row[-self.context :]:
                tokens[i, -len(last) :] = [places.get(character, other) for character in last]
        return tokens


def read_text(data: Specification) -> Text:
    """A text's preprocessing from JSON; SettingsError names a bad field."""
    check_fields("preprocessing", data, ("version", "kind", "alphabet", "context"))
    alphabet = data.get("alphabet")
    if not isinstance(alphabet, str) or not 2 <= len(alphabet) <= ALPHABET_MAX or len(set(alphabet)) < len(alphabet):
        raise refuse("preprocessing alphabet", alphabet, f"2 to {ALPHABET_MAX} characters that differ")
    context = whole("preprocessing context", data.get("context"), 1, INPUTS_MAX)
    return Text(alphabet, context, Category(NEXT, tuple(alphabet), places_in(alphabet)))
