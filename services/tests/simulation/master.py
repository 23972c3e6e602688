"""A simulated master: the shipped coordinator, effects, port, uploads, downloads, desk and store on simulated sockets.

Only the threads and processes are replaced: the desk's jobs wait in a queue of their own, the evaluator answers later.
What is durable lies in a folder (in memory), which outlives a crash; `disk.py` has what goes wrong with it.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from services.common.errors import CheckpointError
from services.common.protocol import control
from services.common.protocol.messages import RunSpec
from services.master.core.coordinator import Coordinator
from services.master.core.state import ModelFile
from services.master.shell import checkpoints
from services.master.shell.admission import Admission
from services.master.shell.bulletin import Bulletin
from services.master.shell.checkpoints import Vault
from services.master.shell.desk import Desk, Job
from services.master.shell.downloads import Downloads
from services.master.shell.effects import Effects
from services.master.shell.evaluation import Evaluation
from services.master.shell.evaluator import evaluate
from services.master.shell.initialisation import Initialisation
from services.master.shell.keys import MasterKeys
from services.master.shell.model_copies import ModelCopies, Places
from services.master.shell.operator import Operator
from services.master.shell.reactor import Letter, Reactor
from services.master.shell.resume import find_run
from services.master.shell.store import Store
from services.master.shell.uploads import Uploads
from services.master.shell.worker_port import WorkerPort
from services.tests.simulation.disk import Disk, FaultyStore, FaultyVault
from services.tests.simulation.network import Network
from services.tests.simulation.world import World

TICK_MS = 500
COPY_MS = 20
CHUNK_BYTES = 4096
KEYS = MasterKeys(b"7)H%Zr9HJH3:8ZeSj3.8WM4W]XwdgMR5yVrjVa=n", b"}?O%6Rp@ONEp1v@tAF$A1>Y8W/+mJ%HO@BS]JwDX", "00" * 32)


class Queue:
    """The desk's jobs, one after the other, each after a while. What was not done when the master dies is lost."""

    def __init__(self, world: World, desk: Desk, disk: Disk, alive: Callable[[], bool]) -> None:
        self._world, self._desk, self._disk, self._alive = world, desk, disk, alive
        self._jobs: deque[Job] = deque()

    def do(self, job: Job) -> None:
        """Queue one job."""
        self._jobs.append(job)
        if len(self._jobs) == 1:
            self._later()

    def _later(self) -> None:
        self._world.after(self._world.chance.randint(0, self._disk.slow_ms), self._next)

    def _next(self) -> None:
        if not self._alive():
            return
        self._desk.run_job(self._jobs[0])
        self._jobs.popleft()
        if self._jobs:
            self._later()


@dataclass
class Evaluator:
    """The evaluator process: answers later, or never, or dies."""

    world: World
    say: Callable[[dict[str, Any]], None]
    wait_ms: int
    deaths: float
    nonsense: float = 0.0
    dead: bool = False

    def send(self, line: Mapping[str, Any]) -> bool:
        """Ask."""
        if self.dead:
            return False
        wait_ms = self.world.chance.randint(1, self.wait_ms)
        if self.world.chance.random() < self.deaths:
            self.world.after(wait_ms, self.kill)
        else:
            self.world.after(wait_ms, lambda: self._answer(dict(line)))
        return True

    def _answer(self, line: dict[str, Any]) -> None:
        if self.dead:
            return
        try:
            answer = {"t": "done", "version": line["version"], **evaluate(line, DATASETS)}
            if self.nonsense and self.world.chance.random() < self.nonsense:
                answer["loss"] = math.nan
        except CheckpointError as error:
            answer = {"t": "failed", "version": line["version"], "reason": error.sentence}
        self.say(answer)

    def kill(self) -> None:
        """The exit line still comes."""
        if not self.dead:
            self.dead = True
            self.world.after(1, lambda: self.say({"t": "exit", "code": -9}))

    def stop(self) -> None:
        """It is gone."""
        self.dead = True


@dataclass
class Copier:
    """The thread that copies models: a little later. What was not copied when the master dies is lost."""

    world: World
    shipped: ModelCopies
    alive: Callable[[], bool]
    _waiting: set[int] = field(default_factory=set)

    @property
    def places(self) -> Places:
        """Where models may lie: beside the simulated disk, which may be full."""
        return self.shipped.places

    def copy(self, run: str, version: int, path: str) -> None:
        """Queue one."""
        self._waiting.add(version)
        self.world.after(COPY_MS, lambda: self._copy(run, version, path))

    def _copy(self, run: str, version: int, path: str) -> None:
        if self.alive():
            self._waiting.discard(version)
            self.shipped.post(self.shipped.copy_now(run, version, path))

    def pinned(self) -> set[int]:
        """Versions that are still to be copied."""
        return self._waiting

    def found(self, run: str, path: str) -> ModelFile:
        """What of this run is there."""
        return self.shipped.found(run, path)

    def stop(self) -> None:
        """Nothing to end."""


DATASETS: dict[str, Any] = {}


