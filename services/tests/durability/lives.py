"""A real cluster whose master and one worker live from one failpoint to the next: killed at each, started again.

The master's points are reached by what it does anyway: its start, joins, a run of small rounds. What must hold after
each death: it comes up again by itself, at a version that is at least the last one that anybody was told of.
"""

import contextlib
import itertools
import random
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from services.common.errors import MaheError
from services.common.host import failpoints
from services.tests.system.cluster import Cluster, finished, linked, version

LIFE_S = 120.0  # the longest that a life may take to reach its point: for a minute a worker that failed gets no work
LOOK_EVERY_S = 0.02
TAKEN_UP = re.compile(r"is taken up at version (\d+)")
STARTED = re.compile(r"ready for workers at")
FIRST_START = ("keys", "store.term", "control-file", "store.join", "join-file")  # reached without workers and run
BEFORE_ROUNDS = ("store.enrol", "store.run-added")  # reached once, in this order
ASKED = ("store.revoke", "parked")  # reached when the operator removes a worker
UPDATED = ("anchor.before-write", "anchor.before-rename")  # reached by updates: not while each master dies in its round
RUN = {"dataset": "gauss3", "model": {"family": "softmax"}, "k_steps": 20, "batch": 8, "min_workers": 2}
VICTIM = "worker-2"


def start_points() -> list[str]:
    """What a master reaches before anybody has joined."""
    return [point for first in FIRST_START for point in failpoints.MASTER_POINTS if point.startswith(first)]


def run_points() -> list[str]:
    """What it reaches with workers and a run, in an order in which each can be reached."""
    points = failpoints.MASTER_POINTS
    first = [point for name in BEFORE_ROUNDS for point in points if point.startswith(name)]
    return first + [point for point in points if not point.startswith((*FIRST_START, *BEFORE_ROUNDS, *ASKED))]


def worker_points() -> list[str]:
    """What a worker and its trainer reach in a run; a trainer dies between rounds that count, or work is held back."""
    agent = [point for point in failpoints.WORKER_POINTS if not point.startswith((*ASKED, "forget"))]
    counts = [point for point in failpoints.WORKER_POINTS if point.startswith("forget")]
    mixed = itertools.zip_longest(failpoints.TRAINER_POINTS[::2], failpoints.TRAINER_POINTS[1::2], counts)
    return agent + [point for points in mixed for point in points if point is not None]


def removal_points() -> list[str]:
    """What is reached when the operator removes a worker: by the master, then by the worker."""
    points = (*failpoints.MASTER_POINTS, *failpoints.WORKER_POINTS)
    return [point for point in points if point.startswith(ASKED)]


