"""CPU quotas by control groups, version 1 or 2: what makes cores of this PC into PCs of any speed. Linux, root.

The period is short, so that a worker with 0.4 of a core is slow all the time and not asleep for most of a second.
"""

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

CGROUPS = Path("/sys/fs/cgroup")
PREFIX = "mahe-speed"
PERIOD_US = 10_000
REMOVE_S = 5.0


def available(root: Path = CGROUPS) -> str:
    """Why there can be no quotas here; empty when there can."""
    if not _has_version_2(root) and not (root / "cpu" / "cpu.cfs_quota_us").exists():
        return f"{root} has no control group of the CPU, neither version 2 (cpu.max) nor 1 (cpu.cfs_quota_us)"
    return "" if os.access(_folders(root, "")[0], os.W_OK) else f"{root} cannot be written: it needs root"


class Quotas:
    """Numbers count from 1, as those of workers do. What was admitted must have ended before the `with` block does."""

    def __init__(self, cores: Sequence[float], root: Path = CGROUPS) -> None:
        self.cores = dict(enumerate(cores, start=1))
        self._root = root

    def __enter__(self) -> Self:
        sweep(self._root)
        try:
            if _has_version_2(self._root):
                (self._root / "cgroup.subtree_control").write_text("+cpu")
            for number, cores in self.cores.items():
                for folder in self.folders(number):
                    folder.mkdir(exist_ok=True)
                self.change(number, cores)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._remove()

    def admit(self, number: int, pid: int) -> None:
        """This process, and what it starts from now on, shares the quota of that number."""
        for folder in self.folders(number):
            (folder / "cgroup.procs").write_text(str(pid))

    def change(self, number: int, cores: float) -> None:
        """From now on so many cores."""
        self.cores[number] = cores
        quota_us, folder = round(cores * PERIOD_US), self.folders(number)[0]
        if _has_version_2(self._root):
            (folder / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
            return
        (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (folder / "cpu.cfs_quota_us").write_text(str(quota_us))

    def used_s(self, number: int) -> float:
        """Seconds of processor time that all under this quota have used."""
        folder = self.folders(number)[-1]
        if _has_version_2(self._root):
            words = (folder / "cpu.stat").read_text().split()
            return int(words[words.index("usage_usec") + 1]) / 1e6
        return int((folder / "cpuacct.usage").read_text()) / 1e9

    def folders(self, number: int) -> list[Path]:
        """The control groups of that number: the first limits, the last counts."""
        return _folders(self._root, f"{PREFIX}-{os.getpid()}-{number}")

    def _remove(self) -> None:
        deadline = time.monotonic() + REMOVE_S
        for number in self.cores:
            for folder in self.folders(number):
                while folder.exists() and not _remove(folder) and time.monotonic() < deadline:
                    time.sleep(0.05)  # the last of its processes are ending


def sweep(root: Path = CGROUPS) -> None:
    """Undo what a run that was killed has left."""
    for base in _folders(root, ""):
        for folder in base.glob(f"{PREFIX}-*"):
            if not Path("/proc", folder.name.split("-")[2]).exists():
                _remove(folder)


def _has_version_2(root: Path) -> bool:
    controllers = root / "cgroup.controllers"
    return controllers.exists() and "cpu" in controllers.read_text().split()


def _folders(root: Path, name: str) -> list[Path]:
    """The control groups of this name: one, or in version 1 one that limits and one that counts, maybe the same."""
    return [root / name] if _has_version_2(root) else [root / "cpu" / name, root / "cpuacct" / name]


def _remove(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()
