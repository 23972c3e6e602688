"""Two pictures of the results; nothing where matplotlib is not installed."""

import importlib.util
from pathlib import Path
from typing import Any

from bench.speed.arms import workers_of
from bench.wire.plots import FOURTH, OTHER, OURS, THIRD, canvas

Row = dict[str, Any]
COLOURS = {0: OTHER, 1: THIRD, 2: OURS, 4: FOURTH}
LABELS = {0: "one PC, no cluster"}
LINES = ("-", "--", ":")


def draw(path: Path, scaling: list[Row], losses: list[Row]) -> list[Path]:
    """`path` is that of the JSON; the pictures lie beside it."""
    if importlib.util.find_spec("matplotlib") is None:
        return []
    drawn = []
    if scaling:
        drawn.append(_scaling(path.with_suffix(".scaling.png"), scaling))
    if any(row["curve"] for row in losses):
        drawn.append(_losses(path.with_suffix(".loss.png"), losses))
    return drawn


def best_by_link(rows: list[Row]) -> dict[str, list[Row]]:
    """For each link the rows of the arm that is fastest with the most workers."""
    found: dict[str, list[Row]] = {}
    for link in dict.fromkeys(_link(row) for row in rows):
        here = [row for row in rows if _link(row) == link]
        most = max(row["workers"] for row in here)
        arm = max((row for row in here if row["workers"] == most), key=lambda row: row["samples_per_s"])["arm"]
        found[link] = [row for row in here if row["arm"] == arm]
    return found


def _link(row: Row) -> str:
    return f"{row['link']['mbit']:g} Mbit/s"


def _of(workers: int) -> str:
    return LABELS.get(workers, workers_of(workers))


def _scaling(path: Path, rows: list[Row]) -> Path:
    figure, axes = canvas()
    shown = best_by_link(rows)
    counts = sorted({row["workers"] for row in rows})
    width = 0.8 / len(counts)
    for place, workers in enumerate(counts):
        bars = [
            (at + width * (place - (len(counts) - 1) / 2), row["samples_per_s"])
            for at, here in enumerate(shown.values())
            for row in here
            if row["workers"] == workers
        ]
        axes.bar(*zip(*bars, strict=True), width, color=COLOURS.get(workers, OTHER), label=_of(workers))
    axes.set_xticks(range(len(shown)), list(shown))
    axes.set_ylabel("samples/s, equal CPU quotas")
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(path)
    return path


def _losses(path: Path, rows: list[Row]) -> Path:
    figure, axes = canvas()
    links = list(dict.fromkeys(map(_link, rows)))
    for row in rows:
        if row["curve"]:
            label = f"{_of(row['workers'])}, {_link(row)}"
            style = LINES[links.index(_link(row)) % len(LINES)]
            axes.plot(*zip(*row["curve"], strict=True), style, marker=".", color=COLOURS[row["workers"]], label=label)
    axes.axhline(rows[0]["target_loss"], color=OTHER, linewidth=0.8)
    axes.set_yscale("log")
    axes.set_xlabel("seconds")
    axes.set_ylabel("validation loss")
    axes.legend(frameon=False)
    figure.savefig(path)
    return path
