"""The system's dialog for a folder: programs that stand in for it are real processes that say how they were called."""

import asyncio
import json
import os
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.console import dialog
from services.console.dialog import APPLESCRIPT, FOLDER_VARIABLE, POWERSHELL, FolderDialog, find_program
from services.console.problems import Problem
from services.console.settings import ConsoleSettings
from services.console.tests.conftest import RunningConsole, wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are scripts with a first line of POSIX")
PICK = "/api/v1/folders/pick"
CALLED = f"""#!{sys.executable}
import json, os, pathlib, subprocess, sys, time
said = pathlib.Path(__file__).with_suffix(".json")
def called(*pids):
    facts = {{"argv": sys.argv[1:], "folder": os.environ.get("{FOLDER_VARIABLE}"), "pids": [os.getpid(), *pids]}}
    said.with_suffix(".new").write_text(json.dumps(facts))
    os.replace(said.with_suffix(".new"), said)
"""
HANGS = "called(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']).pid); time.sleep(60)"
HOSTILE = [
    '/tmp/a"; touch pwned; "',
    "/tmp/$(touch pwned)`touch pwned`",
    "/tmp/'; New-Item pwned; '",
    '/tmp/" & (do shell script "touch pwned") & "',
    "/-rf --title=x",
    "/新 <b>é",
]
LEFT_OUT = ["", "models", "--title=x", "-e", "~/models", "/tmp/a\nb", "/tmp/a\0b", "\ud800", "C:\\models"]


class Desk:
    """A folder that is the whole PATH, with programs that stand in for others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def has(self, name: str, act: str) -> None:
        """A program of this name: notes how it is called, then acts."""
        path = self.folder / name
        path.write_text(f"{CALLED}\n{act}\n", "utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def gives(self, name: str, output: str = "/home/ann/models\n", code: int = 0) -> None:
        """One that ends at once with this output."""
        self.has(name, f"called(); sys.stdout.buffer.write({output.encode('latin-1')!r}); sys.exit({code})")

    def called(self, name: str) -> dict[str, Any]:
        """How it was called, once it is."""
        found = self.folder / f"{name}.json"
        wait_until(found.is_file)
        facts: dict[str, Any] = json.loads(found.read_text())
        return facts

    def has_gone(self, name: str) -> bool:
        """Whether the program and its own child have ended."""
        return not any(map(alive, self.called(name)["pids"]))


def alive(pid: int) -> bool:
    """Whether it runs: a dead one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A screen, and no program for dialogs yet."""
    made = Desk(tmp_path / "programs")
    monkeypatch.setenv("PATH", str(made.folder))
    monkeypatch.setenv("DISPLAY", ":7")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    return made


def refused(response: httpx.Response, code: str, words: str, status: int = 409) -> None:
    problem = response.json()
    assert (response.status_code, problem["code"]) == (status, code)
    assert words in problem["detail"]


def picked(begin: str, platform: str, **env: str) -> str:
    """What this system's program gives: as on that platform, with its environment."""

    async def pick() -> str:
        program = find_program(begin, ConsoleSettings(), {**os.environ, **env}, platform)
        return await FolderDialog().pick(program, asyncio.Event().wait)  # type: ignore[arg-type]

    return asyncio.run(pick())


def test_the_folder_that_was_chosen_is_the_answer(client: httpx.Client, desk: Desk) -> None:
    desk.gives("zenity", "/home/ann/my models\n")
    answer = client.post(PICK, json={"path": "/home/ann"})
    assert (answer.status_code, answer.json()) == (200, {"path": "/home/ann/my models"})
    assert desk.called("zenity")["argv"] == ["--file-selection", "--directory", "--title=MAHE", "--filename=/home/ann/"]
    desk.gives("zenity", "", code=1)
    answer = client.post(PICK, json={})
    assert (answer.status_code, answer.json()) == (200, {"path": None})


