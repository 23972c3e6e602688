"""What /proc says of running processes: who was started by whom, how much memory, how many descriptors and threads.

Linux only. Not for starting or ending services: that is services/launch.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PAGE_BYTES = 4096
TICKS_PER_S = 100
GONE_WAIT_S = 10.0


@dataclass(frozen=True)
class Size:
    """One process, or several together."""

    rss_mib: float
    descriptors: int
    threads: int

    def __str__(self) -> str:
        return f"{self.rss_mib:.0f} MiB, {self.descriptors} descriptors, {self.threads} threads"


def family(pid: int) -> list[int]:
    """The process and all that come from it, parents first."""
    found = [pid]
    for one in found:
        for path in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(word) for word in path.read_text().split()]
    return found


def named(pids: Iterable[int], word: str) -> list[int]:
    """Those whose command line has this word."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            if word in Path(f"/proc/{pid}/cmdline").read_text():
                found.append(pid)
    return found


def alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_gone(pids: Iterable[int], limit_s: float = GONE_WAIT_S) -> list[int]:
    """Those that are still there after `limit_s`."""
    left, deadline = [pid for pid in pids if alive(pid)], time.monotonic() + limit_s
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = [pid for pid in left if alive(pid)]
    return left


def signal_all(pids: Iterable[int], word: str) -> None:
    """Send a signal, by its POSIX name, to each that is there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, getattr(signal, word))


def size(pids: Iterable[int]) -> Size:
    """Their resident memory, descriptors and threads, added up."""
    rss = descriptors = threads = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            rss += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
            descriptors += len(list(Path(f"/proc/{pid}/fd").iterdir()))
            threads += len(list(Path(f"/proc/{pid}/task").iterdir()))
    return Size(round(rss / 2**20, 2), descriptors, threads)


def processor_s() -> tuple[float, float]:
    """(busy, idle) seconds of all cores of this PC since it started, whoever used them."""
    words = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = words[3] + words[4]
    return (sum(words) - idle) / TICKS_PER_S, idle / TICKS_PER_S


def busy_share(since: tuple[float, float]) -> float:
    """The share of all cores that was used since `processor_s()` said `since`."""
    busy, idle = (now - before for now, before in zip(processor_s(), since, strict=True))
    return round(busy / max(1e-9, busy + idle), 3)


def marked(folder: Path) -> list[int]:
    """All processes whose environment names this folder: what a cluster on it has left, whoever its parent is."""
    word, found = str(folder).encode(), []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if word in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
    return [pid for pid in found if alive(pid)]
