"""Facts of this PC: usable cores (cgroup quota), memory, addresses, data folders; and giving way to its owner."""

import contextlib
import ctypes
import os
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import platformdirs

NICE_TRAINER = 15
NICE_AGENT = 5
NICE_LAST = 19
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
KEPT_BYTES = 1 << 28
MEMORY_MIB_UNKNOWN = 1024
FREE_MIB_WARN = 2048  # with less free space on the disk a person is told
CGROUP = Path("/sys/fs/cgroup")
_MEMORYSTATUSEX = struct.Struct("<II7Q")  # its own length, load in percent, total of memory, six figures more


def cores() -> int:
    """Processors that this process may run on."""
    if sys.platform == "linux":
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def threads_usable() -> int:
    """Cores, or less under a cgroup's CPU quota (floor, at least 1)."""
    quota = _cgroup("cpu.max")  # version 2: both figures in one file
    quota += [] if quota else _cgroup("cpu/cpu.cfs_quota_us") + _cgroup("cpu/cpu.cfs_period_us")
    if len(quota) != 2 or quota[0] <= 0 or quota[1] <= 0:
        return cores()
    return max(1, min(cores(), quota[0] // quota[1]))


def memory_mib() -> int:
    """Memory of this PC in MiB, or of the cgroup when that is less; 1024 where the platform does not say."""
    total = _memory_bytes() // 2**20 or MEMORY_MIB_UNKNOWN
    limit = _cgroup("memory.max") or _cgroup("memory/memory.limit_in_bytes")
    return max(1, min(total, limit[0] // 2**20) if limit and limit[0] > 0 else total)


def _cgroup(name: str) -> list[int]:
    """The figures in a file of this process's cgroup, version 2 or 1; empty when there is none or no limit."""
    try:
        return [int(word) for word in (CGROUP / name).read_text().split()]
    except (OSError, ValueError):  # "max" is no number
        return []


def _memory_bytes() -> int:
    """Of this PC; 0 where the platform does not say."""
    found = 0
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if sys.platform == "win32":
            found = windows_memory_bytes(ctypes.windll.kernel32.GlobalMemoryStatusEx)
        elif sys.platform == "darwin":
            found = darwin_memory_bytes(ctypes.CDLL(None).sysctlbyname)
    if sys.platform != "win32" and not found:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(0, found)


def windows_memory_bytes(ask: Callable[["ctypes.Array[ctypes.c_char]"], int]) -> int:
    """Memory of this PC, from GlobalMemoryStatusEx (sysinfoapi.h); 0 when it fails."""
    status = ctypes.create_string_buffer(_MEMORYSTATUSEX.size)
    struct.pack_into("<I", status, 0, _MEMORYSTATUSEX.size)
    return int(_MEMORYSTATUSEX.unpack(status.raw)[2]) if ask(status) else 0


def darwin_memory_bytes(ask: Callable[..., int]) -> int:
    """Memory of this PC, from sysctlbyname(3) and its hw.memsize, 64 bits; 0 when it fails."""
    value = ctypes.create_string_buffer(8)
    size = (ctypes.c_size_t * 1)(len(value))
    failed = ask(b"hw.memsize", value, size, None, 0)
    return 0 if failed else int.from_bytes(value.raw, sys.byteorder)


def give_way(nice: int) -> None:
    """Lower this process's CPU weight so that the owner's programs go first (POSIX; on Windows the parent does it)."""
    if sys.platform != "win32":
        os.nice(max(0, nice - os.nice(0)))


def give_way_to_all() -> None:
    """This process runs only when no other wants the processor (Linux: sched(7), SCHED_IDLE; else rarely)."""
    give_way(NICE_LAST)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # a sandbox may forbid it
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def keep_freed_memory() -> None:
    """Large arrays that come and go each round reuse their pages (glibc's mallopt(3); elsewhere nothing).

    By default each is mapped anew, and every page of it faults: as long as a kernel takes for it.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)


def addresses() -> list[str]:
    """This PC's own addresses that others may reach, the one of the default route first; never loopback."""
    found: list[str] = []
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        # Connecting a UDP socket sends nothing: it only asks the kernel for the route (RFC 5737 and 3849 addresses).
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((target, 9))
                found.append(probe.getsockname()[0])
        except OSError:
            continue
    with contextlib.suppress(OSError):
        found += [str(item[4][0]) for item in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
    usable = [one for one in found if not one.startswith(("127.", "0.", "169.254.", "fe80", "::1"))]
    return list(dict.fromkeys(usable))


def home() -> Path:
    """The folder under which every service keeps its data: MAHE_HOME, else the platform's place for user data."""
    named = os.environ.get("MAHE_HOME")
    return Path(named).expanduser().resolve() if named else Path(platformdirs.user_data_dir("mahe", appauthor=False))
