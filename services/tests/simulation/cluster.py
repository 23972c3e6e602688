"""One simulated cluster: a master and workers, faults for a while, then peace, in which the work must get done."""

import math
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from services.common.errors import MaheError
from services.common.protocol import control
from services.common.protocol.encodings import ENCODINGS, Encoding
from services.common.protocol.messages import RunSpec
from services.master.core.state import Link, RunPhase
from services.master.shell import disk_answer
from services.master.shell.store import Store
from services.tests.durability.disk import Killed
from services.tests.simulation.disk import USUAL_MS, Disk
from services.tests.simulation.faults import FAULTS
from services.tests.simulation.master import Master
from services.tests.simulation.network import Network, Trouble
from services.tests.simulation.oracle import Oracle, Violated
from services.tests.simulation.slot import Pace, Slot
from services.tests.simulation.worker import Worker
from services.tests.simulation.world import World

KEEPER_MS = 5_000
FAULT_EVERY_MS = 20_000
KILLED_ONLY = 0.3  # of the times when the master dies in the middle of a write: the system keeps what is not synced
PEACE_MS = 600_000  # a version must become durable within this time of peace
MEMORY = Path("/dev/shm")
PATIENT_S = 3_600.0  # a simulated disk answers, however busy this PC is: no seed may depend on that
MANY = 4  # workers; min_workers is at most 3
IN_FLIGHT: tuple[Literal["auto", 1, 2], ...] = (2, "auto", 2, 1)  # by the seed


@dataclass(frozen=True)
class Plan:
    """What to simulate. Everything else follows from the seed."""

    seed: int
    workers: int = 4
    hours: float = 0.25
    rounds: int = 1_000_000
    faults: bool = True
    k_steps: int = 4
    units: bool = False
    units_per_round: int = 6
    pace: float = 1.0  # times as quick as usual
    encoding: Encoding | None = None  # by the seed, if it is not said
    rounds_in_flight: Literal["auto", 1, 2] | None = None  # by the seed, if it is not said; with units always 1
    queue: int = 0  # the keeper lets so many runs wait
    nonsense: float = 0.0  # so many evaluations find no number, so that the run goes back


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    digest: str
    hours: float
    faults: int
    rounds: int
    restarts: int
    loss: float
    steps: int