class Master:
    """One incarnation: a store in a folder, checkpoints on a disk. `crash` ends it; another is made on the same."""

    def __init__(self, world: World, network: Network, folder: Path, disk: Disk, *, evaluation_ms: int = 50) -> None:
        self.world, self.network, self.disk = world, network, disk
        self.alive, self.asleep = True, False
        self.evaluation_ms, self.evaluator_deaths, self.evaluator_nonsense = evaluation_ms, 0.0, 0.0
        self.answers: dict[str, tuple[str, str]] = {}
        self.store = Store(folder)
        self._desk_store = Store(folder)
        self.term = self.store.next_term()
        self.coordinator = Coordinator(self.term)
        admission = Admission(self.store, KEYS)
        self.bulletin = Bulletin(self.term, self._log, {}, self.coordinator)
        self.vault = Vault(disk.root / "runs")
        self.copier = Copier(world, ModelCopies(Places(folder), self.vault, self._post), lambda: self.alive)
        self.desk = Desk(
            FaultyStore(self._desk_store, disk),
            FaultyVault(self.vault, disk, world),
            self._post,
            self._post,
            lambda: self.reactor.effects.evaluation.pinned() | self.copier.pinned(),
        )
        self.port = WorkerPort(
            socket=network,  # type: ignore[arg-type]  # a simulated socket
            admission=admission,
            term=self.term,
            beacon_key=KEYS.beacon_key,
            endpoints=lambda: ["tcp://master:47820"],
            bulk=lambda *frame: self.reactor.bulk(*frame),  # noqa: PLW0108 - made below
            refused=self.bulletin.refuse,
            chunk_bytes=CHUNK_BYTES,
        )
        effects = Effects(
            workers=self.port,
            control=self,
            uploads=Uploads(self.term, self.port.send, lambda *delta: self.reactor.complete(*delta)),  # noqa: PLW0108
            downloads=Downloads(self.term, CHUNK_BYTES, self.port.send, self.coordinator.state.task_of),
            aggregation=Queue(world, self.desk, disk, lambda: self.alive),
            evaluation=Evaluation(
                lambda: Evaluator(world, self._post, self.evaluation_ms, self.evaluator_deaths, self.evaluator_nonsense)
            ),
            admission=admission,
            bulletin=self.bulletin,
            vault=self.vault,
            models=self.copier,
        )
        self.reactor = Reactor(self.coordinator, effects, world.clock)
        self.operator = Operator(
            vault=self.vault,
            store=self.store,
            admission=admission,
            bulletin=self.bulletin,
            coordinator=self.coordinator,
            endpoints=lambda: ["tcp://master:47820"],
            places=self.copier.places,
            step=self.reactor.step,
            offer=lambda path: {"path": str(path)},
            initialisation=Initialisation(self.bulletin, {}, lambda check: None, world.clock),
        )
        self._letters: deque[Letter] = deque()
        self._commands = 0

    def start(self) -> None:
        """Resume what was going on, open the door."""
        names = self.reactor.effects.admission.names()
        found, _ = find_run(self.store, self.vault, names, self.copier.found)
        if found is not None:
            self.reactor.resume(found)
        self.network.listen(self._turn)
        self._tick()

    def crash(self) -> None:
        """Gone at once: what was queued or under way is lost, what was written stays."""
        self.alive = False
        self.network.cut_all()
        self.reactor.effects.evaluation.stop()
        self.store.close()
        self._desk_store.close()

    def ask(self, command: Any) -> str:
        """An operator's command; the code of the answer."""
        self._commands += 1
        cmd_id = f"command-{self.term}-{self._commands}"
        try:
            self.operator.perform(cmd_id, command)
        except CheckpointError as error:
            return error.code
        return self.answers.get(cmd_id, ("OK", ""))[0]

    def create(self, spec: RunSpec) -> str:
        """Start a run."""
        return self.ask(control.CreateRun(spec=spec))

    def answer(self, cmd_id: str, ok: bool, code: str, text: str, result: dict[str, Any]) -> None:
        """Where the coordinator answers an operator."""
        del ok, result
        self.answers[cmd_id] = (code, text)

    def parameters(self, run: str, version: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Of a durable version."""
        return checkpoints.read(self.vault.path_of(run, version)).parameters

    def owed(self, run: str, version: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Of a durable version: the parameters as if updates were sent whole."""
        checkpoint = checkpoints.read(self.vault.path_of(run, version))
        exact = checkpoint.parameters.astype(np.float64)
        return exact if checkpoint.residual is None else exact - checkpoint.residual

    def _log(self, kind: str, text: str) -> None:
        for where in (self.disk.root, self.copier.places.data):
            text = text.replace(str(where), "")
        self.world.note(f"[{kind}]", text)

    def _post(self, letter: Any) -> None:
        """From the desk or the evaluator: read in the loop's next turn."""
        self.world.after(self.world.chance.randint(0, 5), lambda: self._deliver(letter))

    def _deliver(self, letter: Any) -> None:
        if self.alive:
            self._letters.append(letter)
            self._turn()

    def _turn(self) -> None:
        """The loop, once; nothing while this PC sleeps."""
        if not self.alive or self.asleep:
            return
        while self._letters:
            self.reactor.open(self._letters.popleft())
        for event in self.port.receive(self.world.clock()):
            self.reactor.step(event)
        for event in self.port.flush():
            self.reactor.step(event)

    def _tick(self) -> None:
        if not self.alive:
            return
        if not self.asleep:
            self.reactor.tick()
            self._turn()
        self.world.after(TICK_MS, self._tick)
