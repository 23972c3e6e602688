"""A real cluster that can be hurt and mended: each fault of faults.py done to real processes. Linux only.

Not for choosing faults (faults.py), nor for judging what came of them (__main__.py).
"""

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from services.tests.chaos import network, processes
from services.tests.chaos.faults import CUTS, Fault, Kind
from services.tests.system.cluster import Cluster, linked

JOIN_WAIT_S = 60.0
STOP_WAIT_S = 10.0
Mend = Callable[[], None]


def undo_on_sigterm() -> None:
    """SIGTERM ends this process as Ctrl-C does: processes, rules and namespaces are undone first."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


class Storm:
    """Master, console and `workers` workers; with root each worker in a network namespace of its own."""

    def __init__(self, home: Path, workers: int, *, with_network: bool = True) -> None:
        self.home, self.workers = home, workers
        self.orphans: list[int] = []
        self._parts = contextlib.ExitStack()
        self._cuttable = with_network and network.available()
        self._network: network.Network | None = None
        self.cluster = Cluster(home)

    def __enter__(self) -> Self:
        with self._parts as parts:
            if self._cuttable:
                self._network = network.Network(self.workers)
                parts.callback(self._network.close)
            parts.enter_context(self.cluster)
            self._start_master()
            self._start_workers(range(1, self.workers + 1))
            self.cluster.start_console()
            self.until_linked(self.workers)
            self._parts = parts.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._parts.__exit__(kind, error, at)

    @property
    def cuttable(self) -> bool:
        """Whether workers can be cut off."""
        return self._network is not None

    def until_linked(self, count: int, limit_s: float = JOIN_WAIT_S) -> None:
        """Wait until so many workers can be reached."""
        self.cluster.until(lambda state: len(linked(state)) >= count, f"{count} workers to be linked", limit_s)

    def members(self, number: int) -> list[int]:
        """Processes of a worker: agent and trainer."""
        return processes.family(self.cluster.services[f"worker-{number}"].process.pid)

    def hurt(self, fault: Fault) -> Mend:
        """Do it now; what is returned mends it."""
        if fault.kind in CUTS:
            return self._cut(fault.targets[0], CUTS[fault.kind])
        if fault.kind is Kind.KILL_MASTER:
            self.kill("master")
            return self._start_master
        if fault.kind in (Kind.FREEZE, Kind.FREEZE_TRAINER):
            return self._freeze(fault)
        if fault.kind is Kind.KILL_TRAINER:
            processes.signal_all(processes.named(self.members(fault.targets[0]), "trainer"), "SIGKILL")
            return lambda: None  # its agent starts another
        for number in fault.targets:
            if fault.kind is Kind.RESTART:
                self._stop(number)
            else:
                self.kill(f"worker-{number}")
        return lambda: self._start_workers(fault.targets)

    def kill(self, name: str) -> None:
        """kill -9 of the service alone: its child must notice by itself, else it is an orphan."""
        pid = self.cluster.services[name].process.pid
        children = processes.family(pid)[1:]
        processes.signal_all([pid], "SIGKILL")
        self.orphans += processes.wait_gone(children)
        self.cluster.kill(name)

    def end(self) -> list[str]:
        """Ask all to stop; sentences for those that did not end well. Afterwards nothing of the cluster runs."""
        pids = {name: processes.family(service.process.pid) for name, service in self.cluster.services.items()}
        began = time.monotonic()
        self._parts.close()
        faults = []
        for name, members in pids.items():
            if left := processes.wait_gone(members, 0.5):
                faults.append(f"{name} has left processes {left}")
        if time.monotonic() - began > STOP_WAIT_S:
            faults.append(f"stopping took {time.monotonic() - began:.0f} s")
        if left := processes.marked(self.home):
            faults.append(f"orphans: {left}")
            processes.signal_all(left, "SIGKILL")
        if self.orphans:
            faults.append(f"did not notice the death of their parent: {self.orphans}")
        return faults

    def run(self, **spec: Any) -> str:
        """Start a run; its id."""
        return self.cluster.run(**spec)

    def _cut(self, number: int, way: str) -> Mend:
        net = self._network
        assert net is not None
        net.cut(number, way)
        return lambda: net.heal(number)

    def _freeze(self, fault: Fault) -> Mend:
        members = self.members(fault.targets[0])
        pids = members if fault.kind is Kind.FREEZE else processes.named(members, "trainer")
        processes.signal_all(pids, "SIGSTOP")
        return lambda: processes.signal_all(pids, "SIGCONT")

    def _stop(self, number: int) -> None:
        name = f"worker-{number}"
        service = self.cluster.services[name]
        children = processes.family(service.process.pid)[1:]
        service.process.send_signal(signal.SIGTERM)
        service.process.wait(STOP_WAIT_S)
        self.orphans += processes.wait_gone(children)
        self.cluster.kill(name)  # it has ended: its log is put aside

    def _start_master(self) -> None:
        if self._network is None:
            self.cluster.start_master()
        else:
            here = self._network.address
            self.cluster.start_master(MAHE_MASTER_BIND=here, MAHE_ADVERTISE=here, MAHE_MASTER_LOCAL_HOST=here)

    def _start_workers(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            with self._network.inside(number) if self._network is not None else contextlib.nullcontext():
                self.cluster.start_worker(f"worker-{number}")
