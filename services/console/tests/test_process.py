"""The process: its settings, its files, what it says when it cannot run, and how it stops."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from services.common.errors import SettingsError
from services.console.__main__ import main
from services.console.server import ConsoleProcess, read_token
from services.console.settings import ConsoleSettings, is_loopback, read_settings
from services.console.tests.conftest import RunningConsole, running_console, wait_until

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and modes of POSIX")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAHE_HOME", str(tmp_path / "home"))
    for name in list(os.environ):
        if name.startswith("MAHE_CONSOLE_"):
            monkeypatch.delenv(name)


def test_defaults(tmp_path: Path) -> None:
    settings = read_settings()
    assert (settings.bind, settings.port) == ("127.0.0.1", 47830)
    assert settings.data == tmp_path / "home" / "console"
    assert settings.control_dir == tmp_path / "home" / "master" / "control"
    assert settings.hosts_allowed(47830) == {"127.0.0.1:47830", "localhost:47830", "[::1]:47830"}


def test_hosts_are_a_comma_separated_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAHE_CONSOLE_HOSTS", "127.0.0.1:47830, LOCALHOST:47830,")
    monkeypatch.setenv("MAHE_CONSOLE_BIND", "0.0.0.0")
    assert read_settings().hosts_allowed(1) == {"127.0.0.1:47830", "localhost:47830"}


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("BIND", "0.0.0.0", "MAHE_CONSOLE_HOSTS=127.0.0.1:47830"),
        ("BIND", "192.168.1.2", "which other PCs may reach"),
        ("PORT", "70000", "MAHE_CONSOLE_PORT is '70000'"),
        ("LOG", "xml", "MAHE_CONSOLE_LOG is 'xml'"),
    ],
)
def test_a_bad_setting_is_one_sentence_and_code_1(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(f"MAHE_CONSOLE_{name}", value)
    assert main() == 1
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("[ERROR] ")
    assert words in lines[0]


def test_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.example.org")))


def test_a_port_in_use_is_named(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("MAHE_CONSOLE_PORT", str(port))
        assert main() == 1
    error = capfd.readouterr().err
    assert f"port {port} on 127.0.0.1 is in use" in error
    assert "MAHE_CONSOLE_PORT" in error
    assert "(PORT_IN_USE)" in error


def test_a_second_console_on_the_same_folder_is_sent_to_the_first(console: RunningConsole, control_dir: Path) -> None:
    with pytest.raises(SettingsError, match="another console uses the folder") as refusal:
        ConsoleProcess(ConsoleSettings(data=console.data, port=0, control_dir=control_dir)).run()
    assert console.url in refusal.value.sentence
    assert (console.data / "console.json").exists()


def test_the_place_is_written_for_others_and_removed(console: RunningConsole) -> None:
    place = console.data / "console.json"
    assert json.loads(place.read_text()) == {"url": console.url, "token": console.token}
    console.stop()
    assert not place.exists()
    assert (console.data / "token").exists()


@posix
def test_what_holds_the_token_is_private(console: RunningConsole) -> None:
    for name in ("token", "console.json"):
        assert stat.S_IMODE((console.data / name).stat().st_mode) == 0o600


def test_the_token_is_kept(tmp_path: Path, control_dir: Path) -> None:
    tokens = []
    for _ in range(2):
        with running_console(tmp_path / "console", control_dir) as running:
            tokens.append(running.token)
    assert tokens[0] == tokens[1]
    assert len(tokens[0]) >= 40
    (tmp_path / "console" / "token").write_text("short\n")
    assert len(read_token(tmp_path / "console")) >= 40


def test_the_page_carries_the_token_and_is_not_stored(client: httpx.Client, console: RunningConsole) -> None:
    page = client.get("/", headers={"X-MAHE-Token": ""})
    assert page.headers["cache-control"] == "no-store"
    assert f'<meta name="mahe-token" content="{console.token}">' in page.text
    script = client.get("/static/js/main.js")
    assert script.headers["content-type"].startswith("text/javascript")
    again = client.get("/static/js/main.js", headers={"If-None-Match": script.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_code_0_and_a_clean_log(tmp_path: Path, number: signal.Signals) -> None:
    environment = {
        **os.environ,
        "MAHE_CONSOLE_DATA": str(tmp_path / "console"),
        "MAHE_CONSOLE_PORT": "0",
        "MAHE_CONSOLE_CONTROL_DIR": str(tmp_path / "control"),
    }
    command = [sys.executable, "-W", "error", "-m", "services.console"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        place = tmp_path / "console" / "console.json"
        wait_until(place.exists)
        found = json.loads(place.read_text())
        headers = {"X-MAHE-Token": found["token"]}
        with httpx.stream("GET", f"{found['url']}api/v1/events", headers=headers, trust_env=False) as response:
            lines = response.iter_lines()
            assert next(lines) == "event: hello"
            process.send_signal(number)
            assert "event: bye" in list(lines)
        _, log = process.communicate(timeout=10)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert "Traceback" not in log
    assert "[ERROR]" not in log
    assert "[WARN]" not in log
    assert log.splitlines()[-1] == "[CONSOLE] stopped"
    assert not place.exists()
