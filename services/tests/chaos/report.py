"""Numbers as people and machines read them: one summary line, and JSON with the commit and the machine."""

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


def median(values: Sequence[float]) -> float:
    """The median, rounded to ms; 0 of nothing."""
    return round(statistics.median(values), 3) if values else 0.0


def slope_per_minute(points: Sequence[tuple[float, float]]) -> float:
    """Least-squares slope of (seconds, value), per minute."""
    if len(points) < 2:
        return 0.0
    line = statistics.linear_regression([at for at, _ in points], [value for _, value in points])
    return round(60 * line.slope, 3)


def write(path: Path | None, name: str, results: dict[str, Any]) -> None:
    """Write the results; None: do not."""
    if path is None:
        return
    facts = {"benchmark": name, "commit": _commit(), "machine": machine(), "at": time.strftime("%Y-%m-%d %H:%M:%S")}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**facts, **results}, indent=2) + "\n")


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": _load(),
    }


def _load() -> float:
    return float(Path("/proc/loadavg").read_text().split()[0])


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
