"""Times the kernels against NumPy and against the scalar tier: `python libkernel/bench/bench.py [--json]`.

Interleaved in one process, medians, ratios: absolute numbers differ from machine to machine. Nothing is asserted here.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from services.common.kernels import fold, kernel_impl, reduce_add, sgd_update, stats
from services.common.kernels.library import library, set_tier

LENGTHS = (1 << 14, 1 << 18, 1 << 22)
ROUNDS = 15
ROUND_S = 0.004  # a timed round repeats the call for about this long


def cases(n: int) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """For each kernel: our call, and what one would write with NumPy."""
    rng = np.random.default_rng(n)
    a, b = (rng.uniform(-1, 1, n).astype(np.float32) for _ in range(2))
    acc, scale, weight = np.zeros(n, np.int64), 2.0**40, np.float32(1e-3)

    def numpy_add() -> None:
        a.__iadd__(weight * b)

    def numpy_fold() -> None:
        acc.__iadd__(np.rint(b.astype(np.float64) * scale).astype(np.int64))

    def numpy_stats() -> object:
        wide = b.astype(np.float64)
        return np.count_nonzero(~np.isfinite(b)), np.abs(b).max(), np.dot(wide, wide)

    return {
        "reduce_add": (lambda: reduce_add(a, b, 1e-3), numpy_add),
        "sgd_update": (lambda: sgd_update(a, b, 1e-3), numpy_add),
        "fold": (lambda: fold(acc, b, scale), numpy_fold),
        "stats": (lambda: stats(b), numpy_stats),
    }


def timed(call: Callable[[], object], repeats: int) -> float:
    """Seconds of one call, the mean of `repeats`."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def measure(ours: Callable[[], object], theirs: Callable[[], object], best: str) -> dict[str, float]:
    """Median seconds of one call, the three taking turns."""
    repeats = max(1, int(ROUND_S / max(timed(theirs, 1), 1e-7)))
    seconds: dict[str, list[float]] = {"best": [], "scalar": [], "numpy": []}
    for _ in range(ROUNDS):
        seconds["best"].append(timed(ours, repeats))
        set_tier(library(), "scalar")
        seconds["scalar"].append(timed(ours, repeats))
        set_tier(library(), best)
        seconds["numpy"].append(timed(theirs, repeats))
    return {name: statistics.median(values) for name, values in seconds.items()}


def main() -> None:
    """Measures every kernel at every length and prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    as_json = parser.parse_args().json
    best, rows = kernel_impl(), []
    for n in LENGTHS:
        for name, (ours, theirs) in cases(n).items():
            median = measure(ours, theirs, best)
            rows.append(
                {
                    "kernel": name,
                    "n": n,
                    "us": round(median["best"] * 1e6, 1),
                    "times_numpy": round(median["numpy"] / median["best"], 2),
                    "times_scalar": round(median["scalar"] / median["best"], 2),
                }
            )
    if as_json:
        print(json.dumps({"tier": best, "rows": rows}))
        return
    print(
        f"tier {best}; medians of {ROUNDS}, one thread\n{'kernel':12}{'n':>10}{'us':>10}{'x numpy':>10}{'x scalar':>10}"
    )
    for row in rows:
        print("{kernel:12}{n:>10}{us:>10}{times_numpy:>10}{times_scalar:>10}".format(**row))


if __name__ == "__main__":
    main()
