"""A full or broken disk: the worker says so, takes no work, tries again later and later. Events in, commands out."""

from services.common.protocol import messages
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.tests.driver import GOOD, PARAMETERS, Driver, done, has, message, only, ref, said, sent, task

FULL = e.StorageFailed("this PC's disk is full; free some space")


def paused() -> Driver:
    """A worker that has just met a full disk while it pulled."""
    worker = Driver()
    worker.join()
    worker(task())
    worker(FULL)
    return worker


def test_a_full_disk_hands_the_task_back_after_it_has_said_that_no_other_is_wanted() -> None:
    worker = Driver()
    worker.join()
    worker(task())
    commands = worker(FULL)
    assert sent(commands) == ["Drain", "TaskRefuse"]
    drain = message(commands, messages.Drain)
    assert (drain.reason, drain.reason_said) == (FULL.text, messages.because("DISK_FAILED", why=FULL.text))
    refused = message(commands, messages.TaskRefuse)
    assert (refused.reason, refused.busy) == (FULL.text, True)
    assert said(commands).splitlines()[0] == f"{FULL.text}; trying again in 10 s"
    beat = message(worker.wait(2_000, keep=True)[:1], messages.Heartbeat)
    assert (beat.agent, beat.owner) == ("paused", FULL.text)


def test_no_task_is_taken_until_the_disk_works() -> None:
    worker = paused()
    refused = message(worker(task(ref(1))), messages.TaskRefuse)
    assert (refused.reason, refused.busy) == (FULL.text, True)
    assert not has(worker.wait(9_500, keep=True), c.CheckStorage)
    assert only(worker.wait(500, keep=True), c.CheckStorage).free_bytes == 5 * 4 * PARAMETERS
    assert "works again" in said(worker(e.StorageWorks()))
    beats = [one.message for one in worker.wait(2_000, keep=True) if isinstance(one, c.Send)]
    assert [one.agent for one in beats if isinstance(one, messages.Heartbeat)] == ["idle"]
    assert sent(worker(task(ref(2)))) == ["TaskAck", "Pull"]


def test_the_waits_double_up_to_five_minutes() -> None:
    worker = paused()
    waits = []
    for _ in range(7):
        started = worker.now_ms
        while not has(worker.wait(500, keep=True), c.CheckStorage):
            pass
        waits.append((worker.now_ms - started) // 1000)
        assert sent(worker(FULL)) == []
    assert waits == [10, 20, 40, 80, 160, 300, 300]


def test_a_disk_that_only_seems_to_work_waits_longer_each_time_until_a_task_is_done() -> None:
    worker = paused()
    for wait_s in (20, 40):
        while not has(worker.wait(500, keep=True), c.CheckStorage):
            pass
        worker(e.StorageWorks())
        worker(task())
        assert f"trying again in {wait_s} s" in said(worker(FULL))
    while not has(worker.wait(500, keep=True), c.CheckStorage):
        pass
    worker(e.StorageWorks())
    worker.finish()
    worker(task(ref(1), anchor_digest=GOOD))
    assert "trying again in 10 s" in said(worker(FULL))


def test_one_trouble_with_several_failures_counts_once() -> None:
    worker = paused()
    assert worker(FULL) == []
    assert has(worker.wait(10_000, keep=True), c.CheckStorage)


def test_a_note_that_cannot_be_written_pauses_but_the_delta_is_still_offered() -> None:
    worker = Driver()
    worker.join()
    commands = worker.finish()
    assert sent(commands) == ["DeltaBegin"]
    assert sent(worker(e.StorageFailed("full", ref().lease))) == ["Drain"]
    assert [one.ref for one in worker.session.held] == [ref()]
    assert has(worker.credit(0, 1), c.SendChunks)


def test_a_failure_of_another_lease_leaves_the_task_in_hand_alone() -> None:
    worker = Driver()
    worker.join()
    worker.train()
    assert sent(worker(e.StorageFailed("full", "another"))) == ["Drain"]
    assert worker.session.state == "training"
    assert sent(worker(done())) == ["DeltaBegin"]


def test_a_delta_that_the_trainer_could_not_write_is_the_same_trouble() -> None:
    worker = Driver()
    worker.join()
    worker.train()
    assert sent(worker(e.StorageFailed("full", ref().lease))) == ["Drain", "TaskRefuse"]
    assert not has(worker.wait(5_000, keep=True), c.StopTrainer)
    worker.wait(10_000, keep=True)
    worker(e.StorageWorks())
    assert sent(worker(task(ref(1)))) == ["TaskAck", "Pull"]  # the anchor may be what failed
    assert has(worker.train(ref(2)), c.Train)


def test_without_a_link_the_pause_is_said_after_the_next_welcome() -> None:
    worker = Driver()
    worker.join()
    worker.train()
    worker(e.LinkDown())
    assert "Drain" not in sent(worker(e.StorageFailed("full", ref().lease)))
    worker(e.LinkUp())
    assert "Drain" in sent(worker.welcome())


def test_a_trainer_that_is_ready_does_not_end_the_pause_of_the_disk() -> None:
    worker = paused()
    worker(e.TrainerExited(messages.said("gone")))
    worker(e.TrainerReady(1.0))
    assert message(worker(task(ref(1))), messages.TaskRefuse).reason == FULL.text
