"""`make bench`: every benchmark one after the other, each with its JSON and pictures; then the report, into the README.

One that fails does not stop the others. `--quick` only tries whether each works here; its figures are not kept.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.report import readme
from bench.report.__main__ import show
from bench.report.results import RESULTS, ROOT

QUICK_RESULTS = ROOT / "build" / "bench-quick"
KERNELS_PYTHON = "build/bench-kernels-venv/bin/python"
OTHERS_PYTHON = "build/bench-wire-venv/bin/python"


@dataclass(frozen=True)
class Step:
    """One benchmark: the words of its command but `--json FILE`, and what makes it short."""

    name: str
    command: tuple[str, ...]
    quick: tuple[str, ...]


WIRE_QUICK = ("--rounds", "3", "--times", "0.1", "--sizes", "100000", "--workers", "2")
STEPS = (
    Step("kernels", (KERNELS_PYTHON, "libkernel/bench/bench.py"), ("--rounds", "3")),
    Step("trainer", (OTHERS_PYTHON, "-m", "bench.trainer"), ("--turns", "3")),
    Step("wire", (OTHERS_PYTHON, "-m", "bench.wire"), WIRE_QUICK),
    Step("learning", (OTHERS_PYTHON, "-m", "bench.learning"), ("--only", "poison-cluster", "--quick")),
    Step("speed", (OTHERS_PYTHON, "-m", "bench.speed"), ("--quick",)),
)


def main() -> int:
    """Run all, report. Exit code 1: a benchmark ended with another code than 0, which one is said at the end."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="as short as it gets; figures go to build/bench-quick")
    quick = parser.parse_args().quick
    folder = QUICK_RESULTS if quick else RESULTS
    troubles = run_all(STEPS, folder, quick=quick)
    print("== report", flush=True)
    show(folder)
    if not quick:
        readme.write()
    for trouble in troubles:
        print(f"[BENCH] {trouble}")
    return 1 if troubles else 0


def run_all(steps: Sequence[Step], folder: Path, *, quick: bool) -> list[str]:
    """What went wrong, a sentence for each step that did not end with code 0."""
    troubles = []
    for step in steps:
        print(f"== {step.name}", flush=True)
        began, out = time.time(), folder / f"{step.name}.json"
        command = [*step.command, *(step.quick if quick else ()), "--json", str(out)]
        try:
            code = subprocess.run(command, cwd=ROOT, check=False).returncode
        except OSError as error:
            troubles.append(f"{step.name} could not be started: {error}")
            continue
        if code:
            kept = "its figures are written" if out.exists() and out.stat().st_mtime >= began else "no figures"
            troubles.append(f"{step.name} ended with exit code {code}, {kept}: see what it said above")
    return troubles


if __name__ == "__main__":
    sys.exit(main())
