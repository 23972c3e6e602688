"""Two of eight workers send poison, on a real cluster: processes, encrypted sockets, the master's own evaluation.

One cluster for all runs. What poison.py shows in one process, for the rules promised and the plain mean beside them;
whom the log names must be whom the API names.
"""

import contextlib
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.learning.poison import ATTACKS, BASE, POINTS
from services.common.errors import MaheError
from services.launch import places
from services.tests.system.cluster import Cluster, finished, linked
from services.tests.system.poisoned_trainer import VARIABLE

RULES = ("clip", "median", "mean")
PROMISED = ("clip", "median")
WORKERS, POISONED = BASE.workers, ("poisoned-1", "poisoned-2")
START_S, RUN_S, SETTLE_S = 60.0, 120.0, 10.0
DELTA_LINE = re.compile(r"\[DELTA\] round \d+ shard \d+: the delta of (\S+) (counts|is refused)[^:]*: (.*)")

State = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What a run came to, and whom it named: rounds by worker."""

    accuracy: float
    version: int
    reason: str
    clipped: Counter[str]  # as the API counts
    set_aside: dict[str, str]  # as the API says: what a worker without work is told to wait for
    quarantined: list[str]
    clipped_in_log: Counter[str]
    refused_in_log: Counter[str]
    why: dict[str, str]  # the log's words on the poisoned ones

    def named_right(self, rule: str, attack: str) -> bool:
        """Both that sent poison, nobody else, and by log and API alike.

        Nobody where there is nothing to see: a flipped delta is as long as any other, and a median names no one.
        """
        often = {name for name, rounds in self.clipped.items() if rounds > BASE.rounds / 2}
        is_long, is_refused = (rule, attack) == ("clip", "x-10"), attack == "nan"
        clipped_right = often == set(POISONED if is_long else ()) and self.clipped == self.clipped_in_log
        refused_right = set(self.refused_in_log) == set(POISONED if is_refused else ())
        return clipped_right and refused_right and self.refused_in_log.keys() <= self.set_aside.keys()


class Crew:
    """The workers of one cluster. One that has a failure behind it is replaced by a new one of the same name."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._attacks: dict[str, str] = {}  # of the workers that are there; "": honest
        self._started = 0

    def muster(self, attack: str) -> State:
        """The state when all are there, honest or, if there is an `attack`, two of them not."""
        last = POISONED if attack else tuple(f"worker-{WORKERS - n}" for n in range(len(POISONED)))
        wanted = {f"worker-{n + 1}": "" for n in range(WORKERS - len(last))} | dict.fromkeys(last, attack)
        for worker in self._cluster.api.snapshot().get("workers", []):
            if worker["reason"] or wanted.get(worker["name"]) != self._attacks[worker["name"]]:
                self.dismiss(worker["name"])
        for name in sorted(wanted.keys() - self._attacks.keys()):
            self._start(name, wanted[name])
        return self._cluster.until(lambda state: _all_ready(state, wanted), "eight workers", START_S)

    def dismiss(self, name: str) -> None:
        """End this worker and let the master forget it: what it did does not count against the next of this name."""
        workers = self._cluster.api.snapshot()["workers"]
        self._cluster.kill(name)
        self._cluster.delete(f"/api/v1/workers/{next(worker['id'] for worker in workers if worker['name'] == name)}")
        self._cluster.until(lambda state: name not in _by_name(state), f"{name} to be forgotten")
        del self._attacks[name]

    def _start(self, name: str, attack: str) -> None:
        self._started += 1
        self._attacks[name] = attack
        module = "services.tests.system.poisoned_agent" if attack else places.MODULES["worker"]
        data = str(self._cluster.home / f"{name}.{self._started}")
        self._cluster.start_worker(name, module, MAHE_WORKER_DATA=data, MAHE_WORKER_SCORE="1000", **{VARIABLE: attack})


def poison_cluster(seeds: Sequence[int]) -> list[dict[str, Any]]:
    """A row for each rule and attack; `held` only where it is promised: the default rule and the median."""
    found: dict[tuple[str, str], list[Outcome]] = {}
    with tempfile.TemporaryDirectory(prefix="mahe-poison-") as home, Cluster(Path(home)) as cluster:
        cluster.start_master()
        cluster.start_console()
        crew = Crew(cluster)
        for attack in ("", *ATTACKS):
            for rule in RULES:
                found[rule, attack] = [_run(cluster, crew, rule, attack, seed) for seed in seeds]
    best = statistics.mean(one.accuracy for one in found["mean", ""])
    return [_row(rule, attack, best, found) for rule in RULES for attack in ATTACKS]


