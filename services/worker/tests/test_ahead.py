"""Overlapped rounds at the worker: the next task goes on where the last one ended, and goes over to its base later."""

from services.common.protocol import messages
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.tests.driver import Driver, has, message, only, sent
from services.worker.tests.updates import N, anchor, at, fetch, fetch_whole, job, pulled, version_digest


def ref(round_number: int) -> messages.TaskRef:
    """Round r is made against version r - 1."""
    lease = f"lease-{round_number}"
    return messages.TaskRef(run="run-1", round=round_number, base_version=round_number - 1, shard=0, lease=lease)


def ahead(round_number: int) -> messages.Task:
    """A task whose base is not made yet: to begin with, or to go on from, is the version before it."""
    before = round_number - 2
    return job(before, anchor_digest=version_digest(before), start_version=before).model_copy(
        update={"ref": ref(round_number)}
    )


def plain(round_number: int) -> messages.Task:
    """A task whose base is there."""
    return job(round_number - 1).model_copy(update={"ref": ref(round_number)})


def done(round_number: int) -> e.TrainerDone:
    """The trainer's answer."""
    size = messages.encoded_bytes("int8", N)
    return e.TrainerDone(ref(round_number).lease, size, "d" * 32, 56, 7, 30, 0.5, 120, 40)


def closed(worker: Driver, round_number: int, *, counted: bool = True) -> list[c.Command]:
    """ROUND_CLOSED."""
    leases = [ref(round_number).lease] if counted else []
    return worker(
        messages.RoundClosed(
            term=worker.term,
            run="run-1",
            round=round_number,
            version=round_number,
            digest=version_digest(round_number),
            counted=leases,
        )
    )


def in_the_second_round() -> Driver:
    """Round 1 is done and offered, the trainer goes on with round 2."""
    worker = at()
    assert has(worker(plain(1)), c.Train)
    assert sent(worker(ahead(2))) == ["TaskAck"]
    commands = worker(done(1))
    assert sent(commands) == ["DeltaBegin", "TaskAck"]
    assert only(commands, c.Train) == c.Train(ahead(2), goes_on=True)
    return worker


def test_the_next_task_waits_its_turn_and_goes_on_without_a_version() -> None:
    worker = in_the_second_round()
    assert worker.session.state == "training"


def test_the_base_is_fetched_beside_the_steps_and_the_trainer_goes_over_to_it() -> None:
    worker = in_the_second_round()
    assert not has(fetch(worker, 1), c.Rebase)
    commands = closed(worker, 1)
    assert only(commands, c.ForgetDelta) == c.ForgetDelta("lease-1", counted=True)
    based = ahead(2).based(version_digest(1))
    assert only(commands, c.Rebase) == c.Rebase(based, (1,))
    assert commands.index(only(commands, c.ForgetDelta)) < commands.index(only(commands, c.Rebase))
    assert worker(e.Anchored("lease-2")) == [c.NoteAnchor(anchor(1)), c.ForgetUpdates(1)]
    worker(ahead(3))
    commands = worker(done(2))
    assert message(commands, messages.DeltaBegin).sync_ms == 40
    assert only(commands, c.Train) == c.Train(ahead(3), goes_on=True)


def test_an_update_that_comes_after_the_news_is_waited_for() -> None:
    worker = in_the_second_round()
    commands = closed(worker, 1)
    assert not has(commands, c.Rebase)
    assert pulled(commands) == ("update", "run-1", 1, [0, 1])
    worker(e.TrainerWaits("lease-2"))
    assert only(fetch(worker, 1), c.Rebase).updates == (1,)


def test_a_version_that_is_too_far_behind_is_pulled_whole_beside_the_steps() -> None:
    worker = in_the_second_round()
    closed(worker, 1)
    worker(messages.Error(code="UPDATE_GONE", text="update 1 is not served any more"))
    commands = fetch_whole(worker, 1)
    assert only(commands, c.Rebase) == c.Rebase(ahead(2).based(version_digest(1)), ())
    assert worker.session.state == "training"


