"""One task: taken or handed back, its anchor pulled, trained, cancelled. Events in, commands out."""

import pytest

from services.common.protocol import messages
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.core import limits
from services.worker.tests.driver import (
    ANCHOR,
    BAD,
    CHUNK_BYTES,
    GOOD,
    PARAMETERS,
    Driver,
    delta,
    done,
    has,
    message,
    only,
    ref,
    said,
    sent,
    task,
)


def test_a_task_pulls_its_anchor_in_windows_then_trains() -> None:
    worker = Driver()
    worker.join()
    commands = worker(task())
    assert sent(commands) == ["TaskAck", "Pull"]
    assert only(commands, c.PrepareAnchor).total_bytes == PARAMETERS * 4
    assert message(commands, messages.Pull).want == [0, 1]
    assert worker.session.state == "pulling"
    commands = worker.chunk(1)
    assert only(commands, c.StoreChunk).offset == CHUNK_BYTES
    assert message(commands, messages.Pull).want == [2]
    assert worker.chunk(1) == []
    assert sent(worker.chunk(0)) == []
    assert [type(one) for one in worker.chunk(2)] == [c.StoreChunk, c.CheckAnchor]
    assert worker(e.AnchorChecked(GOOD)) == [c.NoteAnchor(ANCHOR), c.ForgetUpdates(0), c.Train(task())]
    assert worker.session.state == "training"


def test_an_anchor_that_is_here_is_not_pulled() -> None:
    worker = Driver(anchor=ANCHOR)
    worker.join()
    commands = worker(task())
    assert sent(commands) == ["TaskAck"]
    assert has(commands, c.Train)


def test_a_late_chunk_is_asked_for_again_and_after_a_minute_the_task_goes_back() -> None:
    worker = Driver()
    worker.join()
    worker(task())
    worker.chunk(1)
    assert message(worker.wait(10_000, keep=True), messages.Pull).want == [0, 2]
    commands = worker.wait(60_000, keep=True)
    assert "sent no chunk of the anchor in 60 s" in message(commands, messages.TaskRefuse).reason
    assert worker.session.state == "idle"


def test_no_place_for_the_download_waits_as_long_as_told() -> None:
    worker = Driver()
    worker.join()
    worker(task())
    worker.credit(wait_ms=20_000)
    assert sent(worker.wait(19_000, keep=True)) == []
    assert sent(worker.wait(1_500, keep=True)) == ["Pull"]


def test_a_download_that_is_told_to_wait_is_never_handed_back() -> None:
    worker = Driver()
    worker.join()
    worker(task())
    commands: list[c.Command] = []
    for _ in range(100):
        commands += worker.wait(2_000, keep=True)
        commands += worker.credit(wait_ms=2_000)
    assert sent(commands) == []
    assert said(commands).splitlines()[0] == "round 0 shard 0 of run run-1: the master serves others first; waiting"
    assert len(said(commands).splitlines()) == 4  # once a minute
    assert worker.session.state == "pulling"
    assert has(worker.chunk(0), c.StoreChunk)


def test_each_word_to_wait_starts_the_silence_anew() -> None:
    worker = Driver()
    worker.join()
    worker(task())
    for _ in range(3):
        assert "TaskRefuse" not in sent(worker.wait(60_000, keep=True))
        worker.credit(wait_ms=1)
    assert sent(worker.wait(4_500, keep=True)) == []
    assert sent(worker.wait(500, keep=True)) == ["Pull"]
    assert "sent no chunk" in message(worker.wait(70_000, keep=True), messages.TaskRefuse).reason


def test_a_word_to_wait_counts_by_run_and_version_whatever_the_lease_is() -> None:
    worker = Driver()
    worker.join()
    worker(task())
    for _ in range(5):
        worker.wait(30_000, keep=True)
        worker.credit(of=ref(lease="another"), wait_ms=2_000)
    assert worker.session.state == "pulling"
    worker.wait(60_000, keep=True)
    worker.credit(of=ref(3), wait_ms=2_000)
    assert "TaskRefuse" in sent(worker.wait(20_000, keep=True))


def test_the_wait_of_a_held_delta_is_not_one_of_the_download() -> None:
    worker = Driver(held=(delta(ref(lease="old")),))
    worker.join()
    worker(task())
    for _ in range(6):
        worker.wait(5_000, keep=True)
        worker.credit(of=ref(lease="old"), wait_ms=60_000)
    assert "TaskRefuse" in sent(worker.wait(45_000, keep=True))


