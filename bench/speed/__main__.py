"""`python -m bench.speed`: does one more PC make a training finish sooner? Tables, JSON, pictures, targets."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.speed import arms, ddp, estimate, mnist, plots, quotas, scaling, time_to_loss, unequal
from bench.speed.arms import Arm, Setting
from bench.speed.trial import say
from bench.wire import links
from services.tests.chaos import report

Row = dict[str, Any]
WORKERS = 4  # in the largest part
RATES = (links.Rate(100, 2), links.Rate(10, 10))
QUICK = Setting(rounds=3, target_loss=1.0, limit_s=60, quick=True)


@dataclass(frozen=True)
class Part:
    """How a part is measured on one network, told and judged; `links`: on how many of the links."""

    measure: Callable[[links.Links, Sequence[Arm], Setting], Iterator[Row]]
    line: Callable[[Row], str]
    targets: Callable[[list[Row]], Iterator[tuple[str, bool]]]
    arms: tuple[Arm, ...]
    links: int = len(RATES)


PARTS = {
    "scaling": Part(scaling.measure, scaling.line, scaling.targets, arms.SCALING),
    "time-to-loss": Part(time_to_loss.measure, time_to_loss.line, time_to_loss.targets, arms.TIME_TO_LOSS),
    "ddp": Part(ddp.measure, ddp.line, ddp.targets, arms.DDP),
    "estimate": Part(estimate.measure, estimate.line, estimate.targets, ()),
    "unequal": Part(unequal.measure, unequal.line, unequal.targets, arms.UNEQUAL, links=1),
}


def main() -> int:
    """Read the command line, measure, print, write. Exit code 0 also when targets are missed, 1 when nothing can be."""
    given = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that all is undone
    if given.mnist is not None:
        os.environ[mnist.VARIABLE] = str(given.mnist.resolve())
    mnist.register()
    if reason := mnist.missing() or links.available() or quotas.available():
        say(f"Speed cannot be measured here: {reason}")
        return 1
    setting = _setting(given)
    found: dict[str, Any] = {"setting": asdict(setting), "links": [], **{part: [] for part in given.parts}}
    try:
        for place, rate in enumerate(given.links):
            with links.Links(WORKERS, rate) as net:
                found["links"].append({**vars(rate), "rtt_ms": round(net.rtt_ms(), 2)})
                say(
                    f"{rate}; round trip {found['links'][-1]['rtt_ms']} ms; {setting.cores:g} of a core for each worker"
                )
                for name in given.parts:
                    if place < PARTS[name].links:
                        _measure(name, net, given.arm, setting, found[name])
    finally:  # what was seen is kept, also when a later part fails or somebody has no time
        _conclude(given, found)
    return 0


def _measure(name: str, net: links.Links, chosen: Sequence[Arm], setting: Setting, rows: list[Row]) -> None:
    if name == "ddp" and not ddp.available():
        say("ddp: torch is not installed here; `make bench-wire` installs it into build/bench-wire-venv")
        return
    say(f"{name}, {net.rate}")
    part = PARTS[name]
    for row in part.measure(net, chosen or (arms.QUICK if setting.quick else part.arms), setting):
        rows.append(row)
        say(part.line(row))


def _conclude(given: argparse.Namespace, found: dict[str, Any]) -> None:
    met = [one for name in given.parts for one in PARTS[name].targets(found[name])]
    for text, one in [("", True), *met] if met else []:
        say(f"{'met   ' if one else 'MISSED'}  {text}" if text else "targets")
    found["targets"] = [{"target": text, "met": one} for text, one in met]
    report.write(given.json, "speed", found)
    if given.json is not None:
        for path in plots.draw(given.json, found.get("scaling", []), found.get("time-to-loss", [])):
            say(f"drawn: {path}")


def _setting(given: argparse.Namespace) -> Setting:
    chosen = {name: getattr(given, name) for name in ("cores", "rounds", "target_loss", "limit_s")}
    start = asdict(QUICK if given.quick else Setting())
    return Setting(**{**start, **{name: value for name, value in chosen.items() if value is not None}})


def _rate(text: str) -> links.Rate:
    mbit, _, delay_ms = text.partition(":")
    return links.Rate(float(mbit), float(delay_ms or 0))


def _arm(text: str) -> Arm:
    try:
        arm: Arm = json.loads(text)
        arms.spec_of(arm, 1)  # a bad field is told now and not after an hour
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return arm


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.speed", description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured there; pictures beside it")
    parser.add_argument("--quick", action="store_true", help="as short as it gets: does it work? No figures to keep")
    parser.add_argument(
        "--arm",
        type=_arm,
        action="append",
        default=[],
        metavar="JSON",
        help="fields of a run's specification, instead of the lists in arms.py; may be given again",
    )
    parser.add_argument("--links", type=_rate, nargs="+", default=RATES, metavar="MBIT:MS", help="100:2 10:10")
    parser.add_argument("--cores", type=float, help="of a worker; four and the master must fit on this PC")
    parser.add_argument("--rounds", type=int, help="counted rounds")
    parser.add_argument("--target-loss", type=float, help="on the validation examples")
    parser.add_argument("--limit-s", type=float, help="of one run to the target loss")
    parser.add_argument("--mnist", type=Path, metavar="FILE", help=f"the digits, if not in {mnist.DEFAULT}")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
