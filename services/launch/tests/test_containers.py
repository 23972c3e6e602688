"""What the launcher does around containers, as far as no engine is needed: choosing, ports, health, stopping."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from services.__main__ import main
from services.common.errors import MaheError, SettingsError
from services.common.host.files import FolderLock, make_folder
from services.launch import containers, down, health, places, up
from services.launch.attached import latest, patient
from services.launch.tests.fake_console import serving


def test_without_docker_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")
    assert containers.why_no_engine() == "docker is not installed"
    assert main(["up", "--use", "containers"]) == 1
    assert (
        "docker is not installed; install Docker with Compose v2, or start processes: mahe up"
        in capsys.readouterr().err
    )


def test_an_engine_that_does_not_answer_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert containers.why_no_engine() == "docker info fails"


def test_a_port_in_use_is_named_with_its_variable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        config = {"services": {"console": {"ports": [{"published": port, "host_ip": "127.0.0.1"}]}, "worker": {}}}
        with pytest.raises(SettingsError, match=rf"port {port} of this PC is in use by .*MAHE_CONSOLE_PORT"):
            containers.check_ports(config)
    containers.check_ports(config)


@pytest.mark.skipif(sys.platform != "linux", reason="the healthchecks run in containers only")
def test_health_of_each_service(mahe_home: Path) -> None:
    assert "no master holds" in health.master()
    assert health.worker() == "no worker runs here yet"
    assert health.console() == "the console has not opened its port yet"
    master, slot = make_folder(mahe_home / "master"), make_folder(mahe_home / "worker" / "slot-0")
    locks = [FolderLock(folder) for folder in (master, slot)]
    assert all(lock.acquire() for lock in locks)
    assert "has not opened its ports" in health.master()
    assert health.worker() == "slot-0 has not joined yet; its log says why"
    (master / "control").mkdir()
    places.control_file(master).write_text("{}")
    (slot / "identity.json").write_text('{"worker": "w-1"}')
    assert health.master() == health.worker() == ""
    (slot / "identity.json").write_text("[")
    (slot / "parked.json").write_text("{}")
    assert health.worker() == ""
    (mahe_home / "console").mkdir()
    places.console_file(mahe_home / "console").write_text('{"url": "http://127.0.0.1:1/"}')
    assert "does not answer" in health.console()
    for lock in locks:
        lock.release()


def test_down_with_nothing_there(mahe_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("PATH", "")
    assert down.run_down() == 0
    assert (
        "nothing of MAHE runs here: no containers (docker is not installed) and no processes" in capsys.readouterr().out
    )


def test_down_ends_the_process_that_noted_itself(mahe_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    master = make_folder(mahe_home / "master")
    hold = "import sys, pathlib, time; from services.common.host.files import FolderLock; "
    hold += "lock = FolderLock(pathlib.Path(sys.argv[1])); lock.acquire(); print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", hold, str(master)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(MaheError, match=r"mahe up did not start the master on .*; stop it with Ctrl-C"):
            down.run_down()
        (mahe_home / places.UP_FILE).write_text(str(holder.pid))
        assert down.run_down() == 0
        assert holder.wait() == -signal.SIGTERM


def test_up_leaves_word_of_itself_while_it_runs(mahe_home: Path) -> None:
    with up.noted():
        assert (mahe_home / places.UP_FILE).read_text() == f"{os.getpid()}\n"
    assert not (mahe_home / places.UP_FILE).exists()


@pytest.mark.parametrize(
    ("run", "kept"),
    [
        ({"finished": True, "phase": "STOPPED"}, True),
        ({"finished": False, "phase": "RUNNING"}, True),
        ({"finished": False, "phase": "FAILED"}, False),
    ],
)
def test_the_demo_takes_up_a_run_of_its_own_that_did_not_fail(run: dict[str, Any], kept: bool) -> None:
    items = [{"id": "b-2", "spec": {"name": "mine"}}, {"id": "a-1", "spec": {"name": "demo digits"}}]
    with serving() as console:
        console.answers |= {"/api/v1/runs": {"items": items}, "/api/v1/runs/a-1": {"id": "a-1", **run}}
        found = latest(console.link, "demo digits")
        assert (found is not None) == kept
        assert latest(console.link, "demo rings4") is None


def test_a_console_that_is_not_up_yet_is_waited_for_and_other_errors_are_not() -> None:
    def fails(code: str) -> None:
        raise MaheError("no", code=code)

    assert patient(lambda: fails("NOT_REACHABLE"))() is None
    assert patient(lambda: 5)() == 5
    with pytest.raises(MaheError):
        patient(lambda: fails("DATASET"))()
