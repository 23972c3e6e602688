"""Times the kernels against memory bandwidth, NumPy, SciPy, ml_dtypes and torch: `make bench-kernels`.

All on one thread and taking turns in one process; the best of many rounds; ratios, since absolute numbers differ from
machine to machine. What is not installed is left out. Nothing is asserted here: a target that is missed, or
that could not be measured, is printed.
"""

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # read once, when the libraries load
    os.environ[name] = "1"
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # would hold SciPy back
    os.environ.pop(name, None)

import numpy as np  # noqa: E402
from rows import MIB, Row, Target, optional, rows, torch  # noqa: E402
from timing import PLAIN_C, measure  # noqa: E402

from services.common.kernels import Threads  # noqa: E402
from services.common.kernels.library import library  # noqa: E402

BUSY_BELOW = 0.9  # of a core for this process: below, other programs disturbed it
CALL_ELEMENTS = 64  # so few that all of the time is the checked call from Python
SIZES = (MIB // 16, MIB, 16 * MIB, 64 * MIB)  # bytes of one float32 array
ROUNDS = 15
MEMORY = "memory"  # NumPy's a + b into a third array: what memory gives at this size
MEMORY_BYTES = 12
Found = dict[str, Any]


def main() -> None:
    """Measures every kernel at every size, prints the ratios and which targets are met."""
    options = _options()
    if torch is not None:
        torch.set_num_threads(1)
    threads, found = Threads(2), []
    facts = machine()
    print(f"{facts['cpu']}, {facts['cores']} cores; tier {facts['tier']}, built with {facts['compiler']}")
    print(", ".join(f"{name} {version}" for name, version in facts["packages"].items()))
    print(f"one thread unless said, taking turns, best of {options.rounds}; a size is that of one float32 array")
    print(f"{'kernel':22}{'size':>9}{'us':>11}{'GB/s':>8}{'memory':>8}   times as fast as")
    chosen = [row for row in rows(CALL_ELEMENTS, threads) if options.only in row.kernel]
    calls = {row.kernel: measure({"ours": row.ours}, options.rounds)["ours"] for row in chosen}
    for size in options.sizes:
        chosen = [row for row in rows(size // 4, threads) if options.only in row.kernel]
        of_size = [timed(row, size, options.rounds, calls[row.kernel]) for row in chosen]
        memory = max((one.pop("memory_gb_s") for one in of_size), default=0.0)
        for one in of_size:
            one["memory_share"] = round(one["gb_s"] / memory, 3)
            print(line(one), flush=True)
        found += of_size
    threads.close()
    print("\ntargets")
    for target in (target for one in found for target in one["targets"]):
        print(target_line(target))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        report = {"machine": facts, "rounds": options.rounds, "rows": found}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def timed(row: Row, size: int, rounds: int, call: float) -> Found:
    """One row: seconds, ratios, targets, and what memory gave meanwhile; `call`: seconds of a call with no work."""
    n = size // 4
    a, b, out = (np.ones(n, np.float32) for _ in range(3))
    plain = {PLAIN_C: row.ours} if row.tiers else {}
    wall, cpu = time.perf_counter(), time.process_time()
    seconds = measure({"ours": row.ours, **row.others, **plain, MEMORY: lambda: np.add(a, b, out=out)}, rounds)
    share = (time.process_time() - cpu) / (time.perf_counter() - wall)
    ours = seconds["ours"]
    ratios = {name: seconds[name] / ours for name in (*row.others, *plain)}
    targets = [
        {
            "kernel": row.kernel,
            "size": shown(size),
            "other": target.other,
            "ratio": round(ratios[target.other], 3) if target.other in ratios else None,
            "at_least": target.at_least,
            "verdict": verdict(target, seconds, call, share),
        }
        for target in row.targets
        if size >= target.from_bytes
    ]
    return {
        "kernel": row.kernel,
        "size": shown(size),
        "array_bytes": size,
        "us": {name: round(value * 1e6, 2) for name, value in seconds.items()},
        "call_us": round(call * 1e6, 2),
        "cpu_share": round(share, 2),
        "gb_s": round(row.bytes_moved * n / ours / 1e9, 2),
        "memory_gb_s": MEMORY_BYTES * n / seconds[MEMORY] / 1e9,
        "times_as_fast_as": {name: round(ratio, 3) for name, ratio in ratios.items()},
        "targets": targets,
    }


def verdict(target: Target, seconds: dict[str, float], call: float, share: float) -> str:
    """Whether the target was met, and if not, why; without the other there is nothing to say."""
    if target.other not in seconds:
        return f"not measured: {target.other} is not installed"
    ours, other = seconds["ours"], seconds[target.other]
    if other / ours >= target.at_least:
        return "met"
    without = other / (ours - call) if ours > call else float("inf")
    why = [target.why] if target.why else []
    if without >= target.at_least:
        why = [f"{call * 1e6:.1f} of {ours * 1e6:.1f} us are the call from Python, {without:.2f} x without it"]
    if share < BUSY_BELOW:
        why.append(f"other programs ran, this one had {share:.0%} of a core")
    return f"MISSED: {'; '.join(why)}" if why else "MISSED"


def target_line(one: Found) -> str:
    """A target for people."""
    ratio = "-" if one["ratio"] is None else f"{one['ratio']:.2f}"
    return "{kernel:22}{size:>9}   {0:>7} x {other:10} at least {at_least:<5} {verdict}".format(ratio, **one)


def line(one: Found) -> str:
    """A row for people."""
    ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in one["times_as_fast_as"].items())
    us, share = one["us"]["ours"], f"{one['memory_share']:.0%}"
    return f"{one['kernel']:22}{one['size']:>9}{us:>11.1f}{one['gb_s']:>8.1f}{share:>8}   {ratios}"


def shown(size: int) -> str:
    """A size for people."""
    return f"{size // MIB} MiB" if size >= MIB else f"{size // 1024} KiB"


def machine() -> Found:
    """Where and with what this was measured."""
    cpu, commit = platform.processor() or platform.machine(), ""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        cpu = next((one.partition(": ")[2] for one in lines if one.startswith("model name")), cpu)
    with contextlib.suppress(OSError):
        command = ["git", "describe", "--always", "--dirty"]
        commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    packages = {
        name: module.__version__ for name in ("numpy", "scipy", "ml_dtypes", "torch") if (module := optional(name))
    }
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "tier": library().tier(),
        "features": library().features(),
        "compiler": library().compiler() or "an unknown compiler",
        "commit": commit,
        "packages": {"Python": platform.python_version(), **packages},
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured there as well")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of each (default {ROUNDS})")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="BYTES", help="of one float32 array")
    parser.add_argument("--only", default="", metavar="TEXT", help="only kernels with this in their name")
    return parser.parse_args()


if __name__ == "__main__":
    main()
