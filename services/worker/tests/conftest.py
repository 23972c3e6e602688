"""The workers and masters of the shell tests: real processes, real sockets on loopback."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from pydantic import SecretStr

from services.common.host import failpoints
from services.common.host.logs import Log
from services.common.learning.datasets import describe
from services.common.learning.models import build_model
from services.common.learning.parameters import Floats, digest
from services.common.protocol.messages import Task, TaskRef
from services.common.protocol.reasons import said
from services.worker.settings import WorkerSettings
from services.worker.shell.agent import Agent
from services.worker.shell.slot import Slot, take_slot
from services.worker.shell.startup import build
from services.worker.tests.scripted_master import ScriptedMaster, scripted_master

ROOT = Path(__file__).parents[3]
MODEL = {"family": "mlp", "hidden": [64, 64]}
INNER = {"name": "sgd", "lr": 0.1}
END_S = 10.0


class WorkerProcess:
    """`python -m services.worker` with a data folder and a log file of its own."""

    def __init__(self, folder: Path, log: str, join: str, **settings: str) -> None:
        self.data = folder / "worker"
        self._log = folder / log
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAHE_")}
        environment |= {
            "MAHE_JOIN": join,
            "MAHE_WORKER_DATA": str(self.data),
            "MAHE_WORKER_NAME": "test-pc",
            "MAHE_WORKER_THREADS": "1",
            "MAHE_WORKER_SCORE": "1000",
        }
        with self._log.open("wb") as output:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, "-m", "services.worker"], cwd=ROOT, env=environment | settings, stderr=output
            )

    @property
    def log(self) -> str:
        """Everything it said."""
        return self._log.read_text()

    def wait_for(self, text: str, wait_s: float = END_S) -> str:
        """Until the log has this text; the log."""
        deadline = time.monotonic() + wait_s
        while text not in self.log:
            assert time.monotonic() < deadline, f"{text!r} was not said:\n{self.log}"
            assert self.process.poll() is None or text in self.log, f"it ended:\n{self.log}"
            time.sleep(0.02)
        return self.log

    def end(self) -> int:
        """SIGTERM; the exit code."""
        self.process.terminate()
        return self.process.wait(END_S)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait(END_S)


@pytest.fixture
def master() -> Iterator[ScriptedMaster]:
    """A master that knows nobody yet."""
    with scripted_master() as one:
        yield one


StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def start_worker(tmp_path: Path) -> Iterator[StartWorker]:
    """Starts workers on one data folder; all are gone after the test."""
    started: list[WorkerProcess] = []

    def start(join: str, **settings: str) -> WorkerProcess:
        started.append(WorkerProcess(tmp_path, f"log-{len(started)}.txt", join, **settings))
        return started[-1]

    yield start
    for worker in started:
        if worker.process.poll() is None:
            worker.kill()


StartAgent = Callable[[ScriptedMaster], Agent]


@pytest.fixture
def start_agent(tmp_path: Path) -> Iterator[StartAgent]:
    """Starts an agent in a thread of this process, with a real trainer; its slot is `slot-0` of the test's folder."""
    agents: list[tuple[Agent, threading.Thread]] = []
    log = Log("worker")
    slot = take_slot(tmp_path, lambda text: log("WARN", text))

    def start(master: ScriptedMaster) -> Agent:
        settings = WorkerSettings(data=tmp_path, join=SecretStr(master.join_string()), name="pc", threads=1, score=1000)
        agent = build(settings, slot, log, lambda: False)
        assert agent is not None
        thread = threading.Thread(target=agent.run, name="agent")
        agents.append((agent, thread))
        thread.start()
        return agent

    yield start
    for agent, thread in agents:
        agent.stop(said("the test is over"))
        thread.join()
    slot.release()


class Job:
    """One run on rings4: the anchor and tasks for it."""

    def __init__(self, inner: dict[str, object] | None = None) -> None:
        self.data = describe("rings4", seed=3, n=400)
        self.model = build_model(MODEL, 2, 4)
        self.inner = inner or INNER
        self.anchor: Floats = self.model.initial_parameters(5)

    @property
    def anchor_bytes(self) -> bytes:
        """As it travels."""
        return self.anchor.astype("<f4").tobytes()

    @property
    def anchor_digest(self) -> str:
        """Of the anchor."""
        return digest(self.anchor)

    def task(self, *, term: int = 1, round_number: int = 0, steps: int = 20, lease: str = "lease-0") -> Task:
        """One shard: everything up to 320 samples."""
        return Task(
            term=term,
            ref=TaskRef(run="run-1", round=round_number, base_version=round_number, shard=0, lease=lease),
            anchor_digest=self.anchor_digest,
            n_parameters=self.model.n_parameters,
            data=self.data,
            data_seed=3,
            model=MODEL,
            inner=dict(self.inner),
            ranges=[(0, 320)],
            samples=320,
            k_steps=steps,
            batch=32,
            delta_scale=1.0,
            encoding="fp32",
            rounds=10,
        )

    def step(self, delta: bytes) -> None:
        """Apply one worker's delta: the next version."""
        self.anchor = self.anchor - np.frombuffer(delta, dtype="<f4")


@pytest.fixture
def job() -> Job:
    """A run that has not begun."""
    return Job()


@pytest.fixture
def warnings() -> list[str]:
    """What the slot of the test warned of."""
    return []


@pytest.fixture
def slot(tmp_path: Path, warnings: list[str]) -> Iterator[Slot]:
    """A slot of its own."""
    one = take_slot(tmp_path, warnings.append)
    yield one
    failpoints.arm("")
    one.release()