def test_a_wrong_digest_is_pulled_again_three_times_in_all() -> None:
    worker = Driver()
    worker.join()
    worker(task())
    for attempt in (2, 3):
        worker.pull_all()
        commands = worker(e.AnchorChecked(BAD))
        assert f"download {attempt} of 3" in said(commands)
        assert message(commands, messages.Pull).want == [0, 1]
    worker.pull_all()
    commands = worker(e.AnchorChecked(BAD))
    assert "also after 3 downloads" in message(commands, messages.TaskRefuse).reason


@pytest.mark.parametrize("digest, version, index", [(BAD, 0, 0), (GOOD, 9, 0)])
def test_a_chunk_of_something_else_is_not_stored(digest: str, version: int, index: int) -> None:
    worker = Driver()
    worker.join()
    worker(task())
    assert not has(worker.chunk(index, digest=digest, version=version), c.StoreChunk)


def test_the_download_goes_on_after_a_new_session() -> None:
    worker = Driver()
    worker.join()
    worker(task())
    worker.chunk(0)
    worker(e.LinkDown())
    assert sent(worker.wait(9_000)) == []
    worker(e.LinkUp())
    assert message(worker.welcome(term=2), messages.Pull).want == [1, 2]


def test_other_chunk_sizes_after_a_new_session_begin_the_download_again() -> None:
    worker = Driver()
    worker.join()
    worker(task())
    worker.chunk(0)
    worker(e.LinkDown())
    worker(e.LinkUp())
    commands = worker.welcome(term=2, chunk_bytes=2 * CHUNK_BYTES)
    assert message(commands, messages.Pull).want == [0, 1]


def test_the_same_task_again_is_only_acknowledged() -> None:
    worker = Driver()
    worker.join()
    worker(task())
    assert sent(worker(task())) == ["TaskAck"]
    worker.pull_all()
    worker(e.AnchorChecked(GOOD))
    assert worker(task()) == [c.Send(messages.TaskAck(term=1, ref=ref()))]
    worker(done())
    assert worker(task()) == [c.Send(messages.TaskAck(term=1, ref=ref()))]


def test_a_later_round_makes_the_old_task_stale() -> None:
    worker = Driver()
    worker.join()
    worker.train()
    commands = worker(task(ref(1), anchor_digest=BAD))
    assert only(commands, c.StopTraining).lease == ref().lease
    assert message(commands, messages.TaskAck).ref == ref(1)


@pytest.mark.parametrize("other", [ref(0, shard=1), ref(5, run="run-2")])
def test_any_other_task_is_handed_back_while_busy(other: messages.TaskRef) -> None:
    worker = Driver()
    worker.join()
    worker.train()
    refused = message(worker(task(other)), messages.TaskRefuse)
    assert (refused.ref, refused.reason) == (other, "busy with round 0 shard 0 of run run-1")
    assert refused.busy
    assert worker.session.state == "training"


@pytest.mark.parametrize("inner, mib", [({"name": "sgd"}, 26), ({"name": "momentum"}, 26), ({"name": "adamw"}, 41)])
def test_a_task_that_does_not_fit_into_memory_is_handed_back(inner: dict[str, str], mib: int) -> None:
    worker = Driver(memory_mib=1)
    worker.join()
    refused = message(worker(task(n_parameters=1_000_000, inner=inner)), messages.TaskRefuse)
    assert refused.reason == f"1000000 parameters need {mib} MiB of memory, this PC has 1"
    assert not refused.busy


def test_too_many_held_deltas_are_a_reason_too() -> None:
    worker = Driver(held=tuple(delta(ref(number)) for number in range(8)))
    worker.join()
    assert "holds 8 deltas" in message(worker(task(ref(9))), messages.TaskRefuse).reason


def test_cancel_stops_the_trainer_and_a_late_delta_of_it_is_removed() -> None:
    worker = Driver()
    worker.join()
    worker.train()
    commands = worker(messages.Cancel(term=1, ref=ref(), reason="the run was stopped"))
    assert only(commands, c.StopTraining).lease == ref().lease
    assert worker.session.state == "idle"
    assert worker(done()) == [c.ForgetDelta(ref().lease)]


def test_a_round_that_closed_without_the_task_stops_it() -> None:
    worker = Driver()
    worker.join()
    worker.train()
    assert has(worker.closed(0), c.StopTraining)
    assert worker.session.state == "idle"


