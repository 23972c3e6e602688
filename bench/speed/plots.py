"""Pictures of the results; nothing where matplotlib is not installed."""

import importlib.util
from pathlib import Path
from typing import Any

from bench.speed.arms import name_of, workers_of
from bench.speed.curves import Curve, curves
from bench.wire.plots import FOURTH, OTHER, OURS, THIRD, canvas, panels

Row = dict[str, Any]
COLOURS = {0: OTHER, 1: THIRD, 2: OURS, 4: FOURTH}
LABELS = {0: "one PC, no cluster"}
LINES = ("-", "--", ":", "-.")
LOSS_AGAINST = {"seconds": "seconds", "rounds": "rounds", "megabytes": "MB of all workers, both ways"}


def draw(path: Path, scaling: list[Row], losses: list[Row]) -> list[Path]:
    """`path` is that of the JSON; the pictures lie beside it."""
    if importlib.util.find_spec("matplotlib") is None:
        return []
    drawn = []
    if scaling:
        drawn.append(_scaling(path.with_suffix(".scaling.png"), scaling))
    found = curves(losses)
    for of, label in LOSS_AGAINST.items():
        shown = [one for one in found if getattr(one, of)]
        if shown:
            picture = path.with_suffix(f".loss-{of}.png")
            drawn.append(_losses(picture, shown, losses[0]["target_loss"], of, label))
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


def _losses(path: Path, found: list[Curve], target: float, of: str, label: str) -> Path:
    links = list(dict.fromkeys(one.link for one in found))
    arms = list(dict.fromkeys(name_of(one.arm) for one in found))
    figure, every = panels(len(links))
    for link, axes in zip(links, every, strict=True):
        for one in found:
            if one.link == link:
                style = LINES[arms.index(name_of(one.arm)) % len(LINES)]
                colour = COLOURS.get(one.workers, OTHER)
                axes.plot(getattr(one, of), one.losses, style, marker=".", color=colour, label=one.label)
        axes.axhline(target, color=OTHER, linewidth=0.8)
        axes.set_yscale("log")
        axes.set_xlabel(f"{label}, {link}")
    every[0].set_ylabel("validation loss")
    lines = {line.get_label(): line for axes in every for line in axes.get_lines() if line.get_marker() == "."}
    figure.legend(handles=list(lines.values()), frameon=False, fontsize="x-small", ncols=2, loc="outside upper center")
    figure.savefig(path)
    return path
