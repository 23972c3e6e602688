"""`make bench-wire`: rounds on slow links, rounds without training on loopback; tables, JSON, pictures, targets."""

import argparse
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.wire import cluster, exchange, links, overhead, phases, plots
from services.common.protocol.encodings import ENCODINGS
from services.tests.chaos import report

PARTS = ("wire", "hivemind", "overhead", "memory")


def main() -> int:
    """Read the command line, measure, print, write. Exit code 0 also when targets are missed."""
    given = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that all is undone
    if given.first:
        os.environ[cluster.FIRST] = "1"
        os.nice(cluster.MOST_URGENT)
        Path("/proc/self/autogroup").write_text(str(cluster.MOST_URGENT))
    found: dict[str, Any] = {part: [] for part in PARTS}
    met: list[tuple[str, bool]] = []
    if {"wire", "hivemind"} & set(given.parts):
        met += _slow(given, found)
    if "overhead" in given.parts:
        for row in overhead.measure(given.sizes, given.workers, given.times, profile=given.profile):
            found["overhead"].append(row)
            _say(list(overhead.table([row]))[len(found["overhead"]) > 1 :])
            _say([overhead.cpu_line(row)])
            _tell_phases(row)
    if "memory" in given.parts:
        found["memory"] = list(overhead.memory(given.times))
        _say(overhead.memory_table(found["memory"]))
    met += overhead.targets(found["overhead"], found["memory"])
    _say(["", "targets", *(f"  {'met   ' if one else 'MISSED'}  {text}" for text, one in met)])
    found["targets"] = [{"target": text, "met": one} for text, one in met]
    report.write(given.json, "wire", found)
    if given.json is not None:
        _say(f"drawn: {path}" for path in plots.draw(given.json, found["wire"], found["overhead"]))
    return 0


def _slow(given: argparse.Namespace, found: dict[str, Any]) -> list[tuple[str, bool]]:
    """The parts that need slow links."""
    if reason := links.available():
        _say([f"no slow links here: {reason}"])
        return []
    rate = links.Rate(given.mbit, given.delay_ms, given.queue_kib)
    with links.Links(exchange.WORKERS, rate) as net:
        found["links"] = {**vars(rate), "rtt_ms": round(net.rtt_ms(), 2)}
        _say([f"{exchange.WORKERS} workers and a master on {rate}; round trip {found['links']['rtt_ms']} ms"])
        if "wire" in given.parts:
            for row in exchange.measure(net, given.encodings, given.n, given.rounds, profile=given.profile):
                found["wire"].append(row)
                _say(list(exchange.table([row]))[len(found["wire"]) > 1 :])
                _tell_phases(row)
        if "hivemind" in given.parts:
            found["hivemind"] = list(exchange.hivemind(net, given.n, given.rounds))
            _say(exchange.hivemind_table(found["hivemind"]) if found["hivemind"] else ["hivemind is not installed"])
    found["links"]["switch"] = net.said
    return list(exchange.targets(found["wire"], rate))


def _tell_phases(row: dict[str, Any]) -> None:
    if "phases" in row:
        _say(phases.lines(row["phases"]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-wire", description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured there; pictures beside it")
    parser.add_argument("--mbit", type=float, default=100.0, help="of each port, each way")
    parser.add_argument("--delay-ms", type=float, default=2.0, help="one way")
    parser.add_argument("--queue-kib", type=float, default=512.0, help="of each port of the switch")
    parser.add_argument("--encodings", nargs="+", choices=ENCODINGS, default=ENCODINGS)
    parser.add_argument("--n", type=int, default=10**6, help="parameters, about, on slow links")
    parser.add_argument("--rounds", type=int, default=25, help="counted rounds on slow links")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(overhead.ROUNDS), help="parameters on loopback")
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4], help="on loopback")
    parser.add_argument("--times", type=float, default=1.0, help="so many times the usual rounds on loopback")
    parser.add_argument("--profile", action="store_true", help="record where a round goes; it takes a little longer")
    parser.add_argument("--first", action="store_true", help="go before other programs of a busy PC; needs root")
    return parser.parse_args()


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