@pytest.mark.parametrize(
    "platform, env, name, argv",
    [
        ("linux", {}, "kdialog", ["--title", "MAHE", "--getexistingdirectory", "{}"]),
        ("darwin", {}, "osascript", ["-e", APPLESCRIPT, "{}"]),
        ("win32", {"SESSIONNAME": "Console"}, "powershell", ["-NoLogo", "-NoProfile", "-NonInteractive", "-STA"]),
    ],
)
@pytest.mark.parametrize("begin", HOSTILE)
def test_a_path_is_never_code(
    desk: Desk, tmp_path: Path, platform: str, env: dict[str, str], name: str, argv: list[str], begin: str
) -> None:
    begin = f"C:{begin}" if platform == "win32" else begin
    desk.gives(name, "/models\n")
    assert picked(begin, platform, **env) == "/models"
    called = desk.called(name)
    if platform == "win32":
        assert (called["argv"], called["folder"]) == ([*argv, "-Command", POWERSHELL], begin)
    else:
        assert called["argv"] == [begin if one == "{}" else one for one in argv]
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize("begin", LEFT_OUT)
def test_what_is_no_whole_path_is_left_out(desk: Desk, begin: str) -> None:
    desk.gives("zenity")
    desk.gives("osascript")
    picked(begin, "linux")
    assert desk.called("zenity")["argv"] == ["--file-selection", "--directory", "--title=MAHE"]
    picked(begin, "darwin")
    assert desk.called("osascript")["argv"] == ["-e", APPLESCRIPT, ""]


@pytest.mark.parametrize("name, platform", [("osascript", "darwin"), ("powershell", "win32")])
def test_an_empty_answer_is_a_cancelled_dialog_there_and_code_1_a_fault(desk: Desk, name: str, platform: str) -> None:
    desk.gives(name, "\n" if name == "osascript" else "")
    assert picked("", platform, SESSIONNAME="Console") == ""
    desk.has(name, "print('no such thing\\nexecution error', file=sys.stderr); sys.exit(1)")
    with pytest.raises(Problem, match=rf"{name} ended with code 1 \(execution error\)") as found:
        picked("", platform, SESSIONNAME="Console")
    assert found.value.code == "NO_DIALOG"


@pytest.mark.parametrize(
    "platform, env, words",
    [
        ("linux", {"DISPLAY": ""}, "neither DISPLAY nor WAYLAND_DISPLAY"),
        ("linux", {"PATH": ""}, "there is no zenity or kdialog on this PC; install one"),
        ("darwin", {"SSH_CONNECTION": "10.0.0.1 22"}, "over SSH"),
        ("win32", {}, "does not run in a session with a desktop"),
        ("win32", {"SESSIONNAME": "Console", "PATH": ""}, "there is no powershell"),
    ],
)
def test_without_a_screen_or_a_program_there_is_no_dialog(
    desk: Desk, platform: str, env: dict[str, str], words: str
) -> None:
    for name in ("zenity", "kdialog", "osascript", "powershell"):
        desk.gives(name)
    with pytest.raises(Problem, match=words) as found:
        picked("", platform, **env)
    assert found.value.code == "NO_DIALOG"
    assert "GET /api/v1/folders" in found.value.sentence
    assert not list(desk.folder.glob("*.json"))


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"bind": "0.0.0.0", "hosts": ("127.0.0.1:47830",)}, "the page is served on 0.0.0.0"),  # as in a container
        ({"master": "tcp://lab-1:47822"}, "the master is at tcp://lab-1:47822"),
    ],
)
def test_not_on_another_screen_than_the_pages_nor_for_another_disk_than_the_masters(
    desk: Desk, settings: dict[str, Any], words: str
) -> None:
    desk.gives("zenity")
    with pytest.raises(Problem, match=words) as found:
        find_program("", ConsoleSettings(**settings), os.environ)
    assert found.value.code == "NO_DIALOG"
    assert find_program("", ConsoleSettings(master="tcp://[::1]:47822"), os.environ).name == "zenity"