def test_progress_reaches_the_master_once_a_second() -> None:
    worker = Driver()
    worker.join()
    worker.train()
    kinds = []
    for step in range(10):
        worker.now_ms += 200
        kinds += sent(worker(e.TrainerProgress(ref().lease, step, 7, None, 8)))
    assert kinds == ["Progress", "Progress"]
    assert worker(e.TrainerProgress("other", 1, 7, None, 8)) == []


def test_training_goes_on_without_a_link_and_is_offered_after_the_next_welcome() -> None:
    worker = Driver()
    worker.join()
    worker.train()
    worker(e.LinkDown())
    commands = worker(done())
    assert only(commands, c.KeepDelta).delta.ref == ref()
    assert sent(commands) == []
    worker(e.LinkUp())
    assert sent(worker.welcome()) == ["DeltaBegin"]


def test_the_death_of_the_trainer_hands_the_task_back_and_starts_it_again() -> None:
    worker = Driver()
    worker.join()
    worker.train()
    commands = worker(e.TrainerExited(messages.said("the trainer was killed")))
    refused = message(commands, messages.TaskRefuse)
    assert (refused.reason, refused.busy) == ("the trainer was killed; starting it again in 1 s", False)
    assert has(worker.wait(1_000, keep=True), c.StartTrainer)
    worker(e.TrainerReady(50.0))
    assert has(worker(task(ref(1), anchor_digest=GOOD)), c.Train)


def test_a_task_waits_for_a_trainer_that_starts() -> None:
    worker = Driver(anchor=ANCHOR)
    worker.join()
    worker(e.TrainerExited(messages.said("gone")))
    assert not has(worker(task()), c.Train)
    assert worker(e.TrainerReady(50.0))[-1] == c.Train(task())
    worker(e.TrainerExited(messages.said("gone")))
    worker(task(ref(1)))
    commands = worker.wait(61_000, keep=True)
    assert message(commands, messages.TaskRefuse).reason == "the trainer was not free for it in 60 s"


def test_a_trainer_that_dies_three_times_in_a_row_pauses_the_worker() -> None:
    worker = Driver(anchor=ANCHOR)
    worker.join()
    for death in range(3):
        worker(task(ref(death)))
        commands = worker(e.TrainerExited(messages.said("gone")))
        assert "TaskRefuse" in sent(commands)
        assert ("Drain" in sent(commands)) == (death == 2)
        if death < 2:
            worker.wait(5_000, keep=True)
            worker(e.TrainerReady(50.0))
    assert message(worker(task(ref(7))), messages.TaskRefuse).reason == "gone, 3 times in a row"
    beat = next(one for one in worker.wait(2_000, keep=True) if isinstance(one, c.Send))
    assert isinstance(beat.message, messages.Heartbeat)
    assert (beat.message.agent, beat.message.owner) == ("paused", "gone, 3 times in a row")
    assert not has(worker.wait(50_000, keep=True), c.StartTrainer)
    assert has(worker.wait(10_000, keep=True), c.StartTrainer)
    worker(e.TrainerReady(50.0))
    assert has(worker(task(ref(8))), c.Train)


@pytest.mark.parametrize(
    "event, reason",
    [
        (e.TrainerFailed(ref().lease, "unknown data set"), "unknown data set"),
        (e.StorageFailed("the disk is full", ref().lease), "the disk is full"),
        (e.TrainerDone(ref().lease, 8, BAD, 1, 1, 1, None, 1), "the delta has 8 bytes"),
    ],
)
def test_what_goes_wrong_here_hands_the_task_back(event: e.Event, reason: str) -> None:
    worker = Driver()
    worker.join()
    worker.train()
    assert reason in message(worker(event), messages.TaskRefuse).reason
    assert worker.session.state == "idle"


def test_units_accepted_make_room_for_more_but_shards_do_not() -> None:
    worker = Driver()
    worker.join()
    for number in range(limits.HELD_MAX):
        worker.finish(ref(number))
        worker.ack("accepted", ref(number))
    full = worker(task(ref(limits.HELD_MAX)))
    assert message(full, messages.TaskRefuse).busy
    taken = worker(task(ref(limits.HELD_MAX), fresh=True))
    assert has(taken, c.ForgetDelta)
    assert only(taken, c.ForgetDelta) == c.ForgetDelta(ref(0).lease, counted=False)
    assert message(taken, messages.TaskAck).ref == ref(limits.HELD_MAX)
