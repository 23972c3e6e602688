"""How a run that is followed is shown: a bar on a terminal, lines elsewhere, or JSON, one object a line.

The bar is on standard error and uses no escape sequence, so that it works on every terminal: it goes back with a
carriage return and overwrites itself. Its signs are ASCII: others have two columns on some Chinese terminals.
"""

import os
import shutil
import sys
from dataclasses import asdict
from typing import Any

from services.launch.lines import columns, fit, say, show_json, tell
from services.launch.page import in_ci
from services.launch.rounds import Row
from services.launch.summary import RunSummary, duration

ROUND_FIELDS = ("round", "workers", "train_loss", "eval_loss", "eval_accuracy", "samples", "bytes", "seconds")
BAR_COLUMNS = 24
NARROW_COLUMNS = 80


class Lines:
    """Each round and each line of the log as it comes."""

    def __init__(self) -> None:
        self._trouble = ""

    def line(self, kind: str, text: str) -> None:
        """A line of the log."""
        say(kind, text)

    def round(self, run: str, row: Row, text: str) -> None:
        """A round is closed."""
        say("ROUND", text)

    def state(self, run: RunSummary, workers: str, trouble: str) -> None:
        """The run as it is now; `trouble`: why what is shown may be old."""
        if trouble and trouble != self._trouble:
            tell("WAIT", trouble)
        self._trouble = trouble

    def close(self) -> None:
        """Nothing more comes."""


class JsonLines:
    """Objects that scripts read; the guide lists them."""

    def __init__(self) -> None:
        self._told: object = None

    def line(self, kind: str, text: str) -> None:
        """A line of the log."""
        show_json({"type": "line", "kind": kind, "text": text})

    def round(self, run: str, row: Row, text: str) -> None:
        """A round is closed."""
        show_json({"type": "round", "run": run, **{name: row.get(name) for name in ROUND_FIELDS}})

    def state(self, run: RunSummary, workers: str, trouble: str) -> None:
        """The run, when its phase or what it waits for has changed."""
        now = (run.id, run.phase, run.reason, run.finished, trouble)
        if now != self._told:
            self._told = now
            show_json({"type": "state", **asdict(run), "trouble": trouble})

    def close(self) -> None:
        """Nothing more comes."""


class Bar:
    """One line at the end of the terminal that is drawn again; lines of the log, but for rounds, go above it."""

    def __init__(self) -> None:
        self._text = ""
        self._drawn = 0

    def line(self, kind: str, text: str) -> None:
        """A line of the log."""
        self._write("")
        say(kind, text)
        self._write(self._text)

    def round(self, run: str, row: Row, text: str) -> None:
        """The bar itself shows how many there are."""

    def state(self, run: RunSummary, workers: str, trouble: str) -> None:
        """The run as it is now; `trouble`: why what is shown may be old."""
        self._text = bar(run, workers, trouble, shutil.get_terminal_size().columns - 1)
        self._write(self._text)

    def close(self) -> None:
        """Leave the last state, and go to the next line."""
        if self._drawn:
            sys.stderr.write("\n")
            sys.stderr.flush()
        self._text, self._drawn = "", 0

    def _write(self, text: str) -> None:
        """Over what is there; nothing leaves an empty line to write on."""
        width = columns(text)
        sys.stderr.write(f"\r{text}{' ' * max(0, self._drawn - width)}" + ("" if text else "\r"))
        sys.stderr.flush()
        self._drawn = width


Display = Lines | JsonLines | Bar


def display(*, as_json: bool) -> Display:
    """What fits where we write. A bar needs a terminal and somebody who looks at it."""
    if as_json:
        return JsonLines()
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or in_ci()
    return Bar() if sys.stdout.isatty() and sys.stderr.isatty() and not plain else Lines()


def bar(run: RunSummary, workers: str, trouble: str, columns_max: int) -> str:
    """The whole line, within these columns."""
    width = BAR_COLUMNS if columns_max + 1 >= NARROW_COLUMNS else BAR_COLUMNS // 2
    full = min(width, width * run.version // max(1, run.rounds))
    parts = [f"{run.id} [{'#' * full}{'.' * (width - full)}] {run.version}/{run.rounds}"]
    if trouble:
        parts.append(trouble)
    elif run.phase != "RUNNING":
        parts.append(f"{run.word}: {run.reason}" if run.reason else run.word)
    else:
        if run.last is not None:
            parts.append(f"loss {run.last.loss:.4f}  accuracy {run.last.accuracy:.4f}")
        if run.eta_s is not None:
            parts.append(f"{duration(run.eta_s)} left")
        parts.append(workers)
    return fit("  ".join(parts), columns_max)


def workers_text(workers: list[dict[str, Any]]) -> str:
    """How many of them can be reached."""
    here = sum(worker.get("link") in {"LINKED", "SUSPECT"} for worker in workers)
    return f"{here} of {len(workers)} workers" if here < len(workers) else f"{here} worker{'s' if here != 1 else ''}"
