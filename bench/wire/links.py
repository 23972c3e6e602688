"""Namespaces joined by a slow switch (switch.c), and what went over their interfaces. Linux, root, a C compiler.

Not for faults: those are in services/tests/chaos.
"""

import contextlib
import os
import shutil
import socket
import statistics
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from services.tests.chaos.network import do, enter

ROOT = Path(__file__).parents[2]
SWITCH, SOURCE = ROOT / "build" / "bench-wire-switch", Path(__file__).parent / "switch.c"
NAMESPACES = Path("/run/netns")
PREFIX = "mahe-wire"
DEVICE = "tap0"
ECHOES = 21
FRAME_PAYLOAD, FRAME_BYTES = 1448, 1538  # of a full TCP segment with time stamps; on the wire, gap and preamble too


@dataclass(frozen=True)
class Rate:
    """A link: Mbit/s each way of each port, the delay one way in ms, the queue of a port in KiB."""

    mbit: float = 100.0
    delay_ms: float = 2.0
    queue_kib: float = 512.0

    def seconds(self, payload_bytes: float) -> float:
        """The least time that so many bytes take through one port, in full TCP segments."""
        return payload_bytes * FRAME_BYTES / FRAME_PAYLOAD * 8 / (self.mbit * 1e6)

    def __str__(self) -> str:
        return f"{self.mbit:g} Mbit/s each way, {self.delay_ms:g} ms one way"


def available() -> str:
    """Why there can be no such network here; empty when there can."""
    if os.name != "posix" or os.geteuid() != 0:
        return "it needs root"
    missing = [name for name in ("ip",) if shutil.which(name) is None]
    if missing or not Path("/dev/net/tun").exists():
        return f"it needs {', '.join(missing) or '/dev/net/tun'}"
    return "" if _compiler() else "it needs a C compiler"


class Links:
    """Space 0 is the master's, 1 to n the workers'. Everything ends with the `with` block."""

    def __init__(self, workers: int, rate: Rate) -> None:
        self.rate = rate
        self._spaces = [f"{PREFIX}-{os.getpid()}-{number}" for number in range(workers + 1)]
        self._net = f"10.214.{os.getpid() % 250}"
        self._switch: subprocess.Popen[str] | None = None
        self.said = ""  # by the switch, when it ended

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self._undo()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._undo()

    def address(self, number: int) -> str:
        """The IPv4 address in a space."""
        return f"{self._net}.{number + 1}"

    @contextlib.contextmanager
    def inside(self, number: int) -> Iterator[None]:
        """What this thread starts in the block, threads and processes, lives in that space."""
        with Path("/proc/thread-self/ns/net").open() as home, (NAMESPACES / self._spaces[number]).open() as space:
            enter(space.fileno())
            try:
                yield
            finally:
                enter(home.fileno())

    def bytes_of(self, number: int) -> tuple[int, int]:
        """(sent, received) by that space through the switch since it was made, whole Ethernet frames."""
        with self.inside(number):
            lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
        words = next(line.partition(":")[2].split() for line in lines if line.strip().startswith(f"{DEVICE}:"))
        return int(words[8]), int(words[0])

    def rtt_ms(self) -> float:
        """The median of some echoes of one byte over TCP, from the first worker to the master and back."""
        with self.inside(0):
            listener = socket.create_server((self.address(0), 0))
        with self.inside(1):
            near = socket.create_connection(listener.getsockname())
        with listener, near, listener.accept()[0] as far:
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            took = []
            for _ in range(ECHOES):
                began = time.perf_counter()
                near.send(b"?")
                far.send(far.recv(1))
                near.recv(1)
                took.append(time.perf_counter() - began)
        return statistics.median(took) * 1000

    def _make(self) -> None:
        build()
        sweep()
        for space in self._spaces:
            do("ip", "netns", "add", space)
        rate = self.rate
        figures = [str(rate.mbit), str(round(rate.delay_ms * 1000)), str(rate.queue_kib)]
        self._switch = subprocess.Popen([SWITCH, *figures, *self._spaces], stdout=subprocess.PIPE, text=True)
        assert self._switch.stdout is not None
        said = self._switch.stdout.readline()
        assert said.startswith("ready"), f"the switch did not start: {said}"
        for number, space in enumerate(self._spaces):
            do("ip", "-n", space, "address", "add", f"{self.address(number)}/24", "dev", DEVICE)
            do("ip", "-n", space, "link", "set", DEVICE, "up")
            do("ip", "-n", space, "link", "set", "lo", "up")

    def _undo(self) -> None:
        if self._switch is not None:
            self._switch.terminate()
            self.said = self._switch.communicate()[0].strip()
        for space in self._spaces:
            subprocess.run(["ip", "netns", "delete", space], capture_output=True, check=False)


def sweep() -> None:
    """Undo what a run that was killed has left."""
    for space in NAMESPACES.glob(f"{PREFIX}-*"):
        if not Path("/proc", space.name.split("-")[2]).exists():
            subprocess.run(["ip", "netns", "delete", space.name], capture_output=True, check=False)


def build() -> None:
    """Compile the switch if that is needed."""
    if SWITCH.exists() and SWITCH.stat().st_mtime > SOURCE.stat().st_mtime:
        return
    SWITCH.parent.mkdir(exist_ok=True)
    do(_compiler(), "-O2", "-o", str(SWITCH), str(SOURCE))


def _compiler() -> str:
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), "")