@dataclass
class Lives:
    """Two chains of lives. `hit`: the points at which something died, in order."""

    cluster: Cluster
    hit: list[str] = field(default_factory=list)
    told: int = -1  # the highest version that the console was told of
    slowest_s: float = 0.0  # from a start of the master to its being ready
    _run: str = ""
    _master: str = ""
    _worker: str = ""
    _asking: threading.Thread | None = None
    _since: dict[str, float] = field(default_factory=dict)

    def first_starts(self, points: list[str]) -> None:
        """Kill a master at each point of its first start."""
        for point in points:
            if point.startswith("keys"):
                (self.cluster.home / "master" / "master-keys.json").unlink(missing_ok=True)
            self._start_master(point)
            self.cluster.services["master"].process.wait(LIFE_S)
            self._died("master", point)

    def play(self, master: Iterator[str], worker: Iterator[str], rounds: int) -> None:
        """Both chains at once, then what a worker reaches only beside a master that lives, then the run completes."""
        points = list(worker)
        worker = iter([point for point in points if point not in UPDATED])
        self._next_master(master)
        self.cluster.start_console()
        self.cluster.start_worker("worker-1")
        self._next_worker(worker)
        self._live(master, worker, rounds)
        for point in [point for point in points if point in UPDATED]:
            self.cluster.kill(VICTIM)
            self._next_worker(iter([point]))
            self._live(master, worker, rounds)
        self._ensure_run(rounds)
        self.cluster.until(finished, "the run to complete", LIFE_S)
        self._check_rows(rounds)

    def _live(self, master: Iterator[str], worker: Iterator[str], rounds: int) -> None:
        """Until neither chain has a point left."""
        while self._master or self._worker:
            self._watch(master, worker, rounds)
            time.sleep(LOOK_EVERY_S)

    def removals(self, points: list[str]) -> None:
        """A worker that is removed, and a death on the way: of the master, or of the worker, which comes back."""
        for number, point in enumerate(points, start=3):
            name = f"worker-{number}"
            of_master = point in failpoints.MASTER_POINTS
            if of_master:
                self.cluster.kill("master")
                self._start_master(point)
            self.cluster.start_worker(name, **({} if of_master else _armed(point)))
            worker = self._joined(name)
            with contextlib.suppress(MaheError):  # the master may die before it answers
                self.cluster.delete(f"/api/v1/workers/{worker}")
            dead = "master" if of_master else name
            self.cluster.services[dead].process.wait(LIFE_S)
            self._died(dead, point)
            self._after_removal(name, worker, point)

    def _joined(self, name: str) -> str:
        """The id of a worker, when it can be reached."""
        state = self.cluster.until(lambda state: name in linked(state), f"{name} to join")
        return next(str(one["id"]) for one in state["workers"] if one["name"] == name)

    def _after_removal(self, name: str, worker: str, point: str) -> None:
        """A removal that was durable stays one; one that was not can be asked for again."""
        if point in failpoints.MASTER_POINTS:
            self._start_master("")
        self.cluster.until(bool, "the master to answer")
        if point == "store.revoke.before-commit":
            with contextlib.suppress(MaheError):  # the console may have asked the new master by itself
                self.cluster.delete(f"/api/v1/workers/{worker}")
        elif point not in failpoints.MASTER_POINTS:
            self.cluster.start_worker(name)
        self.cluster.until(lambda state: name not in linked(state), f"{name} to stay away")
        if point in ("parked.before-folder-fsync", "parked.written"):
            self.cluster.until_log(name, "removed")
        self.cluster.kill(name)

    def _watch(self, master: Iterator[str], worker: Iterator[str], rounds: int) -> None:
        services = self.cluster.services
        if services["master"].ended:
            self._died("master", self._master)
            self._next_master(master)
        elif self._master:
            self._in_time("master", self._master)
        if self._worker and (services[VICTIM].ended or self._trainer_died()):
            self._died(VICTIM, self._worker)
            self._next_worker(worker)
        elif self._worker:
            self._in_time(VICTIM, self._worker)
        self._ensure_run(rounds)
        self.told = max(self.told, version(self._state()))

    def _next_master(self, points: Iterator[str]) -> None:
        self._master = next(points, "")
        self._start_master(self._master)

    def _start_master(self, point: str) -> None:
        began = self._since["master"] = time.monotonic()
        try:
            self.cluster.start_master(**_armed(point))
            while not self._wrote("master", STARTED) and not self.cluster.services["master"].ended:
                time.sleep(LOOK_EVERY_S)
        except MaheError as error:
            if error.code != "CHILD_ENDED":
                raise
            return
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        found = self._wrote("master", TAKEN_UP)
        if found:
            assert int(found.group(1)) >= self.told, f"version {self.told} was told, taken up is {found.group(1)}"
        else:
            assert self.told < 1 or self.cluster.services["master"].ended, f"version {self.told} is not taken up"

    def _next_worker(self, points: Iterator[str]) -> None:
        self._worker = next(points, "")
        self._since[VICTIM] = time.monotonic()
        self.cluster.start_worker(VICTIM, **_armed(self._worker))

    def _died(self, name: str, point: str) -> None:
        service = self.cluster.services[name]
        if service.ended:
            assert service.process.returncode == -9, f"{name} ended by itself at {point}: {service.epitaph()}"
        self.hit.append(point)
        self.cluster.kill(name)

    def _trainer_died(self) -> bool:
        return self._worker in failpoints.TRAINER_POINTS and bool(self._wrote(VICTIM, re.compile("trainer was killed")))

    def _in_time(self, name: str, point: str) -> None:
        assert time.monotonic() - self._since[name] < LIFE_S, f"{name} did not reach {point}:\n{self.cluster.log(name)}"

    def _wrote(self, name: str, words: "re.Pattern[str]") -> "re.Match[str] | None":
        path = self.cluster.home / "logs" / f"{name}.log"
        return words.search(path.read_text()) if path.is_file() else None

    def _state(self) -> dict[str, Any]:
        try:
            return self.cluster.api.snapshot()
        except MaheError:
            return {}

    def _ensure_run(self, rounds: int) -> None:
        """Ask for the run until there is one: the master may die before it has kept it."""
        if self._run or self.cluster.services["master"].ended:
            return
        state = self._state()
        if state.get("run"):
            self._run = state["run"]["id"]
        elif state.get("workers") and (self._asking is None or not self._asking.is_alive()):
            self._asking = threading.Thread(target=self._ask_for_run, args=(rounds,), daemon=True)
            self._asking.start()  # the console waits for a while for the answer of a master that is dead

    def _ask_for_run(self, rounds: int) -> None:
        with contextlib.suppress(MaheError):  # the master died over it, or another ask came first
            self.cluster.run(**RUN, rounds=rounds)

    def _check_rows(self, rounds: int) -> None:
        rows = self.cluster.api.get(f"/api/v1/runs/{self._run}/rounds?limit=500")["items"]
        assert [row["round"] for row in rows] == list(range(1, rounds + 1)), "a round is lost"
        names = sorted(worker["name"] for worker in self._state()["workers"])
        assert names == ["worker-1", VICTIM], f"a worker joined twice: {names}"


def _armed(point: str) -> dict[str, str]:
    return {failpoints.VARIABLE: f"{point}=kill@1"} if point else {}


def any_time_points(points: list[str]) -> list[str]:
    """Those that are reached again and again in a run."""
    return [point for point in points if not point.startswith((*BEFORE_ROUNDS, "identity", "store.run-saved"))]


def by_chance(points: list[str], seed: int, many: int) -> Iterator[str]:
    """So many points, chosen by chance."""
    chance = random.Random(seed)
    for _ in range(many):
        yield chance.choice(points)
