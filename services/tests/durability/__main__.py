"""`python -m services.tests.durability --kills 1000 --json FILE`: the long run; one line, and the figures as JSON.

Real clusters, one after the other, killed at every failpoint and then at points by chance; the power cut with several
seeds; every bit of a checkpoint. Any loss ends it with an AssertionError that says what was lost.
"""

import argparse
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from services.tests.durability.damage import damage_everywhere
from services.tests.durability.lives import (
    Lives,
    any_time_points,
    by_chance,
    removal_points,
    run_points,
    start_points,
    worker_points,
)
from services.tests.durability.power import cut_after_each_kill, cut_everywhere
from services.tests.durability.scenarios import SCENARIOS
from services.tests.system.cluster import Cluster

MORE = 40  # kills by chance in each cluster, after those at every point
ROUNDS = 300


def main() -> int:
    """0 when nothing was lost."""
    parser = argparse.ArgumentParser(prog="python -m services.tests.durability")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=10, help="so many choices of torn and reordered writes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mahe-durability-") as scratch:
        folder = Path(scratch)
        figures: dict[str, Any] = {
            "power_loss_states": _cut(folder / "power", range(args.seed, args.seed + args.seeds)),
            "damages": damage_everywhere(folder / "damage"),
            **_kill(folder, args.kills, args.seed),
        }
    figures["seconds"] = round(time.monotonic() - began)
    print("[DURABILITY] " + " ".join(f"{name}={value}" for name, value in figures.items()))
    if args.json is not None:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def _cut(folder: Path, seeds: range) -> int:
    """Different states of all scenarios and seeds."""
    seen: set[Any] = set()
    for seed in seeds:
        for scenario in SCENARIOS.values():
            cut_everywhere(scenario, folder, seed, seen)
        cut_after_each_kill(folder, seed, seen)
        print(f"[POWER] seed {seed}: {len(seen)} states", flush=True)
    return len(seen)


def _kill(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    hit: list[str] = []
    slowest_s = 0.0
    for number in itertools.count(1):
        if len(hit) >= kills:
            break
        with Cluster(folder / f"cluster-{number}") as cluster:
            lives = Lives(cluster)
            lives.first_starts(start_points())
            lives.play(_master(seed + number), _worker(seed + number), ROUNDS)
            lives.removals(removal_points())
        hit += lives.hit
        slowest_s = max(slowest_s, lives.slowest_s)
        print(f"[KILLS] cluster {number}: {len(hit)} kills at {len(set(hit))} points", flush=True)
    return {"kills": len(hit), "failpoints": len(set(hit)), "rounds_lost": 0, "slowest_start_s": round(slowest_s, 1)}


def _master(seed: int) -> Iterator[str]:
    return itertools.chain(run_points(), by_chance(any_time_points(run_points()), seed, MORE))


def _worker(seed: int) -> Iterator[str]:
    return itertools.chain(worker_points(), by_chance(any_time_points(worker_points()), seed, MORE // 2))


if __name__ == "__main__":
    sys.exit(main())
