"""What goes wrong with a replica on its way to a version: wrong numbers, a dead trainer, a full disk, another run."""

import pytest

from services.common.protocol import messages
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.tests.driver import CHUNK_BYTES, has, message, only, said, sent
from services.worker.tests.updates import (
    anchor,
    announce,
    applying,
    at,
    fetch,
    fetch_whole,
    job,
    piece,
    pulled,
    version_digest,
)


def test_an_anchor_that_comes_out_wrong_is_told_and_pulled_whole() -> None:
    worker = applying()
    commands = worker(e.AnchorWrong(job(1).ref.lease, "it has another digest"))
    told = message(commands, messages.Mismatch)
    assert (told.term, told.ref, told.reason) == (1, job(1).ref, "it has another digest")
    assert sent(commands) == ["Mismatch", "Pull"]
    assert said(commands) == "round 1 shard 0 of run run-1: it has another digest; pulling the whole version"
    assert pulled(commands) == ("snapshot", "run-1", 1, [0, 1])
    assert worker.session.state == "pulling"
    assert fetch_whole(worker, 1) == [c.NoteAnchor(anchor(1)), c.ForgetUpdates(1), c.Train(job(1))]
    assert not has(worker.wait(59_000, keep=True), c.StopTrainer)


def test_a_wrong_anchor_of_a_cancelled_task_is_not_told() -> None:
    worker = applying()
    worker(messages.Cancel(term=1, ref=job(1).ref, reason=""))
    assert worker(e.AnchorWrong(job(1).ref.lease, "why")) == []
    assert announce(worker, 2) == []
    assert pulled(worker(job(1, shard=1))) == ("snapshot", "run-1", 1, [0, 1])


def test_a_task_that_waited_for_the_trainer_pulls_the_whole_when_the_anchor_was_wrong() -> None:
    worker = applying()
    worker(messages.Cancel(term=1, ref=job(1).ref, reason=""))
    assert sent(worker(job(1, shard=1))) == ["TaskAck"]
    commands = worker(e.AnchorWrong(job(1).ref.lease, "why"))
    assert not has(commands, c.Train)
    assert pulled(commands) == ("snapshot", "run-1", 1, [0, 1])
    for index in range(5):
        worker.wait(15_000, keep=True)
        assert has(piece(worker, index, of=1, what="snapshot"), c.StoreChunk)
    assert fetch_whole(worker, 1)[-1] == c.Train(job(1, shard=1))


def test_a_task_whose_update_still_comes_pulls_the_whole_when_the_anchor_was_wrong() -> None:
    worker = applying()
    worker(messages.Cancel(term=1, ref=job(1).ref, reason=""))
    assert pulled(worker(job(2))) == ("update", "run-1", 2, [0, 1])
    assert pulled(worker(e.AnchorWrong(job(1).ref.lease, "why"))) == ("snapshot", "run-1", 2, [0, 1])
    assert fetch_whole(worker, 2)[-1] == c.Train(job(2))


def test_a_whole_version_that_comes_already_goes_on_when_the_anchor_was_wrong() -> None:
    worker = applying()
    worker(messages.Cancel(term=1, ref=job(1).ref, reason=""))
    assert pulled(worker(job(7))) == ("snapshot", "run-1", 7, [0, 1])
    piece(worker, 0, of=7, what="snapshot")
    assert worker(e.AnchorWrong(job(1).ref.lease, "why")) == []
    assert fetch_whole(worker, 7)[-1] == c.Train(job(7))


@pytest.mark.parametrize("stands_still", [True, False])
@pytest.mark.parametrize("left", ["before", "after", "neither"])
def test_a_trainer_that_dies_while_it_applies_updates_leaves_the_old_anchor_or_the_new(
    left: str, stands_still: bool
) -> None:
    worker = applying(2)
    commands = worker.wait(61_000, keep=True) if stands_still else worker(e.TrainerExited(messages.said("killed")))
    kinds = [type(one) for one in commands]
    assert kinds.count(c.CheckAnchor) == 1
    assert not stands_still or kinds.index(c.StopTrainer) < kinds.index(c.CheckAnchor)
    assert "TaskRefuse" in sent(commands)
    found = {"before": version_digest(0), "after": version_digest(2), "neither": "f" * 32}[left]
    moved = [c.NoteAnchor(anchor(2)), c.ForgetUpdates(2)] if left == "after" else []
    assert worker(e.AnchorChecked(found)) == moved
    worker(e.TrainerReady(1.0))
    commands = worker(job(2, shard=1))
    again = job(2, shard=1)
    if left == "neither":
        assert pulled(commands) == ("snapshot", "run-1", 2, [0, 1])
    else:
        assert commands[-1] == c.Train(again, (1, 2) if left == "before" else ())


