"""What a console may send: nothing of it ends the master."""

import hashlib
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from services.common.protocol.codec import decode_to_console
from services.common.protocol.control import (
    Command,
    CreateJoinString,
    CreateRun,
    FilePull,
    GetRun,
    ListCheckpoints,
    ListDatasets,
    ListJoinStrings,
    ListRounds,
    ListRuns,
)
from services.common.protocol.messages import RunSpec
from services.common.protocol.reasons import said
from services.master.shell import control_port
from services.master.shell.operator import Operator
from services.master.shell.store import Store
from services.master.tests.conftest import Peer, Running, console


@pytest.fixture
def operator(master: Running) -> Iterator[Peer]:
    peer = console(master)
    yield peer
    peer.close()


def answer(peer: Peer, kind: str) -> Any:
    while True:
        message, payload = decode_to_console(peer.frames())
        if message.t == kind:
            peer.payload = payload
            return message


def ask(peer: Peer, command: Any, cmd_id: str) -> Any:
    peer.send(Command(cmd_id=cmd_id, command=command))
    return answer(peer, "REPLY")


def test_an_endless_number_is_a_bad_field(operator: Peer) -> None:
    spec = RunSpec(dataset="gauss3", inner={"name": "sgd", "lr": 10**400})
    refused = ask(operator, CreateRun(spec=spec), "command-1")
    assert (refused.ok, refused.code) == (False, "BAD_SPEC")
    assert "lr" in refused.text
    assert ask(operator, ListDatasets(), "command-2").ok


def test_a_chunk_beyond_the_file_is_a_bad_field(operator: Peer, master: Running) -> None:
    made = ask(operator, CreateRun(spec=RunSpec(dataset="gauss3")), "command-1")
    assert made.ok
    assert operator.payload is not None
    run = json.loads(bytes(operator.payload))["run"]
    items: list[Any] = []
    deadline = time.monotonic() + 20
    while not items and time.monotonic() < deadline:
        ask(operator, ListCheckpoints(run=run), f"command-1{time.monotonic_ns()}")
        items = json.loads(bytes(operator.payload))["items"]
    sha256 = items[0]["sha256"]
    operator.send(FilePull(sha256=sha256, want=[2**53, 0], chunk_bytes=1_048_576))
    assert answer(operator, "ERROR").code == "BAD_FIELD"
    assert answer(operator, "CHUNK").index == 0
    assert hashlib.sha256(bytes(operator.payload)).hexdigest() == sha256


def test_a_bug_in_one_command_is_told_and_ends_nothing(
    operator: Peer, master: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Operator, "_look_up", broken)
    refused = ask(operator, ListDatasets(), "command-1")
    assert (refused.ok, refused.code) == (False, "INTERNAL")
    monkeypatch.undo()
    assert ask(operator, ListDatasets(), "command-2").ok


def test_a_store_that_cannot_be_read_is_told(operator: Peer, master: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "has_run", lambda self, run: self._read("SELECT nonsense"))
    refused = ask(operator, ListCheckpoints(run="gauss3-1"), "command-1")
    assert "cannot be read" in refused.text


def result(peer: Peer) -> Any:
    assert peer.payload is not None
    return json.loads(bytes(peer.payload))


def test_what_is_asked_again_is_not_done_again_and_its_id_is_for_nothing_else(operator: Peer) -> None:
    made = ask(operator, CreateJoinString(label="lab"), "key-1234")
    first = result(operator)
    assert made.ok
    assert ask(operator, CreateJoinString(label="lab"), "key-1234") == made
    assert result(operator) == first
    operator.send(Command(cmd_id="key-1234", command=CreateJoinString(label="dorm")))
    refused = answer(operator, "ERROR")
    assert (refused.code, refused.cmd_id) == ("IDEMPOTENCY_KEY_REUSED", "key-1234")
    ask(operator, ListJoinStrings(), "command-1")
    assert [item["label"] for item in result(operator)["items"]] == ["this PC", "lab"]


