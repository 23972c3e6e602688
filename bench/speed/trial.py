"""One run on a real cluster: workers under quotas in namespaces of their own, and their rounds as the master tells.

Also the processes of others that are measured beside it, under the same quotas.
"""

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.speed import mnist
from bench.speed.arms import Arm, spec_of
from bench.speed.figures import Round, Steps
from bench.speed.quotas import Quotas
from bench.speed.trainer import FOLDER, steps_file
from bench.wire.cluster import SILENCE_S, Cluster, Programs
from bench.wire.exchange import MEMORY
from bench.wire.links import Links
from services.common.protocol.spec import RunSpec
from services.launch.processes import Group
from services.launch.waiting import wait_for

WARM = 10  # rounds that are not counted: data is read, speeds are learnt, overlap and local steps are chosen
JOB = "MAHE_BENCH_JOB"  # in the environment of a process beside: its JSON, with the file `out` to write
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Trial:
    """A cluster that is there in the `with` block of `trial`."""

    def __init__(self, cluster: Cluster, quotas: Quotas, steps: Path) -> None:
        self.quotas = quotas
        self._cluster, self._steps = cluster, steps

    def rounds(self, arm: Arm) -> Iterator[Round]:
        """Each round when it closes, and once more, with its loss, when it is evaluated. One run in a trial."""
        operator = self._cluster.operator
        operator.start(spec_of(arm, self._cluster.workers))
        closed: dict[int, Round] = {}
        began_ms = before_ms = 0.0
        for event in operator.rounds(SILENCE_S):
            row = event.data
            number = row["round"]
            if number in closed:
                if row["eval_loss"] is not None:
                    yield replace(closed[number], loss=row["eval_loss"])
                continue
            if not closed:
                began_ms = before_ms = event.time_ms - 1000 * row["seconds"]
            seconds, at_s = (event.time_ms - before_ms) / 1000, (event.time_ms - began_ms) / 1000
            before_ms = event.time_ms
            closed[number] = Round(number, round(at_s, 3), round(seconds, 3), row["samples"])
            yield closed[number]

    def counted(self, arm: Arm, rounds: int) -> list[Round]:
        """So many rounds after WARM others."""
        found: list[Round] = []
        for one in self.rounds(arm):
            if one.loss is None:
                found.append(one)
            if len(found) == WARM + rounds:
                break
        return found[WARM:]

    def whole(self, spec: RunSpec) -> tuple[dict[str, Any], float]:
        """A run to its end: how it was shown then, and the seconds that it took. More than one may follow another."""
        operator, began = self._cluster.operator, time.monotonic()
        run = operator.start(spec)
        operator.until_started(run)
        found = operator.until_finished(SILENCE_S)
        return found, time.monotonic() - began

    def run_seen(self) -> dict[str, Any] | None:
        """The run as the master shows it."""
        run: dict[str, Any] | None = self._cluster.operator.state["run"]
        return run

    def workers_seen(self) -> list[dict[str, Any]]:
        """Each worker as the master shows it."""
        return list(self._cluster.operator.state["workers"].values())

    def work(self) -> dict[int, list[Steps]]:
        """The local steps of each worker so far."""
        return {number: _read(steps_file(self._steps, f"worker-{number}")) for number in self.quotas.cores}


@contextlib.contextmanager
def trial(net: Links, cores: Sequence[float], *, score: float = 1000.0) -> Iterator[Trial]:
    """A master and a worker with so many cores for each of `cores`; `score` is what each claims, 0: it measures."""
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="mahe-speed-") as folder, Quotas(cores) as quotas:
        home = Path(folder)
        env = {mnist.VARIABLE: str(mnist.path()), FOLDER: str(home)}
        programs = Programs("bench.speed.master", "bench.speed.agent", env, score)
        with Cluster(home, len(cores), net, programs=programs, admit=quotas.admit) as cluster:
            yield Trial(cluster, quotas, home)


def beside(module: str, jobs: Sequence[dict[str, Any]], cores: float, net: Links | None, limit_s: float) -> Any:
    """What the first of some processes writes into the file `out` of its job, which is JSON.

    Each is `python -m module` under a quota of its own and, with `net`, in the space of a worker. All are ended then.
    """
    with (
        tempfile.TemporaryDirectory(dir=MEMORY, prefix="mahe-speed-") as folder,
        Quotas([cores] * len(jobs)) as quotas,
        Group(Path(folder) / "logs") as group,
    ):
        out = Path(folder) / "out.json"
        for number, job in enumerate(jobs, start=1):
            to = out if number == 1 else Path(folder) / f"out-{number}.json"
            env = {**ONE_THREAD, mnist.VARIABLE: str(mnist.path()), JOB: json.dumps({**job, "out": str(to)})}
            with net.inside(number) if net is not None else contextlib.nullcontext():
                quotas.admit(number, group.start(f"{module}-{number}", module, env).process.pid)
        wait_for(lambda: out.exists() or None, f"{module} to finish", limit_s, group.check)
        return json.loads(out.read_text())


def job() -> dict[str, Any]:
    """In such a process: its job."""
    found: dict[str, Any] = json.loads(os.environ[JOB])
    return found


def answer(job: dict[str, Any], found: Any) -> None:
    """In such a process: write what was found, whole or not at all."""
    part = Path(job["out"]).with_suffix(".part")
    part.write_text(json.dumps(found))
    part.rename(job["out"])


def say(text: str) -> None:
    """A line for whoever waits."""
    print(text, flush=True)


def _read(path: Path) -> list[Steps]:
    if not path.exists():
        return []
    return [Steps(**json.loads(line)) for line in path.read_text().splitlines()]
