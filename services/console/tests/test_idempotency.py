"""Idempotency-Key: what is asked again is not done again, and a key is for one request."""

import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.common.protocol.control import Command, CreateJoinString
from services.console import link
from services.console.commands import PENDING_MAX, CommandDesk, Outcome, Pending
from services.console.problems import Problem
from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import running_console
from services.console.tests.scripted_master import ScriptedMaster

KEY = {"Idempotency-Key": "any text: 5f0c"}


def counted(master: ScriptedMaster) -> None:
    """Each run, and each join string, gets another number."""

    def made(command: dict[str, Any]) -> tuple[bool, str, str, dict[str, Any]]:
        number = len(master.commands)
        return True, "OK", "", {"run": f"run-{number}", "id": number, "join_string": cluster.JOIN_STRING}

    master.replies.update(create_run=made, create_join_string=made)


def done(master: ScriptedMaster, name: str) -> int:
    return sum(command["name"] == name for command in master.commands)


@pytest.mark.parametrize(
    "path, name, body, other",
    [
        ("/api/v1/runs", "create_run", {"rounds": 3}, {"rounds": 4}),
        ("/api/v1/join-strings", "create_join_string", {"label": "lab"}, {"label": "dorm"}),
    ],
)
def test_the_same_again_is_answered_and_not_done(
    live: httpx.Client, master: ScriptedMaster, path: str, name: str, body: dict[str, Any], other: dict[str, Any]
) -> None:
    counted(master)
    first, again = (live.post(path, json=body, headers=KEY) for _ in range(2))
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert first.headers.get("location") == again.headers.get("location")
    assert done(master, name) == 1
    refused = live.post(path, json=other, headers=KEY)
    assert (refused.status_code, refused.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert live.post(path, json=other, headers={"Idempotency-Key": "another"}).status_code == 201
    assert [live.post(path, json=body).status_code for _ in range(2)] == [201, 201]
    assert done(master, name) == 4


def test_a_key_is_for_one_route(live: httpx.Client, master: ScriptedMaster) -> None:
    counted(master)
    assert live.post("/api/v1/runs", json={}, headers=KEY).status_code == 201
    assert live.post("/api/v1/join-strings", json={}, headers=KEY).json()["code"] == "IDEMPOTENCY_KEY_REUSED"


def test_a_refusal_is_the_first_answer_too(live: httpx.Client, master: ScriptedMaster) -> None:
    master.replies["create_run"] = lambda _: (False, "QUEUE_FULL", "20 runs wait already", {})
    assert live.post("/api/v1/runs", json={}, headers=KEY).status_code == 409
    counted(master)
    assert live.post("/api/v1/runs", json={}, headers=KEY).status_code == 409
    assert live.post("/api/v1/runs", json={}, headers={"Idempotency-Key": "another"}).status_code == 201


def test_no_answer_in_time_then_the_same_again(
    live: httpx.Client, master: ScriptedMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted(master)
    monkeypatch.setattr(link, "COMMAND_S", 0.5)
    master.lose_replies = 10
    lost = live.post("/api/v1/join-strings", json={}, headers=KEY)
    assert (lost.status_code, lost.json()["code"]) == (503, "MASTER_UNREACHABLE")
    master.lose_replies = 0
    assert live.post("/api/v1/join-strings", json={}, headers=KEY).status_code == 201
    assert done(master, "create_join_string") == 1


def test_also_when_the_console_was_started_anew_between(
    master: ScriptedMaster, tmp_path: Path, control_dir: Path
) -> None:
    counted(master)
    answers = []
    for _ in range(2):
        with running_console(tmp_path / "console", control_dir) as console, console.client() as client:
            answers.append(client.post("/api/v1/join-strings", json={}, headers=KEY).json())
    assert answers[0] == answers[1]
    assert done(master, "create_join_string") == 1


def test_both_at_once_get_one_answer(live: httpx.Client, master: ScriptedMaster) -> None:
    counted(master)
    master.mute = True
    answers: list[httpx.Response] = []

    def ask() -> None:
        answers.append(live.post("/api/v1/join-strings", json={}, headers=KEY))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    threading.Event().wait(0.3)
    master.mute = False
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [201, 201, 201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert done(master, "create_join_string") == 1


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_a_key_has_bounds(client: httpx.Client, key: str) -> None:
    response = client.post("/api/v1/join-strings", json={}, headers={"Idempotency-Key": key})
    assert (response.status_code, response.json()["code"]) == (422, "VALIDATION")
    assert [fault["field"] for fault in response.json()["errors"]] == ["idempotency-key"]


def test_another_command_under_an_id_that_waits_is_refused_and_so_is_one_too_many() -> None:
    desk, told = CommandDesk(), list[Outcome]()
    runs = [Command(cmd_id="key-12345", command=CreateJoinString(uses=uses)) for uses in (1, 1, 2)]
    for command in runs:
        desk.add(Pending(command, 1.0, told.append))
    assert [problem.code for problem in told if isinstance(problem, Problem)] == ["IDEMPOTENCY_KEY_REUSED"]
    for _ in range(PENDING_MAX - 1):
        desk.add(Pending(runs[0], 1.0, told.append))
    assert [problem.code for problem in told if isinstance(problem, Problem)][1:] == ["MASTER_UNREACHABLE"]
    desk.close()
    assert len(told) == PENDING_MAX + 2
