"""Fixtures of the launcher's tests: a MAHE home of their own, and waiting for processes to come and go."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

LIMIT_S = 20.0


@pytest.fixture
def mahe_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty MAHE_HOME, and no other setting of MAHE."""
    for name in [name for name in os.environ if name.startswith("MAHE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MAHE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def until(condition: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    """Wait until it holds; fails after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def running(pid: int) -> bool:
    """Whether that process is there and not merely waiting to be reaped."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


def gone(processes: list[int]) -> None:
    """Wait until none of them is there (the kernel takes a moment to bury what was killed)."""
    until(lambda: not any(running(pid) for pid in processes))


def pids(file: Path) -> list[int]:
    """The processes that a fake service named, once it did."""
    until(file.exists)
    return [int(word) for word in file.read_text().split()]