def _row(rule: str, attack: str, best: float, found: dict[tuple[str, str], list[Outcome]]) -> dict[str, Any]:
    runs = found[rule, attack]
    worse = 100 * (best - statistics.mean(one.accuracy for one in runs))
    named_right = all(one.named_right(rule, attack) for one in runs)
    held = worse <= POINTS and named_right and all(one.version == BASE.rounds for one in runs)
    return {
        "rule": rule,
        "attack": attack,
        "clean": round(statistics.mean(one.accuracy for one in found[rule, ""]), 4),
        "accuracies": [round(one.accuracy, 4) for one in runs],
        "points_below_clean_mean": round(worse, 2),
        "ended_early": [one.reason for one in runs if one.version != BASE.rounds],
        "rounds": sum(one.version for one in runs),
        "clipped": dict(sum((one.clipped for one in runs), Counter())),
        "refused": dict(sum((one.refused_in_log for one in runs), Counter())),
        "quarantined": dict(Counter(name for one in runs for name in one.quarantined)),
        "why": runs[0].why,
        "set_aside": runs[0].set_aside,
        "named_right": named_right,
        "target": POINTS if rule in PROMISED else None,
        "held": held if rule in PROMISED else None,
    }


def _run(cluster: Cluster, crew: Crew, rule: str, attack: str, seed: int) -> Outcome:
    before = _by_name(crew.muster(attack))
    written = len(cluster.log("master"))
    began = time.monotonic()
    run = cluster.run(**_spec(rule, attack, seed))

    def is_over(state: State) -> bool:
        return state["run"]["id"] == run and (finished(state) or state["run"]["phase"] == "FAILED")

    with contextlib.suppress(MaheError):  # too slow: it is stopped, and has come as far as it has
        cluster.until(is_over, "the end of the run", RUN_S)
    if not finished(cluster.api.snapshot()):
        with contextlib.suppress(MaheError):  # it has FAILED by itself
            cluster.api.post(f"/api/v1/runs/{run}/stop", {})
    lines = DELTA_LINE.findall(cluster.log("master")[written:])
    clipped = Counter(name for name, what, _ in lines if what == "counts")
    refused = Counter(name for name, what, _ in lines if what == "is refused")

    def agrees(state: State) -> bool:
        set_aside = attack != "nan" or refused.keys() <= _set_aside(state).keys()
        return set_aside and _clipped_since(before, state) == clipped

    with contextlib.suppress(MaheError):  # then the row says that it does not
        cluster.until(agrees, "the API to say what the log says", SETTLE_S)
    state = cluster.api.snapshot()
    outcome = Outcome(
        accuracy=(state["run"]["last_eval"] or {"accuracy": 0.0})["accuracy"],
        version=state["run"]["version"],
        reason=state["run"]["reason"],
        clipped=_clipped_since(before, state),
        set_aside=_set_aside(state),
        quarantined=[worker["name"] for worker in state["workers"] if worker["quarantined"]],
        clipped_in_log=clipped,
        refused_in_log=refused,
        why={name: why for name, _, why in reversed(lines) if name in POISONED},
    )
    for name in refused:
        crew.dismiss(name)
    took = f"{time.monotonic() - began:.1f} s"
    print(f"   {rule} {attack or 'clean'} seed {seed}: {outcome.accuracy:.4f} at {outcome.version}, {took}", flush=True)
    return outcome


def _spec(rule: str, attack: str, seed: int) -> dict[str, Any]:
    return {
        "name": f"{rule}-{attack or 'clean'}-{seed}",
        "dataset": "digits",
        "model": BASE.model,
        "inner": BASE.inner,
        "outer": BASE.outer,
        "rounds": BASE.rounds,
        "min_workers": WORKERS - len(POISONED),
        "k_steps": BASE.k_steps,
        "batch": BASE.batch,
        "balance": "equal",  # the median needs it, and then the arms do not differ in anything else
        "encoding": BASE.encoding,
        "aggregator": rule,
        "clip": BASE.clip,
        "seed": seed,
    }


def _by_name(state: State) -> dict[str, State]:
    return {str(worker["name"]): worker for worker in state.get("workers", [])}


def _set_aside(state: State) -> dict[str, str]:
    return {name: str(worker["reason"]) for name, worker in _by_name(state).items() if worker["reason"]}


def _all_ready(state: State, wanted: dict[str, str]) -> bool:
    return sorted(linked(state)) == sorted(wanted) == sorted(_by_name(state)) and not _set_aside(state)


def _clipped_since(before: dict[str, State], state: State) -> Counter[str]:
    rounds = {name: one["clipped_rounds"] - before[name]["clipped_rounds"] for name, one in _by_name(state).items()}
    return Counter({name: count for name, count in rounds.items() if count})
