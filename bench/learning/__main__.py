"""`python -m bench.learning`: what encodings and rules do to what is learnt; tables and JSON. Exit code 0: all held."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.learning import poison, poison_cluster, quality
from services.tests.chaos import report

Row = dict[str, Any]


def main() -> int:
    """Read the command line, run, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.learning")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=("encodings", "every-step", "sorted", "poison", "poison-cluster"))
    parser.add_argument("--quick", action="store_true", help="poison-cluster with one seed")
    args = parser.parse_args()
    parts: dict[str, Callable[[], list[Row]]] = {
        "encodings": quality.encodings,
        "every-step": quality.against_every_step,
        "sorted": quality.sorted_by_label,
        "poison": poison.poison,
        "poison-cluster": lambda: poison_cluster.poison_cluster(poison.SEEDS[:1] if args.quick else poison.SEEDS),
    }
    results: dict[str, Any] = {}
    for name, part in parts.items():
        if args.only in (None, name):
            began = time.monotonic()
            found = results[name] = part()
            print(f"== {name} ({time.monotonic() - began:.0f} s)")
            for row in found:
                print("  ", ", ".join(f"{key} {value}" for key, value in row.items()))
    results["held"] = all(row["held"] is not False for part in results.values() for row in part)
    report.write(args.json, "learning", results)
    print("all held" if results["held"] else "NOT all held")
    return 0 if results["held"] else 1


if __name__ == "__main__":
    sys.exit(main())
