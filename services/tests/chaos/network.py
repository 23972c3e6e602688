"""A network of this PC's own for workers that are to be cut off: one namespace each, on one bridge with the master.

Needs Linux, root, `ip` and `iptables`. A cut drops packets without a word, as a pulled plug does: no RST, no FIN.
Everything it makes carries the maker's process id, so that the next run can sweep up after one that was killed.
"""

import contextlib
import ctypes
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PREFIX = "mahe-chaos"
NAMESPACES = Path("/run/netns")
CLONE_NEWNET = 0x40000000
WAYS = {"both": ("INPUT", "OUTPUT"), "to-master": ("INPUT",), "from-master": ("OUTPUT",)}


def available() -> bool:
    """Whether this process may make namespaces and drop packets."""
    if sys.platform == "win32" or os.geteuid() != 0 or not all(map(shutil.which, ("ip", "iptables"))):
        return False
    name = f"{PREFIX}-{os.getpid()}-try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        _try("ip", "netns", "delete", name)
    return made and _try("iptables", "-w", "-n", "-L", "INPUT")


class Network:
    """`address` is the master's; worker n lives in `inside(n)`. Everything is undone by `close`, in any state."""

    def __init__(self, workers: int) -> None:
        sweep()
        self._pid, self._workers = os.getpid(), workers
        self._net = f"10.213.{self._pid % 250}"
        self.address = f"{self._net}.1"
        self._bridge = f"mc{self._pid}"
        self._cuts: dict[int, str] = {}
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        do("ip", "link", "add", self._bridge, "type", "bridge")
        do("ip", "address", "add", f"{self.address}/24", "dev", self._bridge)
        do("ip", "link", "set", self._bridge, "up")
        for number in range(1, self._workers + 1):
            space, outer, inner = self._space(number), f"{self._bridge}w{number}", "eth0"
            do("ip", "netns", "add", space)
            do("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", space)
            do("ip", "link", "set", outer, "master", self._bridge, "up")
            do("ip", "-n", space, "address", "add", f"{self._of(number)}/24", "dev", inner)
            do("ip", "-n", space, "link", "set", inner, "up")
            do("ip", "-n", space, "link", "set", "lo", "up")

    @contextlib.contextmanager
    def inside(self, number: int) -> Iterator[None]:
        """What this thread starts in the block lives in worker n's namespace; the other threads stay where they are."""
        with Path("/proc/thread-self/ns/net").open() as home, (NAMESPACES / self._space(number)).open() as space:
            enter(space.fileno())
            try:
                yield
            finally:
                enter(home.fileno())

    def cut(self, number: int, way: str) -> None:
        """Drop worker n's packets: `both`, or one way, `to-master` or `from-master`."""
        self.heal(number)
        self._cuts[number] = way
        for chain in WAYS[way]:
            do("iptables", "-w", "-I", *self._rule(chain, number))

    def heal(self, number: int) -> None:
        """Let them through again; harmless when nothing was cut."""
        for chain in WAYS[self._cuts.pop(number, "both")]:
            _try("iptables", "-w", "-D", *self._rule(chain, number))

    def close(self) -> None:
        """Undo everything."""
        for number in list(self._cuts):
            self.heal(number)
        for number in range(1, self._workers + 1):
            _try("ip", "netns", "delete", self._space(number))
            _try("ip", "link", "delete", f"{self._bridge}w{number}")
        _try("ip", "link", "delete", self._bridge)

    def _space(self, number: int) -> str:
        return f"{PREFIX}-{self._pid}-{number}"

    def _of(self, number: int) -> str:
        return f"{self._net}.{10 + number}"

    def _rule(self, chain: str, number: int) -> list[str]:
        end = "-s" if chain == "INPUT" else "-d"
        return [chain, end, self._of(number), *_marked(self._pid), "-j", "DROP"]


def sweep() -> None:
    """Undo what a run that was killed has left."""
    for space in NAMESPACES.glob(f"{PREFIX}-*"):
        if (pid := space.name.split("-")[2]).isdigit() and not Path(f"/proc/{pid}").exists():
            _try("ip", "netns", "delete", space.name)
            _try("ip", "link", "delete", f"mc{pid}")
    rules = subprocess.run(["iptables", "-w", "-S"], capture_output=True, text=True, check=False).stdout
    for rule in rules.splitlines():
        found = re.search(rf"{PREFIX}-(\d+)", rule)
        if found and not Path(f"/proc/{found[1]}").exists():
            _try("iptables", "-w", "-D", *rule.replace('"', "").split()[1:])


def _marked(pid: int) -> list[str]:
    return ["-m", "comment", "--comment", f"{PREFIX}-{pid}"]


def enter(descriptor: int) -> None:
    """This thread goes into the network namespace of an open descriptor."""
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def do(*command: str) -> None:
    """Run it; an assertion with its own words when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"


def _try(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
