"""How much memory this PC has: each system's call, with a fake of the system, and what is said when none answers."""

import ctypes
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from services.common.host import machine

GIB = 2**30


def test_windows_fills_a_memorystatusex() -> None:
    def ask(status: "ctypes.Array[ctypes.c_char]") -> int:
        assert len(status) == 64
        assert struct.unpack_from("<I", status)[0] == 64, "Windows refuses a structure that does not say its length"
        status.raw = struct.pack("<II7Q", 64, 50, 16 * GIB, 8 * GIB, 4, 3, 2, 1, 0)
        return 1

    assert machine.windows_memory_bytes(ask) == 16 * GIB
    assert machine.windows_memory_bytes(lambda status: 0) == 0


def test_macos_answers_hw_memsize() -> None:
    def ask(
        name: bytes, value: "ctypes.Array[ctypes.c_char]", size: "ctypes.Array[ctypes.c_size_t]", new: None, length: int
    ) -> int:
        assert (name, len(value), size[0], new, length) == (b"hw.memsize", 8, 8, None, 0)
        value.raw = struct.pack("=Q", 24 * GIB)
        return 0

    assert machine.darwin_memory_bytes(ask) == 24 * GIB
    assert machine.darwin_memory_bytes(lambda *_: -1) == 0


def test_the_less_of_this_pc_and_its_cgroup() -> None:
    total = 2**30
    if sys.platform != "win32":
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    assert 1 <= machine.memory_mib() <= total


@pytest.mark.parametrize("error", [OSError, ValueError, AttributeError])
def test_where_nothing_answers_it_is_1024(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def ask(name: str) -> int:
        raise error(name)

    monkeypatch.setattr(os, "sysconf", ask)
    monkeypatch.setattr(machine, "CGROUP", Path("/nowhere"))
    assert machine.memory_mib() == 1024


@pytest.mark.parametrize(
    ("files", "memory", "threads"),
    [
        ({"memory.max": str(512 * 2**20), "cpu.max": "200000 100000"}, 512, 2),
        ({"memory.max": "max", "cpu.max": "max 100000"}, None, 4),
        ({"memory.max": str(64 * 2**20), "cpu.max": "50000 100000"}, 64, 1),
        (
            {
                "memory/memory.limit_in_bytes": str(256 * 2**20),
                "cpu/cpu.cfs_quota_us": "300000",
                "cpu/cpu.cfs_period_us": "100000",
            },
            256,
            3,
        ),
        (
            {
                "memory/memory.limit_in_bytes": "9223372036854771712",
                "cpu/cpu.cfs_quota_us": "-1",
                "cpu/cpu.cfs_period_us": "100000",
            },
            None,
            4,
        ),
        ({}, None, 4),
        ({"memory.max": "", "cpu.max": "odd words"}, None, 4),
    ],
)
def test_a_cgroup_s_limits_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: dict[str, str], memory: int | None, threads: int
) -> None:
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(machine, "cores", lambda: 4)
    monkeypatch.setattr(machine, "_memory_bytes", lambda: 2**33)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert machine.memory_mib() == (8192 if memory is None else memory)
    assert machine.threads_usable() == threads


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has SCHED_IDLE")
def test_who_gives_way_to_all_runs_when_nobody_else_does() -> None:
    code = "from services.common.host import machine; machine.give_way_to_all(); "
    code += "import os; print(os.sched_getscheduler(0), os.nice(0))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["5", "19"], "SCHED_IDLE of sched.h, and the largest nice"
