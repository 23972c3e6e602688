"""Groups of real processes: what ends when, and that nothing is left however the launcher ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from services.common.errors import MaheError
from services.launch.processes import STOP_S, Group
from services.launch.tests.conftest import LIMIT_S, gone, pids, running, until
from services.launch.tests.fake_launcher import FAKE


def start(group: Group, folder: Path, name: str, how: str = "clean", module: str = FAKE) -> list[int]:
    group.start(name, module, {"FAKE_FILE": str(folder / name), "FAKE_STOP": how})
    return [] if how == "crash" else pids(folder / name)


def test_stop_ends_each_service_and_what_it_started(tmp_path: Path) -> None:
    with Group(tmp_path / "logs") as group:
        processes = start(group, tmp_path, "one") + start(group, tmp_path, "two")
        assert all(running(pid) for pid in processes)
    gone(processes)
    assert (tmp_path / "one.stopped").exists()


def test_the_last_started_kind_is_stopped_first(tmp_path: Path) -> None:
    with Group(tmp_path / "logs") as group:
        start(group, tmp_path, "master")
        start(group, tmp_path, "worker", module=f"{FAKE}_too")
    assert (tmp_path / "worker.stopped").stat().st_mtime_ns < (tmp_path / "master.stopped").stat().st_mtime_ns


def test_a_stubborn_service_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.launch.processes.STOP_S", 1.0)
    group = Group(tmp_path / "logs")
    processes = start(group, tmp_path, "one", "stubborn")
    before = time.monotonic()
    group.stop()
    assert 1 <= time.monotonic() - before < 3
    gone(processes)


def test_a_crash_is_told_with_its_last_lines(tmp_path: Path) -> None:
    with Group(tmp_path / "logs") as group:
        start(group, tmp_path, "one")
        start(group, tmp_path, "two", "crash")

        def crashed() -> bool:
            try:
                group.check()
            except MaheError:
                return True
            return False

        until(crashed)
        with pytest.raises(MaheError, match=r"the two ended with code 7.*\n.*a first line\n.*no luck today") as caught:
            group.check()
        assert caught.value.code == "CHILD_ENDED"


def test_a_killed_service_that_is_forgotten_does_not_end_the_others(tmp_path: Path) -> None:
    with Group(tmp_path / "logs") as group:
        service = group.start("one", FAKE, {"FAKE_FILE": str(tmp_path / "one"), "FAKE_STOP": "clean"})
        processes = pids(tmp_path / "one")
        start(group, tmp_path, "two")
        service.process.kill()
        until(lambda: service.ended)
        assert "was killed by signal 9" in service.epitaph()
        group.forget(service)
        group.check()
        gone(processes)


def launch(folder: Path, how: str) -> tuple[subprocess.Popen[str], list[int]]:
    command = [sys.executable, "-m", "services.launch.tests.fake_launcher", str(folder), how]
    launcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    return launcher, pids(folder / "one") + pids(folder / "two")


@pytest.mark.parametrize("how", ["clean", "stubborn"])
def test_kill_9_of_the_launcher_leaves_no_orphan(tmp_path: Path, how: str) -> None:
    launcher, processes = launch(tmp_path, how)
    launcher.kill()
    launcher.communicate()
    gone(processes)


def test_a_leash_that_ends_without_a_word_means_death_whatever_the_parent_s_number_says(tmp_path: Path) -> None:
    """The kernel closes a dead launcher's pipes before its children get another parent: here the parent still lives."""
    file = tmp_path / "one"
    command = [sys.executable, "-m", "services.launch.leash", FAKE]
    env = {**os.environ, "FAKE_FILE": str(file), "FAKE_STOP": "clean"}
    service = subprocess.Popen(command, stdin=subprocess.PIPE, env=env, start_new_session=True)
    processes = pids(file)
    assert service.stdin is not None
    service.stdin.close()
    service.wait(LIMIT_S)
    gone(processes)


def test_ctrl_c_reaches_only_the_launcher_which_ends_all(tmp_path: Path) -> None:
    launcher, processes = launch(tmp_path, "clean")
    if sys.platform == "win32":
        launcher.send_signal(signal.CTRL_BREAK_EVENT)
    else:
        os.killpg(launcher.pid, signal.SIGINT)  # as a terminal does: to the whole foreground group
    output, _ = launcher.communicate(timeout=30)
    assert output == "stopped\n"
    assert launcher.returncode == 0
    gone(processes)


def test_a_second_ctrl_c_does_not_wait(tmp_path: Path) -> None:
    launcher, processes = launch(tmp_path, "stubborn")
    launcher.send_signal(signal.SIGINT)
    time.sleep(0.5)
    before = time.monotonic()
    launcher.send_signal(signal.SIGINT)
    launcher.communicate(timeout=30)
    assert time.monotonic() - before < STOP_S - 1
    gone(processes)


def test_a_service_on_a_full_disk_goes_on_and_ends_well(tmp_path: Path) -> None:
    """A real master whose log takes nothing."""
    logs, data = tmp_path / "logs", tmp_path / "master"
    env = {"MAHE_MASTER_DATA": str(data), "MAHE_MASTER_PORT": "0", "MAHE_MASTER_CONTROL_PORT": "0"}
    with Group(logs) as group:
        (logs / "master.log").symlink_to("/dev/full")
        service = group.start("master", "services.master", env)
        until(lambda: (data / "control" / "control.json").exists() or service.ended)
        assert not service.ended
        service.ask_to_stop()
        assert service.process.wait(LIMIT_S) == 0
