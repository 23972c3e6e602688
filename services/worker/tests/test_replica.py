"""How a worker's replica gets to a task's version: by updates, fetched ahead or asked for, else whole."""

from typing import Any

import pytest

from services.common.protocol import messages
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.tests.driver import CHUNK_BYTES, delta, has, message, only, ref, sent
from services.worker.tests.updates import (
    UPDATE_BYTES,
    WHOLE_BYTES,
    anchor,
    announce,
    applying,
    at,
    fetch,
    fetch_whole,
    job,
    piece,
    pulled,
    update_digest,
)


def test_an_announced_update_is_fetched_and_the_trainer_applies_it_for_the_next_task() -> None:
    worker = at()
    commands = announce(worker, 1)
    assert commands[0] == c.PrepareUpdate(1, UPDATE_BYTES)
    assert pulled(commands) == ("update", "run-1", 1, [0, 1])
    commands = piece(worker, 1, of=1)
    assert commands[0] == c.StoreChunk("update", 1, CHUNK_BYTES)
    assert pulled(commands) == ("update", "run-1", 1, [2])
    assert piece(worker, 1, of=1) == []
    assert piece(worker, 0, of=1) == [c.StoreChunk("update", 1, 0)]
    assert piece(worker, 2, of=1) == [c.StoreChunk("update", 1, 2 * CHUNK_BYTES)]
    assert worker.session.state == "idle"
    assert sent(worker.wait(100_000, keep=True)) == []
    commands = worker(job(1))
    assert sent(commands) == ["TaskAck"]
    assert commands[-1] == c.Train(job(1), (1,))
    assert worker(e.Anchored(job(1).ref.lease)) == [c.NoteAnchor(anchor(1)), c.ForgetUpdates(1)]
    assert worker(e.Anchored(job(1).ref.lease)) == []


def test_an_update_is_fetched_beside_what_is_held_and_beside_a_task() -> None:
    worker = at(held=(delta(ref(7)),))
    fetch(worker, 1)
    assert worker.session.state == "uploading"
    worker.ack("accepted", ref(7))
    assert pulled(announce(worker, 2)) == ("update", "run-1", 2, [0, 1])
    for index in range(3):
        piece(worker, index, of=2)
    assert worker.session.state == "holding"
    assert worker(job(2))[-1] == c.Train(job(2), (1, 2))
    assert has(fetch(worker, 3), c.StoreChunk)
    assert worker.session.state == "training"
    worker(e.Anchored(job(2).ref.lease))
    worker.closed(2)
    worker(e.TrainerStopped(job(2).ref.lease))
    assert worker(job(3))[-1] == c.Train(job(3), (3,))


def test_an_update_that_leads_further_than_the_task_waits_for_its_turn() -> None:
    worker = at()
    fetch(worker, 1, 2)
    assert worker(job(1))[-1] == c.Train(job(1), (1,))
    assert worker(e.Anchored(job(1).ref.lease)) == [c.NoteAnchor(anchor(1)), c.ForgetUpdates(1)]
    worker.closed(1)
    worker(e.TrainerStopped(job(1).ref.lease))
    assert worker(job(2))[-1] == c.Train(job(2), (2,))


def test_the_same_version_again_needs_no_update() -> None:
    worker = applying(3)
    worker(e.Anchored(job(3).ref.lease))
    worker(messages.Cancel(term=1, ref=job(3).ref, reason=""))
    worker(e.TrainerStopped(job(3).ref.lease))
    assert worker(job(3, shard=1))[-1] == c.Train(job(3, shard=1))


@pytest.mark.parametrize("behind", [1, 2, 3])
def test_a_task_asks_for_the_updates_that_are_missing_one_after_another(behind: int) -> None:
    worker = at()
    commands = worker(job(behind))
    for version in range(1, behind + 1):
        assert only(commands, c.PrepareUpdate) == c.PrepareUpdate(version, UPDATE_BYTES)
        assert pulled(commands) == ("update", "run-1", version, [0, 1])
        assert worker.session.state == "pulling"
        piece(worker, 0, of=version)
        piece(worker, 1, of=version)
        commands = piece(worker, 2, of=version)
    assert commands[-1] == c.Train(job(behind), tuple(range(1, behind + 1)))
    assert worker.session.state == "training"


@pytest.mark.parametrize(
    "start, needed, changes",
    [
        (anchor(0), 4, {}),  # four updates are more than the whole
        (anchor(0), 2, {"encoding": "fp32"}),
        (anchor(5), 3, {}),  # there is no way back
        (anchor(2, "run-2"), 3, {}),
        (e.Anchor("", -1, "f" * 32), 1, {}),
        (e.Anchor("run-1", -1, ""), 0, {}),
    ],
)
def test_what_updates_do_not_reach_for_less_is_pulled_whole(
    start: e.Anchor, needed: int, changes: dict[str, Any]
) -> None:
    worker = at(anchor=start)
    commands = worker(job(needed, **changes))
    assert only(commands, c.PrepareAnchor).total_bytes == WHOLE_BYTES
    assert has(commands, c.ForgetUpdates)
    assert pulled(commands) == ("snapshot", "run-1", needed, [0, 1])
    trained = c.Train(job(needed, **changes))
    assert fetch_whole(worker, needed) == [c.NoteAnchor(anchor(needed)), c.ForgetUpdates(needed), trained]
    assert pulled(announce(worker, needed + 1)) == ("update", "run-1", needed + 1, [0, 1])