def test_a_query_is_answered_anew_and_takes_no_place_among_the_answers_kept(
    operator: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_port, "REPLIES_KEPT", 1)
    ask(operator, CreateJoinString(label="lab"), "key-1234")
    first = result(operator)
    for _ in range(3):
        ask(operator, ListJoinStrings(), "command-1")
        assert len(result(operator)["items"]) == 2
    ask(operator, CreateJoinString(label="lab"), "key-1234")
    assert result(operator) == first
    ask(operator, CreateJoinString(label="dorm"), "key-5678")
    ask(operator, ListJoinStrings(), "command-1")
    assert len(result(operator)["items"]) == 3


def test_a_refused_command_is_named(operator: Peer) -> None:
    for header, code, cmd_id in (
        ({"t": "COMMAND", "cmd_id": "command-1", "command": {"name": "fly"}}, "UNKNOWN_TYPE", "command-1"),
        ({"t": "COMMAND", "cmd_id": "command-2", "command": {"name": "get_run", "run": "?"}}, "BAD_FIELD", "command-2"),
        ({"t": "COMMAND", "cmd_id": "?", "command": {"name": "list_datasets"}}, "BAD_FIELD", None),
        ({"t": "SUBSCRIBE", "term": 1}, "BAD_FIELD", None),
    ):
        operator.socket.send_multipart([json.dumps(header).encode()])
        refused = answer(operator, "ERROR")
        assert (refused.code, refused.cmd_id) == (code, cmd_id)
    for frame in (b"{", b"[1]", b"[" * 60_000, b"\xff"):
        operator.socket.send_multipart([frame])
        assert answer(operator, "ERROR").cmd_id is None


def test_every_bad_field_of_a_specification_is_told(operator: Peer) -> None:
    spec = RunSpec(
        model={"family": "mlp", "hidden": [64, 0]},
        inner={"name": "sgd", "lr": 99.0},
        outer={"name": "fedavg", "colour": "red"},
    )
    refused = ask(operator, CreateRun(spec=spec), "command-1")
    assert (refused.ok, refused.code) == (False, "BAD_SPEC")
    errors = result(operator)["errors"]
    assert [error["field"] for error in errors] == ["model.hidden.1", "inner.lr", "outer.colour"]
    assert {error["code"] for error in errors} == {"BAD_SPEC"}
    assert all(error["message"].removesuffix(".") in refused.text for error in errors)


def test_an_optimizer_without_a_name_is_refused(operator: Peer) -> None:
    refused = ask(operator, CreateRun(spec=RunSpec(outer={"lr": 1.0})), "command-1")
    assert (refused.ok, refused.code) == (False, "BAD_SPEC")
    assert [error["field"] for error in result(operator)["errors"]] == ["outer.name"]


def test_one_run_and_pages_of_runs_rounds_and_join_strings(operator: Peer, master: Running) -> None:
    store = Store(master.folder)
    for number in range(1, 6):
        store.add_run(f"run-{number}", number, {"name": f"run {number}"}, "STOPPED", said("over"))
    for number in range(1, 5):
        store.save_round("run-5", {"round": number})
    store.close()
    ask(operator, GetRun(run="run-2"), "command-1")
    assert (result(operator)["number"], result(operator)["spec"]) == (2, {"name": "run 2"})
    assert ask(operator, GetRun(run="run-9"), "command-2").code == "RUN_UNKNOWN"
    for before, numbers, following in ((None, [5, 4], 4), (4, [3, 2], 2), (2, [1], None)):
        ask(operator, ListRuns(limit=2, before=before), "command-3")
        found = result(operator)
        assert ([run["number"] for run in found["items"]], found["next"]) == (numbers, following)
    for after, numbers, following in ((0, [1, 2], 2), (2, [3, 4], None)):
        ask(operator, ListRounds(run="run-5", limit=2, after=after), "command-4")
        found = result(operator)
        assert ([row["round"] for row in found["items"]], found["next"]) == (numbers, following)
    ask(operator, CreateJoinString(), "command-5")
    for after, ids, following in ((0, [1], 1), (1, [2], None)):
        ask(operator, ListJoinStrings(limit=1, after=after), "command-6")
        found = result(operator)
        assert ([one["id"] for one in found["items"]], found["next"]) == (ids, following)
