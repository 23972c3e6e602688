"""`python -m bench.trainer`: local steps against the same steps in torch, on one core; a table and JSON.

Both take turns in one process on one thread, and a turn's time is the CPU time of the process: what other programs do
meanwhile is not counted. Ratios of medians, since absolute numbers differ from machine to machine. Also what the
matrix products alone take on both sides. Nothing is asserted: a target that is missed is printed, and exit code 1.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # read once, when the libraries load
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402

from bench.trainer import turns  # noqa: E402
from services.tests.chaos import report  # noqa: E402

TARGET = 0.95
MODELS = {"784-1024-192-10": (784, 1024, 192, 10), "64-64-64-10": (64, 64, 64, 10)}
OPTIMIZERS = {
    "sgd": {"name": "sgd", "lr": 0.01},
    "momentum": {"name": "momentum", "lr": 0.01, "momentum": 0.9},
    "adamw": {"name": "adamw", "lr": 0.001},
}
STEPS = {"784-1024-192-10": 20, "64-64-64-10": 200}
"""Steps in a turn, of some 50 ms: as in a round, the copy of the anchor and the delta are little beside them."""
TURNS = 60


def main() -> int:
    """Read the command line, run, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.trainer")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--turns", type=int, default=TURNS)
    args = parser.parse_args()
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    print(f"core {core}, batch {turns.BATCH}, medians of {args.turns} turns; target: {TARGET} of torch's samples/s")
    print(f"{'model':17}{'optimizer':11}{'samples/s':>11}{'torch':>9}{'ratio':>7}{'target':>8}")
    for model, widths in MODELS.items():
        for optimizer, spec in OPTIMIZERS.items():
            row = {"model": model, "optimizer": optimizer, **turns.compare(widths, spec, STEPS[model], args.turns)}
            rows.append({**row, "target": TARGET, "held": row["ratio"] >= TARGET})
            print(
                f"{model:17}{optimizer:11}{row['samples_s']:>11,.0f}{row['torch_samples_s']:>9,.0f}"
                f"{row['ratio']:>7.2f}{TARGET:>8}{'' if rows[-1]['held'] else '   MISSED'}"
            )
    products = {model: turns.products(widths, STEPS[model], args.turns) for model, widths in MODELS.items()}
    for model, found in products.items():
        print(f"{model:17}matrix products of a step: {found['us']:.0f} us, torch {found['torch_us']:.0f} us")
    packages = {"numpy": np.__version__, "torch": torch.__version__}
    results = {"core": core, "turns": args.turns, "packages": packages, "rows": rows, "products": products}
    report.write(args.json, "trainer", results)
    return 0 if all(row["held"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