def test_one_fp32_update_is_no_more_than_the_whole() -> None:
    worker = at()
    assert only(worker(job(1, encoding="fp32")), c.PrepareUpdate) == c.PrepareUpdate(1, WHOLE_BYTES)


def test_top_k_is_for_the_way_up_only() -> None:
    worker = at()
    assert only(worker(job(1, encoding="topk")), c.PrepareUpdate) == c.PrepareUpdate(1, UPDATE_BYTES)


def test_a_task_waits_for_the_update_that_is_on_its_way() -> None:
    worker = at()
    announce(worker, 1)
    piece(worker, 0, of=1)
    assert sent(worker(job(1))) == ["TaskAck"]
    assert worker.session.state == "pulling"
    piece(worker, 1, of=1)
    assert piece(worker, 2, of=1)[-1] == c.Train(job(1), (1,))


def test_a_log_that_does_not_go_back_so_far_means_the_whole_version() -> None:
    worker = at()
    worker(job(2))
    for index in range(3):
        piece(worker, index, of=1)
    commands = worker(messages.Error(code="UPDATE_GONE", text="not served any more"))
    assert commands[0] == c.ForgetUpdates(2)
    assert pulled(commands) == ("snapshot", "run-1", 2, [0, 1])
    assert not has(piece(worker, 0, of=2), c.StoreChunk)
    assert fetch_whole(worker, 2)[-1] == c.Train(job(2))


def test_an_update_that_is_gone_and_that_nobody_waits_for_changes_nothing() -> None:
    worker = at()
    gone = messages.Error(code="UPDATE_GONE", text="not served any more")
    assert worker(gone) == []
    worker(job(0))
    announce(worker, 1)
    assert worker(gone) == []
    assert worker.session.state == "training"
    assert piece(worker, 0, of=1) == []
    worker.closed(0)
    worker(e.TrainerStopped(job(0).ref.lease))
    assert pulled(worker(job(1))) == ("update", "run-1", 1, [0, 1])


def test_an_update_made_anew_is_fetched_again_and_what_follows_it_is_void() -> None:
    worker = at()
    fetch(worker, 1, 2)
    anew = "e" * 32
    commands = announce(worker, 1, digest=anew)
    assert commands[0] == c.PrepareUpdate(1, UPDATE_BYTES)
    assert pulled(commands) == ("update", "run-1", 1, [0, 1])
    worker(job(2))
    for index in range(3):
        commands = piece(worker, index, of=1, digest=anew)
    assert pulled(commands) == ("update", "run-1", 2, [0, 1])
    for index in range(3):
        commands = piece(worker, index, of=2)
    assert commands[-1] == c.Train(job(2), (1, 2))


def test_an_update_made_anew_while_it_comes_begins_again() -> None:
    worker, anew = at(), "e" * 32
    announce(worker, 1)
    piece(worker, 0, of=1)
    assert announce(worker, 1) == []
    commands = announce(worker, 1, digest=anew)
    assert commands[0] == c.PrepareUpdate(1, UPDATE_BYTES)
    assert pulled(commands) == ("update", "run-1", 1, [0, 1])
    fetch(worker, 1, digest=anew)
    assert worker(job(1))[-1] == c.Train(job(1), (1,))


@pytest.mark.parametrize("asked_by_task", [True, False])
def test_chunks_of_an_update_made_anew_begin_it_again(asked_by_task: bool) -> None:
    worker, anew = at(), "e" * 32
    if asked_by_task:
        worker(job(1))
    else:
        announce(worker, 1)
    piece(worker, 0, of=1)
    commands = piece(worker, 1, of=1, digest=anew)
    assert commands[0] == c.PrepareUpdate(1, UPDATE_BYTES)
    assert pulled(commands) == ("update", "run-1", 1, [0, 1])
    for index in range(3):
        commands = piece(worker, index, of=1, digest=anew)
    assert has(commands, c.Train) == asked_by_task


def test_a_late_chunk_of_something_else_does_not_name_the_update() -> None:
    worker = at()
    worker(job(1))
    assert not has(piece(worker, 0, of=9), c.StoreChunk)
    assert not has(piece(worker, 0, of=1, run="run-2", digest="e" * 32), c.StoreChunk)
    assert not has(piece(worker, 0, of=1, what="snapshot"), c.StoreChunk)
    assert has(piece(worker, 0, of=1), c.StoreChunk)
    assert has(piece(worker, 1, of=1), c.StoreChunk)
    assert piece(worker, 2, of=1)[-1] == c.Train(job(1), (1,))


@pytest.mark.parametrize(
    "start, version, run",
    [(anchor(), 1, "run-2"), (anchor(), 2, "run-1"), (anchor(3), 3, "run-1"), (e.Anchor("", -1, ""), 0, "run-1")],
)
def test_an_update_that_does_not_follow_is_not_fetched(start: e.Anchor, version: int, run: str) -> None:
    assert announce(at(anchor=start), version, run=run) == []


