"""`make chaos`: a real cluster, a fault every few seconds, and what it cost. Exit code 0 when everything held.

First the same cluster runs without faults for a while; then come the faults; then it must go on. Checked: every
announced version durable, rounds 1 to N once each; a round closes within HANG_S of each mend; the share of the
fault-free samples/s that was kept; every process ends, none is left.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from services.master.shell import checkpoints
from services.master.shell.checkpoints import rounds_in
from services.tests.chaos import faults, ledger, processes, report
from services.tests.chaos.storm import Mend, Storm, undo_on_sigterm
from services.tests.chaos.verdict import CALM_S, EVERY_S, HANG_S, Plan, Tale, judge, say
from services.tests.chaos.watch import Watch, first_after

SPEC: dict[str, Any] = {"dataset": "digits", "batch": 32, "rounds": 100_000}
Pending = tuple[float, faults.Fault, Mend]  # due, what, how to mend it


def main() -> int:
    """Read the command line, run, print, write."""
    parser = argparse.ArgumentParser(prog="make chaos")
    parser.add_argument("--faults", type=int, default=Plan.faults)
    parser.add_argument("--seed", type=int, default=Plan.seed)
    parser.add_argument("--workers", type=int, default=Plan.workers)
    parser.add_argument("--every", type=float, default=EVERY_S, help="seconds between faults")
    parser.add_argument("--calm", type=float, default=CALM_S, help="seconds without faults, measured before")
    parser.add_argument("--k-steps", type=int, default=Plan.k_steps, help="local steps: how long a round takes")
    parser.add_argument("--units", type=int, default=0, help="so many units a round; then the bits are compared, too")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    undo_on_sigterm()
    plan = Plan(args.seed, args.faults, args.workers, args.every, args.calm, args.k_steps, args.units)
    with tempfile.TemporaryDirectory(prefix="mahe-chaos-") as home:
        results = play(plan, Path(home) / "rough")
        if plan.units:
            results["same_bits"] = same_bits(plan, Path(home))
            results["held"] = results["held"] and results["same_bits"]
    report.write(args.json, "chaos", results)
    return 0 if results["held"] else 1


def spec_of(plan: Plan) -> dict[str, Any]:
    """The run: shards of the same size for all, or units."""
    if not plan.units:
        return {**SPEC, "balance": "equal", "k_steps": plan.k_steps}
    return {**SPEC, "balance": "units", "units": plan.units, "k_steps": plan.k_steps * plan.workers // plan.units}


def same_bits(plan: Plan, home: Path) -> bool:
    """Whether a cluster without faults comes to the same parameters, bit by bit, after as many rounds."""
    [rough] = (home / "rough" / "master" / "runs").iterdir()
    version = rounds_in(rough)[-1]
    say(f"the same {version} rounds again, without faults")
    with Storm(home / "calm", plan.workers, with_network=False) as storm:
        run = storm.run(**{**spec_of(plan), "rounds": version})
        calm = home / "calm" / "master" / "runs" / run
        with Watch(calm) as watch:
            watch.wait_for(version, 3600)
        storm.end()
    found, expected = (checkpoints.read(checkpoints.path_of(one, version)).parameters for one in (rough, calm))
    say(f"version {version}: {'the same bits' if found.tobytes() == expected.tobytes() else 'OTHER BITS'}")
    return found.tobytes() == expected.tobytes()


def play(plan: Plan, home: Path) -> dict[str, Any]:
    """The whole story; the results, ready for JSON."""
    with Storm(home, plan.workers) as storm:
        say(f"{plan.workers} workers joined; partitions are {'on' if storm.cuttable else 'off (they need root)'}")
        run = storm.run(**spec_of(plan))
        with Watch(home / "master" / "runs" / run) as watch:
            tale = Tale()
            watch.wait_for(2, HANG_S)
            began, used = time.monotonic(), processes.processor_s()
            time.sleep(plan.calm_s)
            tale.calm = (began, time.monotonic())
            tale.calm_busy = processes.busy_share(used)
            began, used = time.monotonic(), processes.processor_s()
            _hurt_all(plan, storm, watch, tale)
            tale.rough = (began, time.monotonic())
            tale.rough_busy = processes.busy_share(used)
            _settle(watch, tale)
            storm.until_linked(plan.workers)
            last = watch.version
            watch.wait_for(last + 1, HANG_S)
            ends = storm.end()
        book = ledger.read(home / "master", run, storm.cluster.log("master"))
        tracebacks = [path.name for path in (home / "logs").glob("*.log") if "Traceback" in path.read_text()]
        if tracebacks:
            ends.append(f"tracebacks in {tracebacks}")
        return judge(plan, tale, watch.closings, book, ends)


def _hurt_all(plan: Plan, storm: Storm, watch: Watch, tale: Tale) -> None:
    """A fault every `every_s`; whoever is still hurt is mended before it is hurt again."""
    began = time.monotonic()
    pending: list[Pending] = []
    for fault in faults.draw(plan.seed, plan.faults, plan.workers, with_cuts=storm.cuttable):
        _mend_until(began + (fault.number - 1) * plan.every_s, pending, tale)
        for entry in [one for one in pending if one[1].whom & fault.whom]:
            _mend(entry, pending, tale)
        say(f"{fault.number:3d} at {time.monotonic() - began:5.1f} s, version {watch.version:4d}: {fault}")
        tale.hurts.append((time.monotonic(), fault))
        mend = storm.hurt(fault)
        pending.append((time.monotonic() + fault.hold_s, fault, mend))
    _mend_until(began + plan.faults * plan.every_s, pending, tale)
    while pending:
        _mend(pending[0], pending, tale)


def _mend_until(moment: float, pending: list[Pending], tale: Tale) -> None:
    """Sleep until then, and mend what is due meanwhile."""
    while time.monotonic() < moment:
        for entry in [one for one in pending if one[0] <= time.monotonic()]:
            _mend(entry, pending, tale)
        time.sleep(min(0.05, max(0.0, moment - time.monotonic())))


def _mend(entry: Pending, pending: list[Pending], tale: Tale) -> None:
    pending.remove(entry)
    entry[2]()
    tale.mends.append((time.monotonic(), entry[1]))


def _settle(watch: Watch, tale: Tale) -> None:
    """After the last mend a round must close, else `_judge` calls it a hang."""
    deadline = time.monotonic() + HANG_S
    while first_after(watch.closings, tale.mends[-1][0]) is None and time.monotonic() < deadline:
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
