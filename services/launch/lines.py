"""What `mahe` writes: results on standard output, everything else on standard error, each line at once.

Text from outside (names of runs and workers, reasons) is cleaned here: no control or escape character reaches the
terminal, and no colour is used.
"""

import json
import sys
import unicodedata
from typing import Any, TextIO

from services.common.errors import MaheError
from services.common.host.logs import clean_text
from services.launch.exits import NOBODY_TO_ASK

CUT = "..."
# JSON escapes the controls below 32 by itself; these are the others that clean_text removes.
_ESCAPED = {code: f"\\u{code:04x}" for code in [*range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]}


def say(kind: str, message: str) -> None:
    """One line of the result."""
    show(f"[{kind}] {clean_text(message)}")


def tell(kind: str, message: str) -> None:
    """One line that is not the result: a warning, advice, what is waited for."""
    show(f"[{kind}] {clean_text(message)}", sys.stderr)


def say_error(sentence: str, kind: str = "ERROR") -> None:
    """Why it did not work: may have several lines (the end of a log), each cleaned. Not part of the result."""
    first, *more = sentence.split("\n")
    tell(kind, first)
    for line in more:
        show(clean_text(line), sys.stderr)


def show(text: str, stream: TextIO | None = None) -> None:
    """Text as it is, on standard output if not said. Lost where that is full, which is no reason to stop what runs.

    Raises BrokenPipeError when nobody reads any more, as in `mahe demo | head`.
    """
    try:
        print(text, file=stream or sys.stdout, flush=True)
    except BrokenPipeError:
        raise
    except OSError:
        return


def show_json(value: Any, *, indent: int | None = None) -> None:
    """A value as JSON on standard output, on one line without `indent`; what a terminal would obey is escaped."""
    show(json.dumps(value, ensure_ascii=False, indent=indent).translate(_ESCAPED))


def show_table(rows: list[list[str]]) -> None:
    """Rows of as many cells each, as columns; the first row is the head."""
    cleaned = [[clean_text(cell) for cell in row] for row in rows]
    widths = [max(map(columns, column)) for column in zip(*cleaned, strict=True)]
    for row in cleaned:
        padded = (cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True))
        show("  ".join(padded).rstrip())


def confirm(question: str, without_asking: str) -> bool:
    """Ask yes or no at the terminal. Raises MaheError NOBODY_TO_ASK without one, naming the command that does not."""
    if not sys.stdin.isatty():
        raise MaheError(f"nobody is here to ask; to do it without asking: {without_asking}", code=NOBODY_TO_ASK)
    sys.stderr.write(f"{clean_text(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def columns(text: str) -> int:
    """Columns that a terminal needs for this text: two for a Chinese character, none for a combining one."""
    return sum(_columns_of(character) for character in text)


def fit(text: str, columns_max: int) -> str:
    """The text, cleaned, and cut to this many columns."""
    text = clean_text(text)
    if columns(text) <= columns_max:
        return text
    while text and columns(text) > columns_max - len(CUT):
        text = text[:-1]
    return (text + CUT)[: max(0, columns_max)]


def _columns_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
