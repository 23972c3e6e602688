"""Small pictures of the results; nothing where matplotlib is not installed."""

import importlib.util
from pathlib import Path
from typing import Any

Row = dict[str, Any]
SIZE_INCHES, DPI = (6.0, 3.2), 80
OURS, OTHER, THIRD, FOURTH = "#1b6ca8", "#b8b8b8", "#e0a030", "#7a4a9a"


def draw(path: Path, wire: list[Row], overhead: list[Row]) -> list[Path]:
    """`path` is that of the JSON; the pictures lie beside it."""
    if importlib.util.find_spec("matplotlib") is None:
        return []
    drawn = []
    if wire:
        drawn += [_exchange(path.with_suffix(".exchange.png"), wire), _bytes(path.with_suffix(".bytes.png"), wire)]
    if overhead:
        drawn.append(_overhead(path.with_suffix(".overhead.png"), overhead))
    return drawn


def canvas() -> tuple[Any, Any]:
    """An empty picture and its axes; only where matplotlib is installed."""
    figure, (axes,) = panels(1)
    return figure, axes


def panels(columns: int) -> tuple[Any, list[Any]]:
    """The same with so many axes side by side, which share what goes up; each is as wide as a picture."""
    # ruff: noqa: PLC0415 - only where it is installed
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    width, height = SIZE_INCHES
    size = (width * columns, height)
    figure, grid = plt.subplots(1, columns, figsize=size, dpi=DPI, layout="constrained", sharey=True, squeeze=False)
    for axes in grid[0]:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, list(grid[0])


def _exchange(path: Path, rows: list[Row]) -> Path:
    figure, axes = canvas()
    at = range(len(rows))
    axes.bar([one - 0.2 for one in at], [row["limit_s"] for row in rows], 0.4, color=OTHER, label="limit of the link")
    axes.bar([one + 0.2 for one in at], [row["exchange_s"] for row in rows], 0.4, color=OURS, label="MAHE")
    axes.set_xticks(list(at), [row["encoding"] for row in rows])
    axes.set_ylabel("whole exchange, s")
    axes.legend(frameon=False)
    figure.savefig(path)
    return path


def _bytes(path: Path, rows: list[Row]) -> Path:
    figure, axes = canvas()
    at = range(len(rows))
    axes.bar([one - 0.2 for one in at], [row["wire_up"] / 1e6 for row in rows], 0.4, color=OURS, label="up")
    axes.bar([one + 0.2 for one in at], [row["wire_down"] / 1e6 for row in rows], 0.4, color=THIRD, label="down")
    axes.set_xticks(list(at), [row["encoding"] for row in rows])
    axes.set_ylabel("a worker's bytes in a round, MB")
    axes.legend(frameon=False)
    figure.savefig(path)
    return path


def _overhead(path: Path, rows: list[Row]) -> Path:
    figure, axes = canvas()
    least = min(row["workers"] for row in rows)
    shown = [row for row in rows if row["workers"] == least and row["encoding"] == "fp32"]
    series = (
        ("bare_s", "bare ZeroMQ", OTHER),
        ("mahe_s", "MAHE", OURS),
        ("mahe_disk_s", "MAHE, disk", FOURTH),
        ("flower_s", "Flower", THIRD),
    )
    for place, (name, label, colour) in enumerate(series):
        heights = [(row[name] or 0) * 1000 for row in shown]
        axes.bar([one + 0.2 * (place - 1.5) for one in range(len(shown))], heights, 0.2, color=colour, label=label)
    axes.set_yscale("log")
    axes.set_xticks(range(len(shown)), [f"{row['n']:,}" for row in shown])
    axes.set_xlabel(f"parameters, fp32, {least} workers")
    axes.set_ylabel("round without training, ms")
    axes.legend(frameon=False)
    figure.savefig(path)
    return path
