"""What a console may send: nothing of it ends the master."""

import hashlib
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from services.common.protocol.codec import decode_to_console
from services.common.protocol.control import Command, CreateRun, FilePull, ListCheckpoints, ListDatasets
from services.common.protocol.messages import RunSpec
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
