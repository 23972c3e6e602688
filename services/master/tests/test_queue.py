"""Runs that wait: refused at once when they are bad or too many, kept by the store, found again in order."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.common.errors import CheckpointError
from services.common.protocol import control
from services.common.protocol.codec import decode_to_console
from services.common.protocol.messages import RunSpec
from services.common.protocol.reasons import Reason, because, said
from services.master.core import commands as c
from services.master.core import events as e
from services.master.core.state import QUEUE_MAX, RunPhase
from services.master.core.view import queue_view, state_view
from services.master.shell import store as store_file
from services.master.shell.checkpoints import Checkpoint, Vault
from services.master.shell.desk import Desk
from services.master.shell.resume import Found, Unprepared, find_run
from services.master.shell.store import Store
from services.master.tests.conftest import Running, console, start_master
from services.tests.story import Story

SPEC = RunSpec(dataset="gauss3", rounds=3)


class Operator:
    """A console's end of the control port: one command after the other."""

    def __init__(self, master: Running) -> None:
        self.peer, self.asked = console(master), 0

    def ask(self, command: Any, cmd_id: str = "") -> tuple[Any, Any]:
        """The reply and its result."""
        self.asked += 1
        self.peer.send(control.Command(cmd_id=cmd_id or f"command-{self.asked}", command=command))
        while True:
            message, payload = decode_to_console(self.peer.frames())
            if message.t == "REPLY":
                return message, json.loads(bytes(payload or b"{}"))

    def runs(self) -> dict[str, dict[str, Any]]:
        return {one["id"]: one for one in self.ask(control.ListRuns())[1]["items"]}


@pytest.fixture
def operator(master: Running) -> Iterator[Operator]:
    made = Operator(master)
    yield made
    made.peer.close()


def create(operator: Operator, **values: Any) -> tuple[Any, Any]:
    return operator.ask(control.CreateRun(spec=RunSpec(dataset="gauss3", **values)))


def test_a_second_run_waits_with_its_place_and_leaves_it_when_stopped(operator: Operator) -> None:
    assert [create(operator)[1]["position"] for _ in range(4)] == [None, 1, 2, 3]
    waiting = operator.runs()["gauss3-3"]
    assert (waiting["phase"], waiting["position"]) == ("QUEUED", 2)
    assert waiting["reason"] == "position 2 of 3; starts when gauss3-2 ends"
    assert operator.runs()["gauss3-1"]["position"] is None
    reply, _ = operator.ask(control.PauseRun(run="gauss3-2"))
    assert (reply.ok, reply.code) == (False, "RUN_NOT_IN_PHASE")
    reply, _ = operator.ask(control.StopRun(run="gauss3-2"))
    assert reply.ok
    assert operator.runs()["gauss3-3"]["reason"] == "position 1 of 2; starts when gauss3-1 ends"


def test_a_bad_one_is_refused_at_once_and_so_is_one_too_many(operator: Operator) -> None:
    create(operator)
    reply, _ = create(operator, inner={"name": "sgd", "lr": -1.0})
    assert (reply.ok, reply.code) == (False, "BAD_SPEC")
    for _ in range(QUEUE_MAX):
        assert create(operator)[0].ok
    reply, _ = create(operator)
    assert (reply.ok, reply.code) == (False, "QUEUE_FULL")
    assert "20 runs wait already, allowed are 20; stop one of them" in reply.text
    assert len(operator.runs()) == 1 + QUEUE_MAX


def test_what_waits_survives_the_master_and_begins_by_itself_when_its_turn_comes(tmp_path: Path) -> None:
    running = start_master(tmp_path)
    operator = Operator(running)
    for _ in range(4):
        create(operator)
    operator.ask(control.StopRun(run="gauss3-3"))
    operator.peer.close()
    running.stop()
    running = start_master(tmp_path)
    operator = Operator(running)
    runs = operator.runs()
    assert [runs[f"gauss3-{one}"]["position"] for one in (1, 2, 3, 4)] == [None, 1, None, 2]
    assert runs["gauss3-3"]["phase"] == "STOPPED"
    operator.ask(control.StopRun(run="gauss3-1"))
    assert operator.runs()["gauss3-2"]["position"] is None
    reply, _ = operator.ask(control.StopRun(run="gauss3-2"))
    assert reply.ok, "it is the current run"
    assert operator.runs()["gauss3-4"]["position"] is None
    operator.peer.close()
    running.stop()


