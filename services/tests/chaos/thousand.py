"""`python -m services.tests.chaos.thousand`: 1,000 CURVE sockets join one real master and do 20 rounds of a tiny model.

The sockets are real, the workers scripted (scripted.py), the master and the console are the shipped processes.
"""

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from services.common.protocol.join_string import parse_join_string
from services.launch import places
from services.tests.chaos import processes, report
from services.tests.chaos.scripted import Herd
from services.tests.chaos.watch import Watch
from services.tests.system.cluster import Cluster, linked

if sys.platform != "win32":
    import resource

WORKERS, ROUNDS = 1000, 20
JOIN_S, RSS_MIB = 30.0, 300.0  # promised
GIVE_UP_S = 300.0
FILES_PER_SOCKET, FILES_OWN = 4, 256
SPEC: dict[str, Any] = {
    "dataset": "gauss3",
    "model": {"family": "softmax"},
    "k_steps": 5,
    "batch": 8,
    "balance": "equal",
    "encoding": "fp32",
}


def main() -> int:
    """Read the command line, run, print, write. Exit code 0 when all joined and all rounds closed."""
    parser = argparse.ArgumentParser(prog="python -m services.tests.chaos.thousand")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    raise_file_limit(args.workers)
    with tempfile.TemporaryDirectory(prefix="mahe-thousand-") as home:
        results = play(args.workers, args.rounds, Path(home))
    report.write(args.json, "thousand", results)
    return 0 if results["held"] else 1


def raise_file_limit(sockets: int) -> None:
    """Each socket needs its connection and its mailbox."""
    if sys.platform == "win32":
        return
    else:  # noqa: RET505 - so that mypy leaves this part out for Windows
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = FILES_PER_SOCKET * sockets + FILES_OWN
        if soft < wanted:
            assert hard == resource.RLIM_INFINITY or hard >= wanted, f"{wanted} descriptors are needed, {hard} allowed"
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def play(workers: int, rounds: int, home: Path) -> dict[str, Any]:
    """Join, train, measure."""
    with Cluster(home) as cluster:
        cluster.start_master()
        cluster.start_console()
        pid = cluster.services["master"].process.pid
        join = parse_join_string(places.local_join_file(home / "master").read_text())
        before = processes.size([pid])
        herd = Herd(join)
        try:
            herd.start(workers)
            join_s = turn_until(herd, lambda: herd.joined >= workers, GIVE_UP_S)
            joined = processes.size([pid])
            _say(f"{herd.joined} of {workers} joined in {join_s:.1f} s; the master holds {joined}")
            run = cluster.run(**SPEC, rounds=rounds, min_workers=workers)
            with Watch(home / "master" / "runs" / run) as watch:
                train_s = turn_until(herd, lambda: watch.version >= rounds, GIVE_UP_S)
                closings = [at for at, _ in watch.closings]
            after, own = processes.size([pid]), processes.size([os.getpid()])
            console = processes.size([cluster.services["console"].process.pid])
            state = cluster.api.snapshot()
            seen = len(linked(state))
        finally:
            herd.close()
    gaps = [later - earlier for earlier, later in itertools.pairwise(closings)]
    results = {
        "workers": workers,
        "joined": herd.joined,
        "linked_on_page": seen,
        "join_s": round(join_s, 1),
        "rounds": watch.version,
        "rounds_s": round(train_s, 1),
        "round_median_s": report.median(gaps),
        "master": {"before": vars(before), "joined": vars(joined), "after": vars(after)},
        "console": vars(console),
        "this_process": vars(own),
        "messages": dict(herd.seen),
        "promised": {"join_s": JOIN_S, "master_rss_mib": RSS_MIB},
        "held": herd.joined == workers and watch.version == rounds,
        "kept": join_s <= JOIN_S and after.rss_mib <= RSS_MIB,
    }
    promises = "kept" if results["kept"] else "NOT KEPT"
    _say(
        f"workers={workers} join={join_s:.1f} s rounds={watch.version} in {train_s:.1f} s (median "
        f"{report.median(gaps):.2f} s) master={after} console={console} linked_on_page={seen}: promises {promises}"
    )
    return results


def turn_until(herd: Herd, done: Callable[[], bool], limit_s: float) -> float:
    """Let the herd work until `done()`, at most `limit_s`; how long it took, in s."""
    began = time.monotonic()
    while not done() and time.monotonic() - began < limit_s:
        herd.turn()
    return time.monotonic() - began


def _say(text: str) -> None:
    print(f"[THOUSAND] {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
