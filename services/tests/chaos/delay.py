"""How long one fault holds up a round: `python -m services.tests.chaos.delay`. Prints medians, writes JSON.

Each trial waits for undisturbed rounds, hurts one worker while its lease is out, and takes how much longer than usual
the rounds took that closed meanwhile: the longest of them, and all together.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.master.core.policy import Limits
from services.tests.chaos import processes, report
from services.tests.chaos.faults import Fault, Kind
from services.tests.chaos.storm import Mend, Storm, undo_on_sigterm
from services.tests.chaos.watch import Watch
from services.tests.system.cluster import lease_states

WAIT_S = 60.0
SUSPECT_S = Limits().suspect_ms / 1000  # silent so long, nobody is waited for any more
VICTIM = 1
NAME = f"worker-{VICTIM}"
SPEC: dict[str, Any] = {"dataset": "digits", "batch": 32, "rounds": 100_000, "balance": "equal"}


@dataclass(frozen=True)
class Way:
    """One kind of trial. `rounds`: so many close before it is mended; `limit_s`: what is promised for one round."""

    name: str
    hurt: Callable[[Storm], Mend]
    min_workers: int
    rounds: int
    limit_s: float


def main() -> int:
    """Read the command line, measure, print, write. Exit code 0 when no round hung."""
    parser = argparse.ArgumentParser(prog="python -m services.tests.chaos.delay")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--k-steps", type=int, default=2500)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    undo_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="mahe-delay-") as home, Storm(Path(home), args.workers) as storm:
        found = [measure(storm, way, args.times, args.k_steps) for way in ways(args.workers, cuts=storm.cuttable)]
        faults = storm.end()
    for line in faults:
        _say(line)
    report.write(args.json, "delay", {"workers": args.workers, "ways": found, "ends": faults})
    return 1 if faults else 0


def ways(workers: int, *, cuts: bool) -> list[Way]:
    """What is measured. With all workers wanted the quorum waits for the victim as long as it may still be there."""
    found = [
        Way("killed worker", _kill, 1, 2, 4.0),
        Way("killed worker, all wanted", _kill, workers, 1, 4.0),
        Way("killed trainer", _kill_trainer, 1, 1, 4.0),
        Way("frozen worker", _freeze, 1, 3, 5.0),
        Way("frozen worker, all wanted", _freeze, workers, 1, SUSPECT_S),
    ]
    if cuts:
        found.append(Way("PC without power", _power_off, 1, 3, 15.0))
        found.append(Way("PC without power, all wanted", _power_off, workers, 1, 15.0))
    return found


def measure(storm: Storm, way: Way, times: int, k_steps: int) -> dict[str, Any]:
    """Several trials of one kind, in a run of their own."""
    run = storm.run(**SPEC, k_steps=k_steps, min_workers=way.min_workers)
    with Watch(storm.home / "master" / "runs" / run) as watch:
        trials = [_trial(storm, watch, way, run) for _ in range(times)]
    storm.cluster.api.post(f"/api/v1/runs/{run}/stop", {})
    storm.cluster.until(
        lambda state: (state["run"]["phase"], state["run"]["rounds_open"]) == ("STOPPED", []), "the stop"
    )
    longest = [max(delays) for delays, _ in trials]
    together = [sum(delays) for delays, _ in trials]
    usual = report.median([one for _, one in trials])
    _say(
        f"{way.name}: usual round {usual:.2f} s; one round is delayed by {report.median(longest):.2f} s "
        f"({', '.join(f'{one:.2f}' for one in longest)}), promised {way.limit_s:.0f} s; all rounds meanwhile "
        f"together by {report.median(together):.2f} s"
    )
    return {
        "way": way.name,
        "min_workers": way.min_workers,
        "usual_round_s": usual,
        "one_round_delay_s": [round(one, 3) for one in longest],
        "one_round_delay_median_s": report.median(longest),
        "all_rounds_delay_median_s": report.median(together),
        "delays_s": [[round(one, 3) for one in delays] for delays, _ in trials],
        "promised_s": way.limit_s,
        "kept": max(longest) <= way.limit_s,
    }


def _trial(storm: Storm, watch: Watch, way: Way, run: str) -> tuple[list[float], float]:
    """(how much longer each round took that closed while it was hurt, the usual time of a round), in s."""
    storm.until_linked(storm.workers)
    done = _done(storm.cluster.api.snapshot())
    storm.cluster.until(lambda state: _done(state) > done, f"{NAME} to do a piece of work", WAIT_S)
    watch.wait_for(max(watch.version, 0) + 4, WAIT_S)
    moments = [at for at, _ in watch.closings[-3:]]
    usual = (moments[-1] - moments[0]) / 2
    last = watch.version
    watch.wait_for(last + 1, WAIT_S)
    storm.cluster.until(
        lambda state: state["run"]["id"] == run and lease_states(state).get(NAME) == "OUT", f"the lease of {NAME}"
    )
    before = watch.version
    mend = way.hurt(storm)
    watch.wait_for(before + way.rounds, WAIT_S)
    mend()
    ends = [at for at, version in watch.closings if before <= version <= before + way.rounds]
    return [max(0.0, after - begin - usual) for begin, after in itertools.pairwise(ends)], usual


def _done(state: dict[str, Any]) -> int:
    """Rounds that the victim has had a part in since it joined."""
    return sum(int(worker["accepted_rounds"]) for worker in state["workers"] if worker["name"] == NAME)


def _kill(storm: Storm) -> Mend:
    return storm.hurt(Fault(0, Kind.KILL_WORKER, (VICTIM,), 0.0))


def _kill_trainer(storm: Storm) -> Mend:
    processes.signal_all(processes.named(storm.members(VICTIM), "trainer"), "SIGKILL")
    return lambda: None


def _freeze(storm: Storm) -> Mend:
    return storm.hurt(Fault(0, Kind.FREEZE, (VICTIM,), 0.0))


def _power_off(storm: Storm) -> Mend:
    """No packet from now on and nobody says goodbye; the PC comes back as it was."""
    freeze = _freeze(storm)
    heal = storm.hurt(Fault(0, Kind.CUT, (VICTIM,), 0.0))

    def mend() -> None:
        heal()
        freeze()

    return mend


def _say(text: str) -> None:
    print(f"[DELAY] {text}", flush=True)


if __name__ == "__main__":
    began = time.monotonic()
    code = main()
    _say(f"took {time.monotonic() - began:.0f} s")
    sys.exit(code)
