"""`python -m services.tests.chaos.soak --minutes 10`: about 5 rounds a second for minutes; does anything grow?

Scripted workers (scripted.py) against the shipped master and console. Every few seconds: memory, descriptors and
threads of both. After the warm-up, in which the rings of events and rows fill, nothing may grow.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.common.protocol.join_string import parse_join_string
from services.launch import places
from services.tests.chaos import processes, report
from services.tests.chaos.scripted import Herd
from services.tests.chaos.thousand import SPEC, turn_until
from services.tests.chaos.watch import Watch
from services.tests.system.cluster import Cluster

MINUTES, WORKERS, ROUNDS_PER_S = 10.0, 3, 5.0
SAMPLE_EVERY_S = 5.0
SLOPE_MIB_PER_MINUTE = 1.0  # promised
JOIN_WAIT_S = 30.0


@dataclass(frozen=True)
class Sample:
    """One look at a service with its children, `at_s` after the start."""

    at_s: float
    rss_mib: float
    descriptors: int
    threads: int


def main() -> int:
    """Read the command line, run, print, write. Exit code 0 when rounds closed to the end."""
    parser = argparse.ArgumentParser(prog="python -m services.tests.chaos.soak")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--rate", type=float, default=ROUNDS_PER_S, help="rounds per second")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mahe-soak-") as home:
        results = play(args.minutes, args.workers, args.rate, Path(home))
    report.write(args.json, "soak", results)
    return 0 if results["held"] else 1


def play(minutes: float, workers: int, rate: float, home: Path) -> dict[str, Any]:
    """Run, sample, judge."""
    samples: dict[str, list[Sample]] = {"master": [], "console": []}
    with Cluster(home) as cluster:
        cluster.start_master()
        cluster.start_console()
        herd = Herd(parse_join_string(places.local_join_file(home / "master").read_text()))
        try:
            herd.start(workers)
            turn_until(herd, lambda: herd.joined >= workers, JOIN_WAIT_S)
            run = cluster.run(**SPEC, rounds=1_000_000, min_workers=workers)
            with Watch(home / "master" / "runs" / run) as watch:
                began = time.monotonic()
                while time.monotonic() - began < 60 * minutes:
                    herd.think_s = _pace(herd.think_s, rate, watch)
                    turn_until(herd, lambda: False, SAMPLE_EVERY_S)
                    for name, found in samples.items():
                        found.append(_look(cluster, name, began))
                    if len(samples["master"]) % 12 == 0:
                        _tell(samples, watch, began)
                rounds, lasted_s = watch.version, time.monotonic() - began
        finally:
            herd.close()
    figures = {name: _judge(found) for name, found in samples.items()}
    results = {
        "minutes": minutes,
        "workers": workers,
        "rounds": rounds,
        "rounds_per_s": round(rounds / lasted_s, 2),
        "services": figures,
        "samples": {name: [vars(one) for one in found] for name, found in samples.items()},
        "held": rounds > 0,
        "kept": all(one["slope_mib_per_minute"] <= SLOPE_MIB_PER_MINUTE and one["flat"] for one in figures.values()),
    }
    for name, one in figures.items():
        _say(
            f"{name}: RSS {one['rss_mib'][0]:.1f} -> {one['rss_mib'][1]:.1f} MiB in the second half, "
            f"{one['slope_mib_per_minute']:+.2f} MiB/min (by quarters of the run: {one['quarters_mib_per_minute']}), "
            f"fds {one['descriptors']}, threads {one['threads']}"
        )
    rate_s = results["rounds_per_s"]
    _say(f"{rounds} rounds, {rate_s} a second: promises {'kept' if results['kept'] else 'NOT KEPT'}")
    return results


def _pace(think_s: float, rate: float, watch: Watch) -> float:
    """The time to think for which the last rounds would have come at this rate."""
    recent = watch.closings[-20:]
    if len(recent) < 2:
        return think_s
    took_s = (recent[-1][0] - recent[0][0]) / (recent[-1][1] - recent[0][1])
    return max(0.0, think_s + 0.5 * (1 / rate - took_s))


def _look(cluster: Cluster, name: str, began: float) -> Sample:
    found = processes.size(processes.family(cluster.services[name].process.pid))
    return Sample(round(time.monotonic() - began, 1), found.rss_mib, found.descriptors, found.threads)


def _judge(samples: list[Sample]) -> dict[str, Any]:
    """The slope over the second half; flat: as many descriptors and threads at its end as at its beginning."""
    points = [(one.at_s, one.rss_mib) for one in samples]
    half, quarter = samples[len(samples) // 2 :], max(1, len(samples) // 4)
    slopes = [report.slope_per_minute(points[at : at + quarter]) for at in range(0, 4 * quarter, quarter)]
    descriptors = [min(one.descriptors for one in half), max(one.descriptors for one in half)]
    threads = [min(one.threads for one in half), max(one.threads for one in half)]
    third = max(1, len(half) // 3)
    return {
        "rss_mib": [half[0].rss_mib, half[-1].rss_mib],
        "slope_mib_per_minute": report.slope_per_minute(points[len(samples) // 2 :]),
        "quarters_mib_per_minute": slopes,
        "descriptors": descriptors,
        "threads": threads,
        "flat": all(
            max(getattr(one, what) for one in half[-third:]) <= max(getattr(one, what) for one in half[:third])
            for what in ("descriptors", "threads")
        ),
    }


def _tell(samples: dict[str, list[Sample]], watch: Watch, began: float) -> None:
    parts = [f"{name} {found[-1].rss_mib:.1f} MiB {found[-1].descriptors} fds" for name, found in samples.items()]
    _say(f"{(time.monotonic() - began) / 60:4.1f} min, round {watch.version}: {', '.join(parts)}")


def _say(text: str) -> None:
    print(f"[SOAK] {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
