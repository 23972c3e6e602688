"""What one raw value says: a number, a word, or nothing.

The rule, for tables, labels and prediction alike. A value is a string (as in CSV), a number, a truth value or None.
Missing are None, the words MISSING and every number that is not finite ("nan", "inf", 1e400). A truth value is the
word "true" or "false". Anything else (a list, bytes), and a string that is no number where one is needed, is refused.
"""

import math
import re
from collections.abc import Mapping, Sequence
from numbers import Real

import numpy as np

from services.common.errors import DatasetError, quoted

MISSING = frozenset({"", "NA", "N/A", "nan", "null", "-", "?"})
NUMBER_CHARS_MAX = 400
"""Longer strings are no numbers: float64 has 309 digits before the point at most."""
DECIMALS = (".", ",")
DATA_ROW = "DATA_ROW"

_SPACES = " \u00a0\u202f\u2009"  # plain, no-break, narrow no-break, thin
_WHOLE_MAX = 2.0**53


def _pattern(decimal: str) -> re.Pattern[str]:
    mark = f"{_SPACES}{DECIMALS[1 - DECIMALS.index(decimal)]}"
    whole = rf"(?:[0-9]{{1,3}}(?P<mark>[{mark}])[0-9]{{3}}(?:(?P=mark)[0-9]{{3}})*|[0-9]+)"
    point = re.escape(decimal)
    return re.compile(rf"[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?")


_NUMBERS = {decimal: _pattern(decimal) for decimal in DECIMALS}
_NOT_FINITE = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)


def number_of(value: object, decimal: str = ".") -> float:
    """A finite float64, or NaN when missing; ValueError when it is no number.

    `decimal` is "." or ","; the other one, or a space, may part thousands, in groups of three: "1,234.5" is 1234.5, and
    "1,5" is no number where "." is the decimal mark.
    """
    if value is None:
        return math.nan
    if isinstance(value, str):
        return _number_of_text(value.strip(), decimal)
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise ValueError("no number")  # noqa: TRY004 - one error for whatever is no number
    try:
        number = float(value)
    except OverflowError:  # a whole number too large for float64
        return math.nan
    return number if math.isfinite(number) else math.nan


def _number_of_text(text: str, decimal: str) -> float:
    if text in MISSING or _NOT_FINITE.fullmatch(text):
        return math.nan
    if len(text) > NUMBER_CHARS_MAX or not _NUMBERS[decimal].fullmatch(text):
        raise ValueError("no number")
    for mark in (*_SPACES, DECIMALS[1 - DECIMALS.index(decimal)]):
        text = text.replace(mark, "")
    number = float(text.replace(decimal, "."))
    return number if math.isfinite(number) else math.nan


def words_of(value: object) -> tuple[str, ...]:
    """The words that a value may stand for, the first that is known counts; none when missing. ValueError if no value.

    A string is one word, without the spaces around it. A whole number may be written "3" or "3.0".
    """
    if value is None:
        return ()
    if isinstance(value, str):
        text = value.strip()
        return () if text in MISSING else (text,)
    if isinstance(value, bool | np.bool_):
        return ("true" if value else "false",)
    if not isinstance(value, Real):
        raise ValueError("no value")  # noqa: TRY004 - as above
    number = number_of(value)
    if math.isnan(number):
        return ()
    if number.is_integer() and abs(number) <= _WHOLE_MAX:
        return str(int(number)), str(number)
    return (str(number),)


def cells(rows: Sequence[object], names: Sequence[str]) -> list[Sequence[object]]:
    """The values of each row in the order of the columns; DatasetError for what is neither a list nor a dict.

    A list has one value a column; a dict has at least the columns, and what else is in it is left out.
    """
    found: list[Sequence[object]] = []
    for i, row in enumerate(rows, start=1):
        if isinstance(row, Mapping):
            absent = [name for name in names if name not in row]
            if absent:
                raise DatasetError(
                    f"Row {i} has no column {quoted(absent[0])}; needed: {_listed(names)}. Give null for a value "
                    "that is not known.",
                    code=DATA_ROW,
                )
            found.append([row[name] for name in names])
        elif isinstance(row, list | tuple) and len(row) == len(names):
            found.append(row)
        else:
            said = f"{len(row)} values" if isinstance(row, list | tuple) else quoted(row)
            raise DatasetError(
                f"Row {i} is {said}; needed: a list of {len(names)} values, or an object, by column: {_listed(names)}.",
                code=DATA_ROW,
            )
    return found


def refuse_value(row: int, name: str, value: object, allowed: str) -> DatasetError:
    """The error to raise for one value; `row` counts from 1."""
    return DatasetError(
        f"Row {row}, column {quoted(name)} is {quoted(value)}; allowed: {allowed}. Correct it or leave the row out.",
        code=DATA_ROW,
    )


def _listed(names: Sequence[str], shown: int = 5) -> str:
    text = ", ".join(quoted(name) for name in names[:shown])
    return text if len(names) <= shown else f"{text} and {len(names) - shown} more"