class Cluster:
    """Built from a plan; `run` plays it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.world = World(plan.seed)
        self.network = Network(self.world)
        self.oracle = Oracle()
        self.folder = Path(tempfile.mkdtemp(prefix="mahe-simulation-", dir=MEMORY if MEMORY.is_dir() else None))
        self.disk = Disk(self.folder / "disk")
        self.master: Master | None = None
        self.workers: dict[str, Worker] = {}
        self.clones: dict[str, Worker] = {}
        self.asked: list[str] = []  # what was answered when a run should wait
        self.faults = self.restarts = 0
        self._trouble_until_ms = int(plan.hours * 3_600_000)
        self._left_out = ""
        chance = self.world.chance
        self.slots = {f"w{at:04}": Slot(f"w{at:04}", f"key-of-w{at:04}") for at in range(plan.workers)}
        self.troubles = {name: Trouble() for name in self.slots}
        self.paces = {name: Pace(plan.pace * chance.choice([2.0, 5.0, 5.0, 10.0])) for name in self.slots}
        store = Store(self.folder)
        for name, slot in self.slots.items():
            store.enrol(f"w-{name}", name, slot.key, 0)
        store.close()

    def run(self) -> Outcome:
        """Trouble for most of the time, then peace."""
        try:
            patient = patch.object(disk_answer, "ANSWER_S", PATIENT_S)
            with patient, self.disk.recording(), self.world.on_the_wall():
                self.start_master()
                for name in self.slots:
                    self.world.after(self.world.chance.randint(0, 5_000), partial(self.start_worker, name))
                self.world.after(KEEPER_MS, self._keep)
                if self.plan.faults:
                    self.world.after(10_000, self._trouble)
                self._play(self._trouble_until_ms)
                self._make_peace()
                self._await_progress()
                return self._outcome()
        finally:
            if self.master is not None:
                self.master.crash()
            shutil.rmtree(self.folder, ignore_errors=True)

    # what faults do

    def start_master(self) -> None:
        """On the folder that is there."""
        if self.master is not None:
            return
        try:
            master = Master(self.world, self.network, self.folder, self.disk)
        except MaheError:
            self.world.after(5_000, self.start_master)
            return
        master.evaluator_nonsense = self.plan.nonsense
        self.master = master
        self.oracle.watch(master)
        master.start()
        self.oracle.resumed(master)

    def crash_master(self) -> None:
        """kill -9."""
        if self.master is not None:
            self.restarts += 1
            self.master.crash()
            self.master = None

    def cut_power(self) -> None:
        """Of the master's PC. What was not synced is kept or lost; the power comes back a little later."""
        self.crash_master()
        self.world.note("POWER", self.disk.lose(self.world.chance))
        self.world.after(self.world.chance.uniform(100, 30_000), self.start_master)

    def start_worker(self, name: str) -> None:
        """On the slot that is there."""
        if name not in self.workers:
            self.workers[name] = self._new_worker(self.slots[name])
            self.workers[name].start()

    def crash_worker(self, name: str) -> None:
        """kill -9."""
        worker = self.workers.pop(name, None)
        if worker is not None:
            worker.crash()

    def start_clone(self, name: str) -> None:
        """A copied slot: the same key on a second PC."""
        if name not in self.clones:
            self.clones[name] = self._new_worker(self.slots[name].copied())
            self.clones[name].start()

    def stop_clone(self, name: str) -> None:
        """The copy goes away."""
        worker = self.clones.pop(name, None)
        if worker is not None:
            worker.crash()

    def heal_evaluator(self) -> None:
        """Whatever master there is by now."""
        if self.master is not None:
            self.master.evaluation_ms, self.master.evaluator_deaths = 50, 0.0

    def ask(self, command: Callable[[str], Any]) -> bool:
        """An operator's wish about the current run."""
        run = self.master.coordinator.state.run if self.master is not None and not self.master.asleep else None
        return run is not None and self.master is not None and self.master.ask(command(run.id)) == "OK"

    def resume(self) -> None:
        """Go on with the run."""
        self.ask(lambda run: control.ResumeRun(run=run))

    def _new_worker(self, slot: Slot) -> Worker:
        name = slot.name
        return Worker(self.world, self.network, slot, self.troubles[name], self.paces[name], self.oracle.trained)

    # what happens by itself

    def _play(self, until_ms: int) -> None:
        """All that happens up to then; what the master did when it was killed, or the power went, ends there."""
        while True:
            try:
                self.world.run(until_ms)
                return
            except Killed:
                if self.world.chance.random() < KILLED_ONLY:
                    self.crash_master()
                    self.world.after(self.world.chance.uniform(100, 30_000), self.start_master)
                else:
                    self.cut_power()

    def _trouble(self) -> None:
        if self.world.now_ms >= self._trouble_until_ms:
            return
        weights = [weight for weight, _ in FAULTS]
        _, fault = self.world.chance.choices(FAULTS, weights)[0]
        self.faults += 1
        self.world.note("FAULT", getattr(fault, "__name__", "trouble"))
        fault(self)
        self.world.after(self.world.chance.expovariate(1 / FAULT_EVERY_MS), self._trouble)

    def _keep(self) -> None:
        try:
            self._keep_once()
        finally:  # the operator is there again after a master that dies while it is asked
            self.world.after(KEEPER_MS, self._keep)

    def _keep_once(self) -> None:
        """The operator: starts a run when there is none, resumes one that failed."""
        master = self.master
        if master is not None and not master.asleep:
            run = master.coordinator.state.run
            queue = len(master.coordinator.state.queue)
            if run is None or run.phase is RunPhase.STOPPED:
                if not queue and (run is None or run.version < self.plan.rounds):
                    master.create(self._spec())
            elif run.phase is RunPhase.FAILED and not self.disk.full:
                if run.prepared:
                    self.resume()
                else:
                    master.create(self._spec())
            elif queue < self.plan.queue:
                self.asked.append(master.create(self._spec()))
            elif run.phase is RunPhase.PAUSED and self.world.now_ms >= self._trouble_until_ms:
                self.resume()

    def _spec(self) -> RunSpec:
        return RunSpec(
            dataset="gauss3",
            model={"family": "mlp", "hidden": [32, 32]},
            inner={"name": "sgd", "lr": 0.05},
            rounds=self.plan.rounds,
            k_steps=self.plan.k_steps,
            batch=16,
            balance="units" if self.plan.units else "proportional",
            units=self.plan.units_per_round,
            rounds_in_flight=self._in_flight(),
            k_auto=self.plan.seed % 2 == 0,
            k_steps_max=4 * self.plan.k_steps,
            encoding=self.plan.encoding or ENCODINGS[self.plan.seed % len(ENCODINGS)],
            min_workers=1 if self.plan.workers < 3 else self.world.chance.randint(1, 3),
        )

    def _in_flight(self) -> Literal["auto", 1, 2]:
        if self.plan.units:
            return 1
        return self.plan.rounds_in_flight or IN_FLIGHT[self.plan.seed // len(ENCODINGS) % len(IN_FLIGHT)]

    def _make_peace(self) -> None:
        for trouble in self.troubles.values():
            trouble.__dict__.update(Trouble().__dict__)
        for name, pace in self.paces.items():
            pace.frozen, pace.nan, pace.lie, pace.slowness = False, 0.0, 0.0, 1.0
            if pace.asleep and name in self.workers:
                self.workers[name].wake()
            pace.asleep = False
        for slot in self.slots.values():
            slot.full = False
        for name in sorted(self.clones):
            self.stop_clone(name)
        self.disk.full, self.disk.slow_ms = False, USUAL_MS
        self.disk.cut_before(0)
        if self.master is not None:
            self.master.asleep = False
        self.start_master()
        state = self.master.coordinator.state if self.master is not None else None
        for worker in state.by_id() if state is not None else []:
            if worker.quarantined:  # someone looks at it and starts it again, as its reason says
                self.crash_worker(worker.name)
        for name in self.slots:
            self.start_worker(name)
        self.heal_evaluator()
        self._leave_one_out()

    def _leave_one_out(self) -> None:
        """Peace does not mend everything: one PC of several may stay away, or have a trainer that never gets on."""
        which = self.world.chance.choice(["none", "gone", "stuck"])
        if len(self.slots) < MANY or which == "none":
            return
        name = self.world.chance.choice(sorted(self.slots))
        if which == "gone":
            self.crash_worker(name)
        else:
            self.paces[name].frozen = True
        self._left_out = name

    def _await_progress(self) -> None:
        """Liveness: some versions become durable, all workers are back and work."""
        before, deadline_ms = self.oracle.closed, self.world.now_ms + PEACE_MS
        while self.world.now_ms < deadline_ms:
            self._play(self.world.now_ms + 5_000)
            state = self.master.coordinator.state if self.master is not None else None
            run = state.run if state is not None else None
            linked = {one.name for one in state.by_id() if one.link is Link.LINKED} if state is not None else set()
            done = run is not None and run.finished
            if linked | {self._left_out} >= set(self.slots) and (self.oracle.closed >= before + 3 or done):
                return
        state = self.master.coordinator.state if self.master is not None else None
        run = state.run if state is not None else None
        raise Violated(
            f"in {PEACE_MS // 1000} s of peace {self.oracle.closed - before} rounds were closed; the run is "
            f"{run.phase if run else 'not there'}: {run.reason if run else ''}; workers: "
            f"{[(one.name, one.link.value, one.agent, one.reason) for one in state.by_id()] if state else ''}"
        )

    def _outcome(self) -> Outcome:
        run = self.master.coordinator.state.run if self.master is not None else None
        loss = run.best_eval.loss if run is not None and run.best_eval is not None else math.nan
        faults = self.faults + self.network.faults + sum(pace.faults for pace in self.paces.values())
        return Outcome(
            self.world.digest, self.plan.hours, faults, self.oracle.closed, self.restarts, loss, self.world.steps
        )
