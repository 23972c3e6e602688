"""The link: waits for the master with a reason, finds it again, asks each command once, never makes up an answer."""

import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
import zmq

from services.common.protocol.control import Command, ControlError, ListDatasets
from services.console import commands, link, talk
from services.console.guard import BODY_BYTES_MAX
from services.console.problems import Problem
from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole, wait_until
from services.console.tests.scripted_master import ScriptedMaster


def link_of(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/api/v1/state").json()["link"]
    return found


def waits_because(client: httpx.Client, reason: str) -> None:
    wait_until(lambda: reason in link_of(client)["reason"])


def test_without_a_master_it_is_alive_but_not_ready(client: httpx.Client, control_dir: Path) -> None:
    assert client.get("/healthz").json() == {"status": "alive"}
    ready = client.get("/readyz")
    assert ready.status_code == 503
    assert ready.json()["ready"] is False
    waits_because(client, f"waiting for {control_dir / 'control.json'}")
    state = client.get("/api/v1/state").json()
    assert (state["link"]["state"], state["snapshot"], state["id"]) == ("connecting", None, None)
    workers = client.get("/api/v1/workers")
    assert (workers.status_code, workers.json()["code"]) == (503, "MASTER_UNREACHABLE")


def test_a_command_without_a_master_is_a_503(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "COMMAND_S", 0.2)
    for method, path in (("GET", "/api/v1/datasets"), ("POST", "/api/v1/runs/run-7/stop"), ("GET", "/api/v1/runs")):
        response = client.request(method, path)
        assert response.headers["content-type"] == "application/problem+json"
        assert (response.status_code, response.json()["code"]) == (503, "MASTER_UNREACHABLE")
        assert "could not be sent: waiting for" in response.json()["detail"]


def test_an_outcome_that_is_not_known_says_so(
    live: httpx.Client, master: ScriptedMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "COMMAND_S", 0.5)
    master.mute = True
    response = live.post("/api/v1/runs", json={})
    assert (response.status_code, response.json()["code"]) == (503, "MASTER_UNREACHABLE")
    assert "may still be carried out" in response.json()["detail"]


def test_a_command_is_asked_again_under_the_same_id(
    live: httpx.Client, master: ScriptedMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "RETRY_SENT_S", 0.1)
    answers: list[httpx.Response] = []
    master.lose_replies = 2
    asking = threading.Thread(target=lambda: answers.append(live.post("/api/v1/runs/run-7/stop")))
    asking.start()
    asking.join()
    assert answers[0].status_code == 202
    assert master.commands == [{"name": "stop_run", "run": "run-7"}]  # done once, asked three times
    assert master.lose_replies == 0


def test_a_master_that_falls_silent_is_stale_and_comes_back(
    live: httpx.Client, master: ScriptedMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talk, "STALE_S", 0.3)
    monkeypatch.setattr(talk, "SUBSCRIBE_S", 0.1)
    master.mute = True
    wait_until(lambda: link_of(live)["state"] == "stale")
    assert live.get("/readyz").status_code == 503
    assert live.get("/api/v1/state").json()["snapshot"]["run"]["id"] == "run-7"
    master.mute = False
    wait_until(lambda: link_of(live)["state"] == "live")


def test_a_restarted_master_is_found_by_its_new_file(
    live: httpx.Client, master: ScriptedMaster, control_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talk, "STALE_S", 0.2)
    monkeypatch.setattr(talk, "GONE_S", 0.4)
    master.mute = True
    second = ScriptedMaster(control_dir, cluster.state(closed=20), term=2)
    try:
        wait_until(lambda: live.get("/api/v1/state").json()["term"] == 2)
        assert live.get("/api/v1/state").json()["snapshot"]["run"]["version"] == 20
        wait_until(lambda: link_of(live)["state"] == "live")
    finally:
        second.close()


def test_lost_events_are_asked_for_again(live: httpx.Client, master: ScriptedMaster) -> None:
    master.lose_events = 3
    for number in range(5):
        master.say("INFO", f"line {number}")
    wait_until(lambda: live.get("/api/v1/state").json()["id"] == "1:5")
    assert [line["text"] for line in live.get("/api/v1/state").json()["recent"]] == [f"line {n}" for n in range(5)]


def test_a_port_nobody_listens_on_is_a_reason(client: httpx.Client, control_dir: Path) -> None:
    master = ScriptedMaster(control_dir, cluster.state())
    master.close()
    fields = json.loads((control_dir / "control.json").read_text())
    waits_because(client, f"nothing answers at {fields['endpoint']}")


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"server_key": zmq.curve_keypair()[0].decode()}, "has another key than control.json says"),
        ({"secret": "f" * 64}, "does not know this console's key"),
        ({"endpoint": "http://127.0.0.1:1"}, "is not what a master writes"),
        ({"secret": "short"}, "is not what a master writes"),
    ],
)
def test_a_wrong_control_file_is_a_reason(
    master: ScriptedMaster, control_dir: Path, client: httpx.Client, change: dict[str, str], reason: str
) -> None:
    wait_until(lambda: link_of(client)["state"] == "live")
    right = (control_dir / "control.json").read_text()
    (control_dir / "control.json").write_text(json.dumps({**json.loads(right), **change}))
    assert master.endpoint
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setattr(talk, "STALE_S", 0.2)
        patch.setattr(talk, "GONE_S", 0.4)
        master.mute = True
        waits_because(client, reason)