@pytest.mark.parametrize("found", [version_digest(0), "f" * 32])
def test_a_task_that_waits_for_an_update_meanwhile_gets_it_or_the_whole(found: str) -> None:
    worker = applying()
    worker(messages.Cancel(term=1, ref=job(1).ref, reason=""))
    assert pulled(worker(job(2))) == ("update", "run-1", 2, [0, 1])
    assert sent(worker(e.TrainerExited(messages.said("killed")))) == []
    commands = worker(e.AnchorChecked(found))
    worker(e.TrainerReady(1.0))
    if found == version_digest(0):
        assert commands == []
        assert fetch(worker, 2)[-1] == c.Train(job(2), (1, 2))
    else:
        assert pulled(commands) == ("snapshot", "run-1", 2, [0, 1])
        assert fetch_whole(worker, 2)[-1] == c.Train(job(2))


def test_a_trainer_that_dies_later_leaves_the_anchor_alone() -> None:
    worker = applying()
    worker(e.Anchored(job(1).ref.lease))
    assert not has(worker(e.TrainerExited(messages.said("killed"))), c.CheckAnchor)


FULL = e.StorageFailed("the disk is full")


def test_an_update_that_cannot_be_stored_costs_no_task_and_is_fetched_again() -> None:
    worker = at()
    worker(job(0))
    announce(worker, 1)
    piece(worker, 0, of=1)
    assert sent(worker(FULL)) == ["Drain"]
    assert worker.session.state == "training"
    assert piece(worker, 1, of=1) == []
    worker(e.StorageWorks())
    worker.closed(0)
    worker(e.TrainerStopped(job(0).ref.lease))
    assert pulled(worker(job(1))) == ("update", "run-1", 1, [0, 1])


def test_an_update_that_a_task_waits_for_and_that_cannot_be_stored_is_never_taken_for_whole() -> None:
    worker = at()
    worker(job(1))
    piece(worker, 0, of=1)
    assert sent(worker(FULL)) == ["Drain", "TaskRefuse"]
    assert [piece(worker, index, of=1) for index in (1, 2)] == [[], []]
    worker(e.StorageWorks())
    assert pulled(worker(job(1, shard=1))) == ("snapshot", "run-1", 1, [0, 1])


def test_nothing_of_an_update_is_asked_for_when_the_anchor_is_void() -> None:
    worker = at()
    worker(job(0))
    announce(worker, 1)
    worker(e.TrainerFailed(job(0).ref.lease, "why"))
    worker(e.LinkDown())
    worker(e.LinkUp())
    assert "Pull" not in sent(worker.welcome(term=2, chunk_bytes=2 * CHUNK_BYTES))
    assert piece(worker, 0, of=1, digest="e" * 32) == []
    assert sent(worker.wait(60_000, keep=True)) == []


def test_updates_of_another_run_are_void_although_its_version_is_the_same() -> None:
    worker = at()
    fetch(worker, 1)
    announce(worker, 2)
    other = job(0, run="run-2")
    commands = worker(other)
    assert commands[-1] == c.Train(other)
    assert only(commands, c.NoteAnchor).anchor == anchor(0, "run-2")
    assert not has(piece(worker, 0, of=2), c.StoreChunk)
    worker.closed(0, run="run-2")
    worker(e.TrainerStopped(other.ref.lease))
    assert pulled(worker(job(1, run="run-2"))) == ("update", "run-2", 1, [0, 1])


def test_an_update_that_changes_nothing_counts_as_applied() -> None:
    worker = at()
    fetch(worker, 1)
    same = job(1, anchor_digest=version_digest(0))
    commands = worker(same)
    assert commands[-1] == c.Train(same)
    assert only(commands, c.NoteAnchor).anchor == e.Anchor("run-1", 1, version_digest(0))
    worker.closed(1)
    worker(e.TrainerStopped(same.ref.lease))
    assert pulled(worker(job(2))) == ("update", "run-1", 2, [0, 1])


def test_an_update_made_anew_does_not_touch_the_one_that_the_trainer_gets() -> None:
    worker = at()
    worker(job(0))
    worker.closed(0)
    fetch(worker, 1)
    worker(job(1))
    assert announce(worker, 1, digest="e" * 32) == []
    assert worker(e.TrainerStopped(job(0).ref.lease)) == [c.Train(job(1), (1,))]
    assert announce(worker, 1, digest="e" * 32) == []
    worker(messages.Cancel(term=1, ref=job(1).ref, reason=""))
    assert announce(worker, 1, digest="e" * 32) == []
    assert worker(e.Anchored(job(1).ref.lease)) == [c.NoteAnchor(anchor(1)), c.ForgetUpdates(1)]


def test_a_task_that_the_trainer_drops_unasked_goes_back() -> None:
    worker = at()
    worker(job(0))
    refused = message(worker(e.TrainerStopped(job(0).ref.lease)), messages.TaskRefuse)
    assert (refused.reason, refused.busy) == ("the trainer stopped it by itself", True)
