"""What is too long for CI: a thousand cluster-hours of trouble, seeds played twice, a thousand workers.

Part of `make release`. Prints a line for each part and writes JSON:
`python -m services.tests.simulation.release --json bench/results/simulation.json`.
"""

import argparse
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Literal

from services.tests.simulation.cluster import Cluster, Plan

InFlight = Literal[1, 2] | None

MANY_WORKERS = 1_000
MANY_ROUNDS = 20
MANY_PACE = 20.0  # times as quick as usual: rounds of about a second, so that the wall time is that of the rounds


def play(plan: Plan) -> dict[str, Any]:
    """One seed. One that fails is played again at once, for it must fail again: else something was not simulated."""
    cluster = Cluster(plan)
    try:
        outcome = cluster.run()
    except Exception as error:  # noqa: BLE001 - told below
        failed = f"{type(error).__name__}: {error}"
        return {"seed": plan.seed, "failed": failed, "again": again(plan), "last": cluster.world.tell_last()}
    return {"seed": plan.seed, "hours": outcome.hours, "faults": outcome.faults, "rounds": outcome.rounds,
            "restarts": outcome.restarts, "digest": outcome.digest}  # fmt: skip


def again(plan: Plan) -> str:
    """How the same seed ends this time."""
    try:
        return f"held: {Cluster(plan).run().digest}"
    except Exception as error:  # noqa: BLE001 - told in words
        return f"{type(error).__name__}: {error}"


def drawn(seed: int, hours: float, in_flight: InFlight) -> Plan:
    """A seed's plan: 2 to 7 workers, a fourth of the seeds with units (which never overlap)."""
    return Plan(seed, 2 + seed % 6, hours, units=seed % 4 == 0, rounds_in_flight=in_flight)


def trouble(pool: ProcessPoolExecutor, seeds: int, hours: float, in_flight: InFlight) -> dict[str, Any]:
    """Many seeds, each with so many hours."""
    plans = [drawn(seed, hours, in_flight) for seed in range(1, seeds + 1)]
    started = time.monotonic()
    found: list[dict[str, Any]] = []
    for one in pool.map(play, plans, chunksize=1):
        found.append(one)
        if len(found) % 50 == 0:
            print(f"[RELEASE] {len(found)} of {seeds} seeds, {time.monotonic() - started:.0f} s", flush=True)
    good = [one for one in found if "failed" not in one]
    return {
        "seeds": len(found),
        "cluster_hours": round(sum(one["hours"] for one in good), 1),
        "faults": sum(one["faults"] for one in good),
        "rounds": sum(one["rounds"] for one in good),
        "master_restarts": sum(one["restarts"] for one in good),
        "wall_s": round(time.monotonic() - started),
        "failed": [one for one in found if "failed" in one],
    }


def twice(pool: ProcessPoolExecutor, seeds: int, in_flight: InFlight) -> dict[str, Any]:
    """Each seed two times: the same digest of everything that happened."""
    plans = [drawn(seed, 0.1, in_flight) for seed in range(1, seeds + 1)]
    first, second = list(pool.map(play, plans)), list(pool.map(play, plans))
    different = [one["seed"] for one, other in zip(first, second, strict=True) if one != other]
    return {"seeds": seeds, "different": different}


def many_workers() -> dict[str, Any]:
    """A thousand workers, twenty rounds, no faults."""
    started = time.monotonic()
    cluster = Cluster(Plan(7, MANY_WORKERS, 0.04, MANY_ROUNDS, faults=False, k_steps=1, pace=MANY_PACE))
    outcome = cluster.run()
    wall_s = time.monotonic() - started
    return {"workers": MANY_WORKERS, "rounds": outcome.rounds, "wall_s": round(wall_s, 1), "target_s": 60}


def commit() -> str:
    """What is checked out."""
    found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip()


def main() -> int:
    """0 when everything held."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--hours", type=float, default=1.0, help="of each seed")
    parser.add_argument("--twice", type=int, default=100)
    parser.add_argument("--in-flight", type=int, choices=(1, 2), help="rounds of every seed; else drawn by the seed")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    report: dict[str, Any] = {
        "commit": commit(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "rounds_in_flight": args.in_flight or "by the seed: 2, auto, 2, 1; with units 1",
    }
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        report["many_workers"] = pool.submit(many_workers).result()
        print(f"[RELEASE] {report['many_workers']}", flush=True)
        report["twice"] = twice(pool, args.twice, args.in_flight)
        print(f"[RELEASE] {report['twice']}", flush=True)
        report["trouble"] = trouble(pool, args.seeds, args.hours, args.in_flight)
        print(f"[RELEASE] {report['trouble']}", flush=True)
    if args.json is not None:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(report, indent=2) + "\n")
    return 1 if report["trouble"]["failed"] or report["twice"]["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