def test_no_secret_is_written_to_the_log(
    live: httpx.Client, console: RunningConsole, control_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert live.get("/api/v1/state").status_code == 200
    console.stop()
    written = "".join(capfd.readouterr())
    fields = json.loads((control_dir / "control.json").read_text())
    assert console.token not in written
    assert fields["secret"] not in written


def test_a_refusal_ends_the_command_that_it_names(live: httpx.Client, master: ScriptedMaster) -> None:
    """Both have one id, so that the master refuses the second one; a third, with no key, waits in peace."""
    key = {"Idempotency-Key": "one"}
    assert live.post("/api/v1/join-strings", json={"uses": 1}, headers=key).status_code == 201
    refused = live.post("/api/v1/join-strings", json={"uses": 2}, headers=key)
    assert (refused.json()["code"], refused.json()["detail"]) == ("IDEMPOTENCY_KEY_REUSED", "used before")
    assert live.post("/api/v1/join-strings", json={"uses": 2}).status_code == 201


def test_a_refusal_that_names_no_command_is_laid_to_none() -> None:
    desk, told = commands.CommandDesk(), list[commands.Outcome]()
    command = Command(cmd_id="command-1", command=ListDatasets())
    desk.add(commands.Pending(command, 1.0, told.append))
    desk.on_error(ControlError(code="HEADER_NOT_JSON", text="no"))
    desk.on_error(ControlError(code="BAD_FIELD", text="no", cmd_id="command-2"))
    assert told == []
    desk.on_error(ControlError(code="BAD_FIELD", text="no", cmd_id="command-1"))
    [problem] = told
    assert isinstance(problem, Problem)
    assert (problem.code, problem.sentence) == ("BAD_FIELD", "no")


def test_what_does_not_fit_into_a_message_is_refused_and_the_link_lives(
    live: httpx.Client, master: ScriptedMaster
) -> None:
    body = json.dumps({"model": {"family": "mlp", "hidden": [1] * 32_700}}, separators=(",", ":")).encode()
    assert BODY_BYTES_MAX - 300 < len(body) <= BODY_BYTES_MAX
    refused = live.post("/api/v1/runs", content=body, headers={"Content-Type": "application/json"})
    assert (refused.status_code, refused.json()["code"]) == (413, "FRAME_TOO_LARGE")
    assert live.get("/api/v1/datasets").status_code == 200