def test_one_that_waits_for_its_base_says_so_and_never_counts_as_standing_still() -> None:
    worker = in_the_second_round()
    worker(e.TrainerWaits("lease-2"))
    commands = worker.wait(600_000, keep=True)
    assert not has(commands, c.StopTrainer)
    beats = [one.message for one in commands if isinstance(one, c.Send)]
    assert {one.agent for one in beats if isinstance(one, messages.Heartbeat)} == {"waiting"}
    fetch(worker, 1)
    assert has(closed(worker, 1), c.Rebase)
    assert has(worker.wait(120_000, keep=True), c.StopTrainer), "from the rebase on time counts again"


def test_a_newcomer_begins_with_the_newest_version_and_goes_over_to_the_base_later() -> None:
    worker = at()
    assert only(worker(ahead(2)), c.Train) == c.Train(ahead(2))
    fetch(worker, 1)
    assert only(closed(worker, 1, counted=False), c.Rebase).updates == (1,)


def test_a_newcomer_whose_first_version_is_on_its_way_takes_the_base_instead() -> None:
    worker = Driver()
    worker.join()
    assert pulled(worker(ahead(2)))[:3] == ("snapshot", "run-1", 0)
    assert pulled(closed(worker, 1, counted=False))[:3] == ("snapshot", "run-1", 1)
    assert only(fetch_whole(worker, 1), c.Train) == c.Train(ahead(2).based(version_digest(1)))


def test_the_trainer_still_applies_updates_when_the_base_is_announced() -> None:
    worker = at()
    fetch(worker, 1)
    assert only(worker(ahead(3)), c.Train) == c.Train(ahead(3), (1,))
    fetch(worker, 2)
    assert not has(closed(worker, 2, counted=False), c.Rebase)
    assert only(worker(e.Anchored("lease-3")), c.Rebase).updates == (2,)


def test_a_straggler_whose_round_closed_begins_the_next_with_its_base() -> None:
    worker = at()
    worker(plain(1))
    worker(ahead(2))
    fetch(worker, 1)
    commands = closed(worker, 1, counted=False)
    assert only(commands, c.StopTraining).lease == "lease-1"
    assert not has(commands, c.Train)
    based = ahead(2).based(version_digest(1))
    assert worker(e.TrainerStopped("lease-1")) == [c.Train(based, (1,))]


def test_a_delta_that_did_not_count_changes_nothing_for_the_next_task() -> None:
    worker = in_the_second_round()
    fetch(worker, 1)
    commands = closed(worker, 1, counted=False)
    assert only(commands, c.ForgetDelta) == c.ForgetDelta("lease-1", counted=False)
    assert has(commands, c.Rebase)


def test_a_cancelled_next_task_is_forgotten() -> None:
    worker = at()
    worker(plain(1))
    worker(ahead(2))
    worker(messages.Cancel(term=1, ref=ref(2), reason="the run was stopped"))
    assert not has(worker(done(1)), c.Train)


def test_a_trainer_that_died_has_nothing_to_go_on_from() -> None:
    worker = in_the_second_round()
    worker(e.TrainerExited(messages.said("killed")))
    worker.wait(2_000, keep=True)
    worker(e.TrainerReady(50.0))
    again = ahead(2).model_copy(update={"ref": ref(2).model_copy(update={"lease": "again"})})
    assert only(worker(again), c.Train) == c.Train(again)


def test_wrong_updates_are_told_and_the_base_is_pulled_whole() -> None:
    worker = in_the_second_round()
    fetch(worker, 1)
    closed(worker, 1)
    commands = worker(e.AnchorWrong("lease-2", "another digest"))
    assert message(commands, messages.Mismatch).ref == ref(2)
    assert pulled(commands)[:3] == ("snapshot", "run-1", 1)
    assert only(fetch_whole(worker, 1), c.Train) == c.Train(ahead(2).based(version_digest(1)))


def test_a_new_session_names_both_tasks() -> None:
    worker = at()
    worker(plain(1))
    worker(ahead(2))
    worker(e.LinkDown())
    hello = message(worker(e.LinkUp()), messages.Hello)
    assert (hello.working, hello.queued) == (ref(1), ref(2))


def test_news_of_an_older_round_does_not_take_the_base_back() -> None:
    worker = in_the_second_round()
    fetch(worker, 1)
    closed(worker, 1)
    closed(worker, 0, counted=False)
    worker(e.Anchored("lease-2"))
    worker(e.TrainerWaits("lease-2"))  # a late line
    assert worker.session.state == "training"
    assert worker(messages.Heartbeat(term=1)) == []
