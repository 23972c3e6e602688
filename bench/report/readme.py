"""The performance section where it stands: written from bench/results into the two READMEs."""

from collections.abc import Callable
from pathlib import Path

from bench.report import table
from bench.report.results import REQUIREMENTS, RESULTS, load
from services.tests.docs.text import README, README_ZH, part
from services.tests.tidy.source import ROOT

NAME = "performance"


def english(folder: Path = RESULTS) -> str:
    """The section from the files of this folder."""
    return _section(folder, chinese=False)


def chinese(folder: Path = RESULTS) -> str:
    """The same in Chinese."""
    return _section(folder, chinese=True)


WRITERS: dict[str, Callable[[], str]] = {README: english, README_ZH: chinese}


def write(root: Path = ROOT) -> None:
    """Into both, between `performance: begin` and `performance: end`. Raises ValueError that names a file without."""
    for path, text in WRITERS.items():
        before = (root / path).read_text("utf-8")
        found = part(path, NAME).search(before)
        if found is None:
            raise ValueError(f"{root / path} has no part `{NAME}: begin` to `{NAME}: end`: put the two comments back")
        (root / path).write_text(before[: found.start(2)] + text() + before[found.end(2) :], "utf-8")


def _section(folder: Path, *, chinese: bool) -> str:
    pins = [path.read_text("utf-8") for path in REQUIREMENTS]
    pictures = sorted(path.name for path in folder.glob("*.png"))
    return table.section(load(folder), pins, pictures, chinese=chinese)
