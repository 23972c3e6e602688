"""Why something is in the state it is in: a code with its values, and the English sentence that they make.

The cores make reasons; whoever shows them has the sentences of its own language (the page: `reason.<CODE>` in
`console/static/i18n`). The log, the API's `reason` and messages carry the English text. Part of `messages`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, Union

from services.common.protocol.sentences import SENTENCES

NUMBER_MAX = 2**53  # JSON readers take larger ones for others
TEXT = "TEXT"  # somebody else's sentence, as it is: of an older worker, an old database, a disk

Value = Union[int, float, str, "Reason"]


@dataclass(frozen=True)
class Reason:
    """One reason; equal when code and values are. `values` are shown as they are; one may be a reason itself."""

    code: str
    values: "Mapping[str, int | float | str | Reason]" = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The English sentence, made when it is asked for. The code must be known: see `is_known`."""
        one = SENTENCES.get(f"{self.code}.one") if self.values.get("n") == 1 else None
        return (one or SENTENCES[self.code]).format_map(self.values)

    def __str__(self) -> str:
        return self.text


def because(code: str, **values: Value) -> Reason:
    """The reason with this code; `n`, where a sentence has it, decides between singular and plural."""
    return Reason(code, values)


def said(text: str) -> Reason:
    """A sentence that has no code."""
    return Reason(TEXT, {"text": text})


def text_of(reason: Reason | None) -> str:
    """In English; empty where there is none."""
    return "" if reason is None else reason.text


def is_known(reason: Reason) -> bool:
    """Whether there are sentences for it, and it has just the values that they name, which any program can show."""
    sentence = SENTENCES.get(reason.code)
    if sentence is None or reason.values.keys() != parameters(sentence):
        return False
    return all(map(_is_fine, reason.values.values()))


def _is_fine(value: Value) -> bool:
    if isinstance(value, Reason):
        return is_known(value)
    return isinstance(value, str) or abs(value) <= NUMBER_MAX  # neither is NaN


def parameters(sentence: str) -> set[str]:
    """The names in braces."""
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


def heard(text: str, reason: Reason | None) -> Reason:
    """What a message of another program says: its reason if that makes just this text, else the text alone."""
    if reason is not None and is_known(reason) and reason.text == text:
        return reason
    return said(text)


def told(reason: Reason | None) -> dict[str, Any] | None:
    """As JSON: {"code", "values"}, None for none."""
    if reason is None:
        return None
    values = {name: told(value) if isinstance(value, Reason) else value for name, value in reason.values.items()}
    return {"code": reason.code, "values": values}


def read(told_as: Any, text: str) -> Reason:
    """What `told` made, read again; the text alone when that is missing, or of another version of MAHE."""
    reason = _read(told_as)
    return reason if reason is not None and is_known(reason) else said(text)


def _read(told_as: Any) -> Reason | None:
    if not isinstance(told_as, dict) or not isinstance(told_as.get("values"), dict):
        return None
    values: dict[str, Value] = {}
    for name, value in told_as["values"].items():
        known = _read(value) if isinstance(value, dict) else value
        if not isinstance(known, int | float | str | Reason):
            return None
        values[name] = known
    return Reason(str(told_as.get("code")), values)