@pytest.mark.parametrize(
    "env, ctype",
    [
        ({"LANG": "C"}, "C.UTF-8"),
        ({"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, "C.UTF-8"),
        ({"LC_CTYPE": "zh_CN.GBK", "LANG": "zh_CN.GBK"}, "C.UTF-8"),
        ({"LANG": "zh_CN.utf8"}, None),
        ({"LC_CTYPE": "de_DE.UTF-8", "LANG": "C"}, "de_DE.UTF-8"),
    ],
)
def test_a_name_in_any_language_comes_whole(desk: Desk, env: dict[str, str], ctype: str | None) -> None:
    """zenity 3.44 in the locale C wrote /home/?? for a folder with a Chinese name."""
    desk.gives("zenity")
    program = find_program("", ConsoleSettings(), {"PATH": str(desk.folder), "DISPLAY": ":7", **env}, "linux")
    assert program.env.get("LC_CTYPE") == ctype
    assert not program.env.get("LC_ALL")


def test_a_screen_that_is_lost_and_a_program_that_fails_are_told(client: httpx.Client, desk: Desk) -> None:
    desk.has("zenity", "print('Gtk-WARNING: cannot open display: :7', file=sys.stderr); sys.exit(1)")
    refused(client.post(PICK, json={}), "NO_DIALOG", "cannot open display: :7")
    desk.gives("zenity", "", code=255)
    refused(client.post(PICK, json={}), "NO_DIALOG", "zenity ended with code 255; type the path")
    (desk.folder / "zenity").write_text("#!/no/such/program\n")
    refused(client.post(PICK, json={}), "NO_DIALOG", "cannot be started")


@pytest.mark.parametrize("output", ["/home/a\nb\n", "/home/\xff\xfe\n", "/home/\x1b[31m\n"])
def test_a_name_that_nobody_can_type_is_refused(client: httpx.Client, desk: Desk, output: str) -> None:
    desk.gives("zenity", output)
    refused(client.post(PICK, json={}), "FOLDER_UNUSABLE", "choose or make another one")


def test_chatter_of_the_program_holds_nothing_up(client: httpx.Client, desk: Desk) -> None:
    desk.has("zenity", "called(); sys.stderr.write('Gtk-Message: x\\n' * 200_000); print('/models')")
    assert client.post(PICK, json={}).json() == {"path": "/models"}


def asked_meanwhile(console: RunningConsole) -> tuple[threading.Thread, list[httpx.Response]]:
    """A page that has asked for a dialog and waits."""
    answers: list[httpx.Response] = []

    def ask() -> None:
        with console.client() as client:
            answers.append(client.post(PICK, json={}))

    thread = threading.Thread(target=ask)
    thread.start()
    return thread, answers


def test_one_at_a_time_and_nothing_else_waits_for_it(console: RunningConsole, client: httpx.Client, desk: Desk) -> None:
    go = desk.folder / "go"
    desk.has("zenity", f"called()\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\nprint('/models')")
    thread, answers = asked_meanwhile(console)
    desk.called("zenity")
    refused(client.post(PICK, json={}), "DIALOG_OPEN", "zenity waits for an answer already")
    assert client.get("/healthz").status_code == 200
    assert answers == []
    go.touch()
    thread.join()
    assert answers[0].json() == {"path": "/models"}
    assert client.post(PICK, json={}).json() == {"path": "/models"}


def test_it_goes_when_the_page_goes(client: httpx.Client, desk: Desk) -> None:
    desk.has("zenity", HANGS)
    with pytest.raises(httpx.ReadTimeout):
        client.post(PICK, json={}, timeout=1.5)
    wait_until(lambda: desk.has_gone("zenity"))
    desk.gives("zenity", "/models\n")
    wait_until(lambda: client.post(PICK, json={}).json() == {"path": "/models"})


def test_it_goes_when_nobody_answers_it(client: httpx.Client, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialog, "DIALOG_S", 1.5)
    desk.has("zenity", HANGS)
    refused(client.post(PICK, json={}), "DIALOG_TIMEOUT", "nobody answered the dialog in 1.5 s")
    assert desk.has_gone("zenity")


def test_it_goes_when_the_console_stops(console: RunningConsole, desk: Desk) -> None:
    desk.has("zenity", HANGS)
    thread, answers = asked_meanwhile(console)
    desk.called("zenity")
    begun = time.monotonic()
    console.stop()
    assert time.monotonic() - begun < 2.5, "without it uvicorn waits 3 s"
    thread.join()
    assert desk.has_gone("zenity")
    refused(answers[0], "STOPPING", "the console stops", status=503)


@pytest.mark.parametrize("body", [{"path": "x" * 1025}, {"path": 7}, {"folder": "/"}, []])
def test_a_bad_request_opens_nothing(client: httpx.Client, desk: Desk, body: Any) -> None:
    desk.gives("zenity")
    assert client.post(PICK, json=body).status_code == 422
    assert not list(desk.folder.glob("*.json"))
