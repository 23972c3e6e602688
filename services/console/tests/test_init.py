"""INIT is asked of the master once a term: by a page that is ready, or when none has come in time."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.console import init, link, talk
from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import running_console, wait_until
from services.console.tests.scripted_master import ScriptedMaster

WAITING = cluster.init("waiting", [])
INIT = {"name": "init"}
NEVER_S = 3600.0


@pytest.fixture
def master(control_dir: Path) -> Iterator[ScriptedMaster]:
    scripted = ScriptedMaster(control_dir, cluster.state(init=WAITING))
    yield scripted
    scripted.close()


@pytest.fixture
def waiting(tmp_path: Path, control_dir: Path, master: ScriptedMaster) -> Iterator[httpx.Client]:
    """A client of a console that knows the master and waits for a page."""
    with running_console(tmp_path / "console", control_dir, ui_wait_s=NEVER_S) as running, running.client() as client:
        wait_until(lambda: client.get("/api/v1/state").json()["link"]["state"] == "live")
        assert master.commands == []
        yield client


def readiness(client: httpx.Client) -> dict[str, Any]:
    response = client.get("/readyz")
    checks = response.json()["checks"]
    assert [one["name"] for one in checks] == ["master_link", "init"]
    assert response.status_code == (200 if response.json()["ready"] else 503)
    found: dict[str, Any] = checks[1]
    return found


def says(master: ScriptedMaster, state: str, code: str, kind: str = "INIT") -> None:
    master.say(kind, f"{code} in words", {"code": code, "init": cluster.init(state, [cluster.check(code)])})


def test_two_pages_at_once_ask_once(waiting: httpx.Client, master: ScriptedMaster) -> None:
    assert readiness(waiting)["reason"] == (
        "waiting for a page to be opened, for 3600 s at most; then it begins without one"
    )
    pages = [threading.Thread(target=waiting.post, args=("/api/v1/ui-ready",)) for _ in range(2)]
    for page in pages:
        page.start()
    for page in pages:
        page.join()
    wait_until(lambda: master.commands == [INIT])
    response = waiting.post("/api/v1/ui-ready")
    assert (response.status_code, response.json()) == (202, {"term": 1, "init": "waiting"})
    says(master, "running", "KERNELS_WRONG", "ERROR")
    wait_until(lambda: readiness(waiting)["reason"] == "the master makes its checks")
    says(master, "done", "READY")
    wait_until(lambda: readiness(waiting)["ok"])
    response = waiting.post("/api/v1/ui-ready")
    assert (response.status_code, response.json()) == (200, {"term": 1, "init": "done"})
    assert waiting.get("/api/v1/state").json()["snapshot"]["init"]["checks"][0]["code"] == "READY"
    assert master.commands == [INIT]


def test_a_page_before_the_master(tmp_path: Path, control_dir: Path) -> None:
    with running_console(tmp_path / "console", control_dir, ui_wait_s=NEVER_S) as running, running.client() as client:
        response = client.post("/api/v1/ui-ready")
        assert (response.status_code, response.json()) == (202, {"term": None, "init": "waiting"})
        assert client.get("/healthz").status_code == 200
        assert readiness(client)["reason"] == "the master has not answered yet"
        master = ScriptedMaster(control_dir, cluster.state(init=WAITING))
        wait_until(lambda: master.commands == [INIT])
        master.close()


@pytest.mark.parametrize("wait_s", [0, 0.3])
def test_nobody_looks(tmp_path: Path, control_dir: Path, master: ScriptedMaster, wait_s: float) -> None:
    with running_console(tmp_path / "console", control_dir, ui_wait_s=wait_s):
        wait_until(lambda: master.commands == [INIT])


def test_a_new_term_is_asked_by_itself_and_one_that_has_it_is_not(
    waiting: httpx.Client, master: ScriptedMaster, control_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talk, "STALE_S", 0.2)
    monkeypatch.setattr(talk, "GONE_S", 0.4)
    waiting.post("/api/v1/ui-ready")
    wait_until(lambda: master.commands == [INIT])
    master.mute = True
    second = ScriptedMaster(control_dir, cluster.state(init=WAITING), term=2)
    wait_until(lambda: second.commands == [INIT])
    second.mute = True
    third = ScriptedMaster(control_dir, cluster.state(), term=3)
    wait_until(lambda: readiness(waiting)["ok"])
    assert waiting.post("/api/v1/ui-ready").status_code == 200
    assert third.commands == []
    second.close()
    third.close()


def test_a_console_that_starts_again_asks_nothing_of_a_master_that_has_it(
    tmp_path: Path, control_dir: Path, master: ScriptedMaster
) -> None:
    master.change_state(cluster.state())
    for _ in range(2):
        with running_console(tmp_path / "console", control_dir, ui_wait_s=0) as running, running.client() as client:
            wait_until(lambda client=client: client.get("/readyz").status_code == 200)  # type: ignore[misc]
    assert master.commands == []


def test_one_that_does_not_answer_in_time_is_asked_again(
    waiting: httpx.Client, master: ScriptedMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "COMMAND_S", 0.2)
    monkeypatch.setattr(init, "RETRY_S", 0.05)
    master.lose_replies = 2
    waiting.post("/api/v1/ui-ready")
    wait_until(lambda: master.commands == [INIT] * 3)


def test_one_that_refuses_is_not_asked_again(
    waiting: httpx.Client, master: ScriptedMaster, capfd: pytest.CaptureFixture[str]
) -> None:
    master.replies["init"] = lambda _: (False, "INTERNAL", "a bug in MAHE", {})
    waiting.post("/api/v1/ui-ready")
    written: list[str] = []

    def told() -> bool:
        written.append(capfd.readouterr().err)
        return "[WARN] the master refuses INIT: a bug in MAHE" in "".join(written)

    wait_until(told)
    waiting.post("/api/v1/ui-ready")
    assert master.commands == [INIT]


def test_a_run_that_comes_too_early_is_not_available_now(waiting: httpx.Client, master: ScriptedMaster) -> None:
    master.replies["create_run"] = lambda _: (False, "NOT_READY", "INIT is not done", {})
    response = waiting.post("/api/v1/runs", json={})
    assert (response.status_code, response.json()["code"]) == (503, "NOT_READY")