def test_starts_that_are_asked_for_again_after_the_masters_death_are_the_same_runs(tmp_path: Path) -> None:
    running = start_master(tmp_path)
    operator = Operator(running)
    first = [operator.ask(control.CreateRun(spec=SPEC), f"the-same-{one}")[1] for one in range(3)]
    for _ in range(2):
        operator.peer.close()
        running.stop()
        running = start_master(tmp_path)
        operator = Operator(running)
        for one in (1, 0, 2):
            reply, again = operator.ask(control.CreateRun(spec=SPEC), f"the-same-{one}")
            assert (reply.ok, again) == (True, first[one])
    reply, _ = operator.ask(control.CreateRun(spec=SPEC.model_copy(update={"rounds": 4})), "another-one")
    assert reply.ok
    operator.peer.close()
    running.stop()
    running = start_master(tmp_path)
    operator = Operator(running)
    reply, _ = operator.ask(control.CreateRun(spec=SPEC), "another-one")
    assert (reply.ok, reply.code) == (False, "IDEMPOTENCY_KEY_REUSED")
    assert "has started run gauss3-4, which is another one; take a new key" in reply.text
    assert len(operator.runs()) == 4
    operator.peer.close()
    running.stop()


def test_the_newest_commands_that_started_runs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_file, "ASKED_KEPT", 3)
    kept = Store(tmp_path)
    for number in range(1, 8):
        cmd_id = "" if number == 6 else f"command-{number}"
        kept.add_run(f"gauss3-{number}", number, {}, "QUEUED", because("CREATED"), cmd_id)
    kept.close()
    kept = Store(tmp_path)
    found = [kept.run_asked_by(f"command-{number}") for number in range(1, 8)]
    assert [one["id"] if one else None for one in found] == [None, None, None, None, "gauss3-5", None, "gauss3-7"]
    assert kept.run_asked_by("") is None
    kept.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    yield made
    made.close()


def add(store: Store, *numbers: int) -> None:
    for number in numbers:
        store.add_run(f"digits-{number}", number, SPEC.model_dump(mode="json"), "QUEUED", because("CREATED"))


def test_killed_before_a_run_began_it_is_the_first_to_begin(tmp_path: Path, store: Store) -> None:
    add(store, 1, 2, 3)
    found, _ = find_run(store, Vault(tmp_path / "runs"), {})
    assert isinstance(found, Unprepared)
    assert (found.run, [one.id for one in found.queue]) == ("digits-1", ["digits-2", "digits-3"])
    assert set(found.created_ms) == {"digits-1", "digits-2", "digits-3"}


def test_one_that_was_taken_out_is_never_taken_for_the_current_run(tmp_path: Path, store: Store) -> None:
    add(store, 1, 2, 3)
    store.begin_run("digits-1", "WAITING", said(""))
    store.save_run("digits-1", "RUNNING", said(""), False)
    store.save_run("digits-3", "STOPPED", because("TAKEN_OUT"), False)
    meta = {"run": "digits-1", "round": 1, "version": 1, "row": None}
    Vault(tmp_path / "runs").write(Checkpoint(np.zeros(3, np.float32), {}, meta))
    found, _ = find_run(store, Vault(tmp_path / "runs"), {})
    assert isinstance(found, Found)
    assert (found.saved.run, [one.id for one in found.saved.queue]) == ("digits-1", ["digits-2"])


def test_a_store_of_before_has_its_newest_run_as_the_current_one(store: Store) -> None:
    for number in (1, 2):
        store.add_run(f"digits-{number}", number, SPEC.model_dump(mode="json"), "STOPPED", said(""))
    add(store, 3)
    current = store.current_run()
    assert current is not None
    assert current["id"] == "digits-2"


def test_a_disk_that_fails_the_first_step_leaves_the_run_in_the_queue_and_says_so(tmp_path: Path, store: Store) -> None:
    events: list[Any] = []

    class Full(Store):
        def begin_run(self, run: str, phase: str, reason: Reason) -> None:
            raise CheckpointError("the store cannot be written: disk is full; free the disk")

    add(store, 1)
    desk = Desk(Full(tmp_path), Vault(tmp_path / "runs"), events.append, lambda _: None, set)
    desk.run_job(lambda desk: desk.prepare(c.PrepareRun("digits-1", SPEC)))
    desk.close()
    [event] = events
    assert (event.run, event.disk) == ("digits-1", True)
    assert [one["id"] for one in store.queued_runs()] == ["digits-1"]


def held(event: e.Event) -> Story:
    """A run that could not begin, and another that waits for it."""
    story = Story()
    story.play("shell by hand\n@1000 create\n@1100 create digits-2")
    story.coordinator.step(event, 2000)
    return story


def test_one_that_the_disk_keeps_from_beginning_holds_the_queue_until_it_is_stopped() -> None:
    story = held(e.RunUnusable("digits-1", "the disk is full", disk=True))
    [waiting] = queue_view(story.coordinator.state)
    assert waiting["reason"] == "position 1 of 1; waits, as digits-1 failed; resume it, or stop it"
    story.play("@3000 stop")
    run: Any = story.coordinator.state.run
    assert (run.id, story.coordinator.state.queue) == ("digits-2", [])


def test_one_whose_data_cannot_be_used_lets_the_next_begin() -> None:
    story = held(e.RunUnusable("digits-1", "the data cannot be read"))
    run: Any = story.coordinator.state.run
    assert (run.id, run.phase, state_view(story.coordinator.state, 0)["queue"]) == ("digits-2", RunPhase.WAITING, [])