def test_no_update_is_fetched_while_a_whole_version_comes() -> None:
    worker = at(3)
    worker(job(1))
    assert announce(worker, 4) == []
    assert fetch_whole(worker, 1)[-1] == c.Train(job(1))


def test_after_a_new_session_the_update_goes_on_with_what_is_missing() -> None:
    worker = at()
    announce(worker, 1)
    piece(worker, 1, of=1)
    worker(e.LinkDown())
    assert sent(worker.wait(9_000)) == []
    worker(e.LinkUp())
    assert pulled(worker.welcome(term=2)) == ("update", "run-1", 1, [0, 2])
    piece(worker, 0, of=1)
    piece(worker, 2, of=1)
    assert worker(job(1, term=2))[-1] == c.Train(job(1, term=2), (1,))


def test_other_chunk_sizes_after_a_new_session_begin_the_update_again() -> None:
    worker = at()
    announce(worker, 1)
    piece(worker, 0, of=1)
    worker(e.LinkDown())
    worker(e.LinkUp())
    commands = worker.welcome(term=2, chunk_bytes=2 * CHUNK_BYTES)
    assert only(commands, c.PrepareUpdate) == c.PrepareUpdate(1, UPDATE_BYTES)
    assert pulled(commands) == ("update", "run-1", 1, [0, 1])
    piece(worker, 0, of=1, chunk_bytes=2 * CHUNK_BYTES)
    piece(worker, 1, of=1, chunk_bytes=2 * CHUNK_BYTES)
    assert worker(job(1, term=2))[-1] == c.Train(job(1, term=2), (1,))


def test_an_update_goes_on_when_its_task_is_dropped_and_a_whole_version_does_not() -> None:
    worker = at()
    worker(job(1))
    worker(messages.Cancel(term=1, ref=job(1).ref, reason=""))
    for index in range(3):
        assert has(piece(worker, index, of=1), c.StoreChunk)
    assert worker.session.state == "idle"
    assert worker(job(1, shard=1))[-1] == c.Train(job(1, shard=1), (1,))
    worker(messages.Cancel(term=1, ref=job(1, shard=1).ref, reason=""))
    worker(e.TrainerStopped(job(1, shard=1).ref.lease))
    worker(job(7))
    worker(messages.Cancel(term=1, ref=job(7).ref, reason=""))
    assert piece(worker, 0, of=7, what="snapshot") == []


def test_a_later_round_goes_on_with_the_update_of_the_one_before() -> None:
    worker = at()
    worker(job(1))
    piece(worker, 0, of=1)
    assert sent(worker(job(2))) == ["TaskAck"]
    piece(worker, 1, of=1)
    assert pulled(piece(worker, 2, of=1)) == ("update", "run-1", 2, [0, 1])


def test_an_update_that_does_not_come_is_asked_for_a_minute_long_and_then_left() -> None:
    worker = at()
    announce(worker, 1)
    piece(worker, 1, of=1)
    assert pulled(worker.wait(10_000, keep=True)) == ("update", "run-1", 1, [0, 2])
    assert set(sent(worker.wait(60_000, keep=True))) == {"Pull"}
    assert sent(worker.wait(60_000, keep=True)) == []
    assert pulled(worker(job(1))) == ("update", "run-1", 1, [0, 1])
    refused = message(worker.wait(75_000, keep=True), messages.TaskRefuse)
    assert (refused.reason, refused.busy) == ("the master sent no chunk of the anchor in 60 s", True)


def test_a_task_that_waits_for_its_update_is_told_to_wait_by_the_master() -> None:
    worker = at()
    worker(job(1))
    for _ in range(10):
        assert "TaskRefuse" not in sent(worker.wait(30_000, keep=True))
        worker.credit(of=job(1).ref, wait_ms=2_000)
    assert piece(worker, 0, of=1)[0] == c.StoreChunk("update", 1, 0)


def test_the_trainer_gets_updates_only_when_it_is_free() -> None:
    worker = at()
    worker(job(0))
    worker.closed(0)
    fetch(worker, 1)
    assert sent(worker(job(1))) == ["TaskAck"]
    assert worker(e.TrainerStopped(job(0).ref.lease)) == [c.Train(job(1), (1,))]


def test_of_a_pushed_update_the_first_window_is_not_asked_for_and_silence_asks_for_all() -> None:
    worker = at()
    update = messages.Update(term=1, run="run-1", version=1, bytes=UPDATE_BYTES, digest=update_digest(1), pushed=True)
    assert worker(update) == [c.PrepareUpdate(1, UPDATE_BYTES)]
    assert pulled(piece(worker, 0, of=1)) == ("update", "run-1", 1, [2])
    assert pulled(worker.wait(11_000, keep=True)) == ("update", "run-1", 1, [1, 2])
    piece(worker, 1, of=1)
    piece(worker, 2, of=1)
    assert worker(job(1))[-1] == c.Train(job(1), (1,))
