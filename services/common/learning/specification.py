"""Reading a specification: models, optimizers and data sets are plain dicts, checked here field by field.

Not for settings of a service (pydantic-settings does those) nor for messages (the protocol does those).
"""

from collections.abc import Collection, Mapping
from typing import Any

from services.common.errors import Fault, SettingsError, quoted

Specification = Mapping[str, Any]
"""JSON-like values only; never code."""

BAD_SPECIFICATION = "BAD_SPECIFICATION"


def refuse(field: str, value: object, allowed: str, *, name: str | None = None) -> SettingsError:
    """The error to raise for a field; its sentence names field, value and what is allowed.

    `name` is the field's own name in the specification, if that is not the last word of `field`.
    """
    sentence = f"{field} is {quoted(value)}; allowed: {allowed}."
    path = name or field.rsplit(maxsplit=1)[-1].replace("[", ".").removesuffix("]")
    fault = Fault(path, BAD_SPECIFICATION, sentence)
    return SettingsError(sentence, code=BAD_SPECIFICATION, faults=[fault])


def check_fields(what: str, spec: Specification, known: Collection[str]) -> None:
    """Refuses a field that is not known, so that a misspelt one never falls back to a default in silence."""
    for field in sorted(spec):
        if field not in known:
            raise refuse(f"{what} field", field, ", ".join(sorted(known)), name=field)


def choice(what: str, spec: Specification, field: str, known: Collection[str]) -> str:
    """The field's value, which must be one of `known`."""
    value = spec.get(field)
    if not isinstance(value, str) or value not in known:
        raise refuse(f"{what} {field}", value, ", ".join(sorted(known)))
    return value


def whole(field: str, value: object, low: int, high: int) -> int:
    """`value` as an integer in low..high; a bool or a float is refused."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise refuse(field, value, f"a whole number from {low} to {high}")
    return value


def real(field: str, value: object, low: float, high: float) -> float:
    """`value` as a float in low..high, which are finite; a bool, a string or NaN is refused."""
    # NaN is in no range. Nothing is made a float before it is in range: an integer may be too large for one.
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise refuse(field, value, f"a number from {low:g} to {high:g}")
    return float(value)
