"""The trainer process as the session sees it: it must say ready, get on, and end what it is told to end."""

import pytest

from services.common.protocol import messages
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.tests.driver import ANCHOR, Driver, done, has, message, ref, said, sent, task


def progress(step: int, of: messages.TaskRef | None = None) -> e.TrainerProgress:
    """So many steps of a task are done."""
    return e.TrainerProgress((of or ref()).lease, step, 7, 0.5, 8 * step)


def training() -> Driver:
    """A worker that has just given its trainer a task."""
    worker = Driver()
    worker.join()
    assert has(worker.train(), c.Train)
    return worker


@pytest.mark.parametrize("steps", [(), (1,), (1, 2)])
def test_a_trainer_without_progress_is_ended_and_the_task_goes_back(steps: tuple[int, ...]) -> None:
    worker = training()
    for step in steps:
        worker.wait(1_000, keep=True)
        worker(progress(step))
    assert not has(worker.wait(59_500, keep=True), c.StopTrainer)
    commands = worker.wait(1_000, keep=True)
    assert has(commands, c.StopTrainer)
    reason = message(commands, messages.TaskRefuse).reason
    assert reason == "the trainer made no progress for 60 s; starting it again in 1 s"
    assert worker.session.state == "idle"
    assert has(worker.wait(1_000, keep=True), c.StartTrainer)
    worker(e.TrainerReady(50.0))
    assert has(worker(task(ref(1))), c.Train)


def test_slow_steps_get_ten_times_their_own_time() -> None:
    worker = training()
    for step in (1, 2):
        worker.wait(30_000, keep=True)
        worker(progress(step))
    assert not has(worker.wait(299_000, keep=True), c.StopTrainer)
    assert has(worker.wait(2_000, keep=True), c.StopTrainer)


def test_a_large_model_gets_time_for_its_files() -> None:
    worker = Driver(anchor=ANCHOR, memory_mib=100_000)
    worker.join()
    worker(task(n_parameters=50_000_000))
    assert not has(worker.wait(259_000, keep=True), c.StopTrainer)
    assert has(worker.wait(2_000, keep=True), c.StopTrainer)


def test_a_trainer_that_freezes_again_and_again_pauses_the_worker() -> None:
    worker = training()
    for number in (1, 2):
        worker.wait(61_000, keep=True)
        worker.wait(5_000, keep=True)
        worker(e.TrainerReady(50.0))
        worker(task(ref(number)))
    commands = worker.wait(61_000, keep=True)
    assert sent(commands) == ["Drain", "TaskRefuse"]
    assert "no progress for 60 s, 3 times in a row" in message(commands, messages.Drain).reason


def test_training_and_its_deadline_go_on_without_a_link() -> None:
    worker = training()
    worker(e.LinkDown())
    assert has(worker.wait(61_000), c.StopTrainer)
    assert worker.session.state in ("connecting", "joining")


def test_a_pc_that_slept_does_not_take_its_trainer_for_frozen() -> None:
    worker = training()
    worker.wait(1_000, keep=True)
    worker.now_ms += 3_600_000
    assert not has(worker(e.Tick()), c.StopTrainer)
    assert not has(worker.wait(58_000, keep=True), c.StopTrainer)


def test_a_finished_task_has_no_deadline_any_more() -> None:
    worker = training()
    worker(done())
    assert not has(worker.wait(600_000, keep=True), c.StopTrainer)


def test_a_trainer_that_does_not_heed_a_cancel_is_ended_too() -> None:
    worker = training()
    assert has(worker(messages.Cancel(term=1, ref=ref(), reason="stopped")), c.StopTraining)
    commands = worker.wait(61_000, keep=True)
    assert has(commands, c.StopTrainer)
    assert sent(commands) == []


def test_new_tasks_do_not_postpone_the_end_of_a_frozen_trainer() -> None:
    worker = training()
    for number in range(1, 5):
        worker.wait(14_000, keep=True)
        worker.closed(number - 1)
        assert not has(worker(task(ref(number))), c.Train)
    commands = worker.wait(5_000, keep=True)
    assert has(commands, c.StopTrainer)
    assert message(commands, messages.TaskRefuse).ref == ref(4)


@pytest.mark.parametrize(
    "answer", [e.TrainerStopped(ref().lease), e.TrainerFailed(ref().lease, "why"), done(), progress(3)]
)
def test_the_next_task_is_given_when_the_cancelled_one_has_ended(answer: e.Event) -> None:
    worker = training()
    worker(messages.Cancel(term=1, ref=ref(), reason="stopped"))
    assert not has(worker(task(ref(1))), c.Train)
    ended = not isinstance(answer, e.TrainerProgress)
    assert (c.Train(task(ref(1))) in worker(answer)) == ended
    assert worker.session.state == "training"


def test_a_task_waits_a_minute_for_a_trainer_that_is_busy_with_a_cancelled_step() -> None:
    worker = training()
    worker.wait(30_000, keep=True)
    worker(progress(1))
    worker(messages.Cancel(term=1, ref=ref(), reason="stopped"))
    worker(task(ref(1)))
    refused = message(worker.wait(61_000, keep=True), messages.TaskRefuse)
    assert (refused.reason, refused.busy) == ("the trainer was not free for it in 60 s", True)
    worker(e.TrainerStopped(ref().lease))
    assert has(worker(task(ref(2))), c.Train)


def test_a_trainer_that_never_says_ready_is_told_of_and_started_again() -> None:
    worker = Driver()
    worker(e.Start())
    worker(e.LinkUp())
    lines = said(worker.wait(119_500)).splitlines()
    assert len(lines) == 11
    assert lines[0] == "the trainer has been starting for 10 s; this PC joins as soon as it is ready"
    commands = worker.wait(500)
    assert has(commands, c.StopTrainer)
    assert said(commands) == (
        "the trainer was not ready in 120 s (is this PC very busy, or does a virus scanner hold Python back?); "
        "starting it again in 1 s"
    )
    assert has(worker.wait(1_000), c.StartTrainer)
    worker.wait(120_000)
    assert has(worker.wait(4_000), c.StartTrainer)
    assert "starting it again in 60 s" in said(worker.wait(121_000))
    assert sent(worker(e.TrainerReady(1.0))) == ["Hello"]
    worker.welcome()
    assert said(worker.wait(60_000, keep=True)) == ""


def test_a_trainer_that_is_ready_in_time_is_not_told_of() -> None:
    worker = Driver()
    worker(e.Start())
    worker.wait(9_000)
    worker(e.TrainerReady(1.0))
    assert "starting for" not in said(worker.wait(200_000))
    assert not has(worker.wait(200_000), c.StopTrainer)
