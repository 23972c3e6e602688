"""A real master and workers, which do not train if nothing else is said, on loopback or on slow links; their rounds."""

import contextlib
import json
import os
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.wire import times
from bench.wire.control import Operator
from bench.wire.links import Links
from services.common.protocol.spec import RunSpec
from services.launch import places
from services.launch.processes import Group
from services.launch.waiting import wait_for
from services.tests.chaos import processes
from services.tests.system.cluster import free_port

FIRST = "MAHE_BENCH_FIRST"  # in the environment: before other programs of a busy PC; each service is a session
MOST_URGENT = -20
WARM = 3  # rounds that are not counted: connections, caches, TCP's window
ROUNDS_MAX = 1_000_000  # the run is stopped when enough was seen
START_S = 30.0
SILENCE_S = 120.0
KINDS = ("evaluator", "trainer", "agent", "master")
DIGITS_INPUTS, DIGITS_CLASSES = 64, 10
FIRST_WIDTHS = {10**5: 256, 10**6: 1024, 10**7: 4096}


def model_of(n: int) -> dict[str, Any]:
    """A model of about `n` parameters on the bundled digits."""
    first = next(width for size, width in FIRST_WIDTHS.items() if n <= 2 * size)
    second = round((n - (DIGITS_INPUTS + 1) * first - DIGITS_CLASSES) / (first + 1 + DIGITS_CLASSES))
    return {"family": "mlp", "hidden": [first, second]}


def parameters_of(model: dict[str, Any]) -> int:
    """How many parameters it has."""
    first, second = map(int, model["hidden"])
    return (DIGITS_INPUTS + 1) * first + (first + 1) * second + (second + 1) * DIGITS_CLASSES


@dataclass(frozen=True)
class Programs:
    """The modules that run, what both get in their environment, and the speed in samples/s each worker claims."""

    master: str = "services.master"
    agent: str = "bench.wire.null_agent"
    env: Mapping[str, str] = field(default_factory=dict)
    score: float = 1000.0  # 0: it is measured


@dataclass
class Rounds:
    """What was seen of a run: seconds of each counted round, and what `look` gave at the ends."""

    seconds: list[float] = field(default_factory=list)
    cpu_ms: dict[str, float] = field(default_factory=dict)  # of a round, by kind of process, all of a kind together
    first: Any = None
    last: Any = None

    @property
    def median_s(self) -> float:
        """The median."""
        return statistics.median(self.seconds)

    @property
    def mean_s(self) -> float:
        """The mean: all the time, by the number of rounds."""
        return statistics.fmean(self.seconds)


class Cluster:
    """Ends with the `with` block. `home` holds all data, but what the master keeps may lie elsewhere.

    `admit` is told (number, process id) of each worker as soon as it is started, numbers from 1.
    """

    def __init__(
        self,
        home: Path,
        workers: int,
        links: Links | None = None,
        *,
        master: Path | None = None,
        profile: bool = False,
        programs: Programs | None = None,
        admit: Callable[[int, int], None] = lambda number, pid: None,
    ) -> None:
        self.home, self.workers, self._links = home, workers, links
        self.master = master or home / "master"
        self.profile = profile
        self._programs = programs or Programs("bench.wire.timed_master" if profile else "services.master")
        self._admit = admit
        self._group = Group(home / "logs")
        self.pids: dict[str, int] = {}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._group.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.operator.__exit__(None, None, None)
        self._group.stop()
        if error is not None:
            for path in sorted((self.home / "logs").glob("*.log")):
                print(f"--- {path.name}\n{path.read_text()[-2000:]}")

    def run(self, encoding: str, n: int, rounds: int, look: Callable[[], Any] = lambda: None) -> Rounds:
        """A run of so many counted rounds, after WARM others. `look` is called when counting begins and ends."""
        found, before = Rounds(), 0
        used: dict[str, float] = {}
        run = self.operator.start(self._spec(encoding, n))
        for number, at_ms in self.operator.closings(SILENCE_S):
            if number == WARM:
                found.first, used = look(), self._cpu_s()
            elif number > WARM:
                found.seconds.append((at_ms - before) / 1000)
            before = at_ms
            if number == WARM + rounds:
                found.last, end = look(), self._cpu_s()
                found.cpu_ms = {kind: round((end[kind] - used[kind]) * 1000 / rounds, 2) for kind in used}
                break
        self.operator.stop(run)
        return found

    def _cpu_s(self) -> dict[str, float]:
        """Seconds of processor time so far."""
        found = dict.fromkeys(KINDS, 0.0)
        for name, first in self.pids.items():
            for pid in processes.family(first):
                command = Path(f"/proc/{pid}/cmdline").read_text()
                kind = next((one for one in KINDS if one in command), "master" if name == "master" else "agent")
                words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                found[kind] += (int(words[11]) + int(words[12])) / processes.TICKS_PER_S
        return found

    def _spec(self, encoding: str, n: int) -> RunSpec:
        fields = {
            "model": model_of(n),
            "rounds": ROUNDS_MAX,
            "min_workers": self.workers,
            "k_steps": 1,
            "batch": 8,
            "balance": "equal",
            "encoding": encoding,
        }
        return RunSpec.model_validate_json(json.dumps(fields))

    def _inside(self, number: int) -> "contextlib.AbstractContextManager[None]":
        return self._links.inside(number) if self._links is not None else contextlib.nullcontext()

    def _start(self) -> None:
        host = self._links.address(0) if self._links is not None else "127.0.0.1"
        master = {
            "MAHE_MASTER_DATA": str(self.master),
            "MAHE_MASTER_BIND": host,
            "MAHE_MASTER_PORT": str(free_port()),
            "MAHE_MASTER_CONTROL_PORT": str(free_port()),
            "MAHE_ADVERTISE": host,
            "MAHE_MASTER_LOCAL_HOST": host,
        }
        if self.profile:
            master["MAHE_MASTER_JOURNAL"] = str(self.home / "journal")
            master[times.VARIABLE] = str(self.home)
        join = places.local_join_file(self.master)
        with self._inside(0):
            self._launch("master", self._programs.master, master)
            wait_for(lambda: join.is_file() or None, "the master", START_S, self._group.check)
            self.operator = Operator(self.master, self._group.check)
        for number in range(1, self.workers + 1):
            worker = {
                "MAHE_WORKER_DATA": str(self.home / f"worker-{number}"),
                "MAHE_WORKER_JOIN_FILE": str(join),
                "MAHE_WORKER_NAME": f"worker-{number}",
                "MAHE_WORKER_THREADS": "1",
                "MAHE_WORKER_SCORE": str(self._programs.score),
            }
            if self.profile:
                worker[times.VARIABLE] = str(self.home)
            with self._inside(number):
                self._launch(f"worker-{number}", self._programs.agent, worker)
            self._admit(number, self.pids[f"worker-{number}"])
        self.operator.until_linked(self.workers)

    def _launch(self, name: str, module: str, env: dict[str, str]) -> None:
        kept = {**places.without_service_settings(), **self._programs.env, **env}
        self.pids[name] = self._group.start(name, module, kept).process.pid
        if FIRST in os.environ:
            Path(f"/proc/{self.pids[name]}/autogroup").write_text(str(MOST_URGENT))
