"""The demo for real: the command as a user types it, with real processes on loopback."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from services.launch.tests.conftest import gone, until

pytestmark = pytest.mark.system
LIMIT_S = 50


def start(home: Path, *options: str, command: str = "demo", ci: bool = True) -> subprocess.Popen[str]:
    """The command in a terminal's place: a process group of its own, its output to be read."""
    env = os.environ | {"MAHE_HOME": str(home), "CI": "true" if ci else "", "PYTHONUTF8": "1"}
    for variable in ("MAHE_MASTER_PORT", "MAHE_MASTER_CONTROL_PORT", "MAHE_CONSOLE_PORT"):
        env[variable] = "0"
    return subprocess.Popen(
        [sys.executable, "-m", "services", command, *options, "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        env=env,
        start_new_session=True,
    )


def processes_of(home: Path) -> list[int]:
    """Every process that was started with this MAHE_HOME, from the kernel's own list."""
    mark = f"MAHE_HOME={home}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def read_until(process: subprocess.Popen[str], pattern: str) -> list[str]:
    """Lines up to the first that matches; fails with what came when the output ends before."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if re.search(pattern, line):
            return lines
    raise AssertionError("\n".join(lines))


def test_three_rounds_of_digits(mahe_home: Path) -> None:
    demo = start(mahe_home, "--rounds", "3")
    output, _ = demo.communicate(timeout=LIMIT_S)
    assert demo.returncode == 0, output
    rounds = re.findall(r"^\[ROUND\] round=(\d+) workers=2 ", output, re.MULTILINE)
    assert sorted(rounds) == ["1", "2", "3"], output
    last = re.search(r"^\[ROUND\] round=3 workers=2 eval_loss=[\d.]+ eval_acc=([\d.]+)$", output, re.MULTILINE)
    assert last is not None, output
    assert f"final accuracy {last[1]}" in output
    assert re.search(r"the page: http://127\.0\.0\.1:\d+", output)
    found = re.search(r"the best is version [123]; its checkpoint: (.+\.npz)$", output, re.MULTILINE)
    assert found is not None, output
    assert Path(found[1]).is_relative_to(mahe_home / "demo" / "master" / "runs")
    with np.load(found[1], allow_pickle=False) as checkpoint:
        assert np.isfinite(checkpoint["parameters"]).all()
    gone(processes_of(mahe_home))


def test_ctrl_c_in_mid_run_stops_all(mahe_home: Path) -> None:
    demo = start(mahe_home, "--rounds", "100000")
    read_until(demo, r"^\[ROUND\]")
    processes = processes_of(mahe_home)
    assert len(processes) >= 5  # launcher, master, console, two workers; and what these have started
    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=10)
    assert demo.returncode == 130
    gone(processes)


def test_kill_9_of_a_worker_and_the_run_goes_on(mahe_home: Path) -> None:
    demo = start(mahe_home, "--rounds", "8", "--k-steps", "200")
    read_until(demo, r"^\[ROUND\] round=1 ")
    worker = next(pid for pid in processes_of(mahe_home) if is_worker(pid))
    os.kill(worker, 9)
    output, _ = demo.communicate(timeout=LIMIT_S)
    assert demo.returncode == 0, output
    assert re.search(r"^\[WARN\] the worker-\d was killed by signal 9", output, re.MULTILINE), output
    gone(processes_of(mahe_home))


def is_worker(pid: int) -> bool:
    """Whether that process is a worker's agent."""
    return b"services.launch.leash\0services.worker\0" in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_after_the_end_the_page_stays_and_ctrl_c_is_no_failure(mahe_home: Path) -> None:
    demo = start(mahe_home, "--rounds", "1", "--workers", "1", "--dataset", "builtin:rings4", "--stay")
    read_until(demo, "the page stays")
    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=10)
    assert demo.returncode == 0
    gone(processes_of(mahe_home))


def test_a_data_set_that_is_not_there(mahe_home: Path) -> None:
    demo = start(mahe_home, "--dataset", "cats", "--workers", "1")
    output, _ = demo.communicate(timeout=LIMIT_S)
    assert demo.returncode == 1
    assert "there is no data set 'cats'; there are: " in output
    gone(processes_of(mahe_home))


def test_up_prints_the_line_to_paste_and_a_worker_joins_with_it(mahe_home: Path) -> None:
    first = start(mahe_home, command="up")
    lines = read_until(first, r"^    mahe join mahe1\.")
    join_string = lines[-1].split()[-1]
    assert any("the page: http://127.0.0.1:" in line for line in lines)
    second = start(mahe_home, command="up")
    output, _ = second.communicate(timeout=LIMIT_S)
    assert second.returncode == 1
    assert "already runs" in output
    env = os.environ | {"MAHE_HOME": str(mahe_home)}
    worker = subprocess.Popen(
        [sys.executable, "-m", "services", "join", join_string], env=env, start_new_session=True, stderr=subprocess.PIPE
    )
    status = [sys.executable, "-m", "services", "status"]
    until(lambda: "LINKED" in subprocess.run(status, env=env, capture_output=True, text=True, check=False).stdout)
    for process in (worker, first):
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
    assert first.returncode == 0
    gone(processes_of(mahe_home))
