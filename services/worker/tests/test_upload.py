"""Held deltas: offered, sent by credit, held, offered again, forgotten for a reason. Events in, commands out."""

import dataclasses

import pytest

from services.common.protocol import messages
from services.common.protocol.encodings import ENCODINGS
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.tests.driver import (
    ANCHOR,
    BAD,
    CHUNK_BYTES,
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


def uploading() -> Driver:
    """A worker that has just said DELTA_BEGIN for three chunks; the window is two."""
    worker = Driver()
    worker.join()
    begin = message(worker.finish(), messages.DeltaBegin)
    assert (begin.chunks, begin.chunk_bytes, begin.digest) == (3, CHUNK_BYTES, BAD)
    assert (begin.samples, begin.steps, begin.correct, begin.loss, begin.compute_ms) == (56, 7, 30, 0.5, 120)
    assert worker.session.state == "uploading"
    return worker


def test_the_delta_is_kept_on_disk_before_it_is_offered() -> None:
    worker = Driver()
    worker.join()
    kinds = [type(one) for one in worker.finish()]
    assert kinds == [c.Say, c.KeepDelta, c.Send]


def test_chunks_go_by_credit_and_the_last_brings_the_commit() -> None:
    worker = uploading()
    assert worker.credit(0, 1) == [c.SendChunks(1, ref(), (0, 1), CHUNK_BYTES)]
    commands = worker.credit(2)
    assert only(commands, c.SendChunks).want == (2,)
    assert message(commands, messages.DeltaCommit).digest == BAD
    assert worker.credit() == []


def test_a_resumed_upload_sends_what_is_missing_and_commits() -> None:
    worker = uploading()
    commands = worker.credit(1)
    assert only(commands, c.SendChunks).want == (1,)
    assert sent(commands) == ["DeltaCommit"]


def test_nothing_missing_commits_at_once() -> None:
    assert sent(uploading().credit()) == ["DeltaCommit"]


def test_gaps_found_at_the_commit_are_filled_and_committed_again() -> None:
    worker = uploading()
    worker.credit(1)
    assert only(worker.credit(0, 1), c.SendChunks).want == (0, 1)
    assert sent(worker.credit(2)) == ["DeltaCommit"]


def test_chunks_that_do_not_exist_are_not_sent() -> None:
    assert only(uploading().credit(0, 7), c.SendChunks).want == (0,)


def test_no_place_waits_then_the_delta_is_offered_again() -> None:
    worker = uploading()
    assert worker.credit(wait_ms=8_000) == []
    assert sent(worker.wait(7_500, keep=True)) == []
    assert sent(worker.wait(1_000, keep=True)) == ["DeltaBegin"]


def test_a_short_wait_is_five_seconds() -> None:
    worker = uploading()
    worker.credit(wait_ms=100)
    assert sent(worker.wait(4_500, keep=True)) == []
    assert sent(worker.wait(500, keep=True)) == ["DeltaBegin"]


@pytest.mark.parametrize("windows", [[], [(0, 1)], [(0, 1), (2,)]])
def test_ten_seconds_of_silence_offer_it_again(windows: list[tuple[int, ...]]) -> None:
    worker = uploading()
    for want in windows:
        worker.credit(*want)
    assert sent(worker.wait(9_500, keep=True)) == []
    assert sent(worker.wait(500, keep=True)) == ["DeltaBegin"]


@pytest.mark.parametrize("status", ["accepted", "duplicate"])
def test_an_accepted_delta_is_held_until_its_round_is_closed(status: messages.AckStatus) -> None:
    worker = uploading()
    worker.credit(0, 1)
    worker.credit(2)
    assert not has(worker.ack(status), c.ForgetDelta)
    assert worker.session.state == "holding"
    assert sent(worker.wait(60_000, keep=True)) == []
    commands = worker.closed(0, ref())
    assert commands[-1] == c.ForgetDelta(ref().lease, counted=True)
    assert "counted" in said(commands)
    assert worker.session.state == "idle"


@pytest.mark.parametrize("status", ["stale", "refused", "closed"])
def test_a_verdict_that_is_final_forgets_it(status: messages.AckStatus) -> None:
    worker = uploading()
    forgotten = only(worker.ack(status), c.ForgetDelta)
    assert forgotten == c.ForgetDelta(ref().lease, counted=status == "closed")
    assert worker.session.state == "idle"
    assert sent(worker.wait(60_000, keep=True)) == []


def test_cancel_forgets_a_held_delta() -> None:
    worker = uploading()
    worker.ack("accepted")
    forgotten = only(worker(messages.Cancel(term=1, ref=ref(), reason="stopped")), c.ForgetDelta)
    assert forgotten == c.ForgetDelta(ref().lease, counted=False)
    assert worker.session.held == ()


def test_a_later_round_of_the_run_closes_earlier_ones_but_not_other_runs() -> None:
    worker = Driver(held=(delta(ref(3)), delta(ref(3, run="run-2"))))
    worker.join()
    worker.closed(4)
    assert [one.ref for one in worker.session.held] == [ref(3, run="run-2")]


def test_a_round_that_closed_without_the_delta_makes_it_void() -> None:
    worker = uploading()
    worker.ack("accepted")
    commands = worker.closed(0, ref(lease="another"))
    assert "not counted" in said(commands)
    assert only(commands, c.ForgetDelta) == c.ForgetDelta(ref().lease, counted=False)
    assert worker.session.held == ()


def test_of_several_deltas_only_those_that_the_round_names_are_counted() -> None:
    first, second, third = ref(3), ref(3, shard=1), ref(2)
    worker = Driver(held=(delta(first), delta(second), delta(third)))
    worker.join()
    forgotten = [one for one in worker.closed(3, second) if isinstance(one, c.ForgetDelta)]
    assert forgotten == [
        c.ForgetDelta(first.lease),
        c.ForgetDelta(second.lease, counted=True),
        c.ForgetDelta(third.lease),
    ]


def test_the_delta_of_a_task_that_nobody_wants_any_more_is_not_counted() -> None:
    worker = Driver()
    worker.join()
    worker.train()
    worker.closed(0, ref())
    assert worker(done()) == [c.ForgetDelta(ref().lease, counted=False)]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_delta_is_offered_in_the_encoding_of_its_task(encoding: messages.Encoding) -> None:
    worker = Driver(anchor=ANCHOR)
    worker.join()
    worker(task(encoding=encoding))
    needed = messages.encoded_bytes(encoding, PARAMETERS)
    wrong = message(worker(dataclasses.replace(done(), delta_bytes=needed + 1)), messages.TaskRefuse)
    assert wrong.reason == f"the delta has {needed + 1} bytes, needed are {needed}"
    worker(task(encoding=encoding))
    begin = message(worker(dataclasses.replace(done(), delta_bytes=needed)), messages.DeltaBegin)
    assert (begin.encoding, begin.bytes) == (encoding, needed)


def test_several_held_deltas_are_offered_one_after_another() -> None:
    worker = Driver(held=(delta(ref(1)), delta(ref(2))))
    assert message(worker.join(), messages.DeltaBegin).ref == ref(1)
    assert worker.credit(0, of=ref(2)) == []
    assert message(worker.ack("accepted", ref(1)), messages.DeltaBegin).ref == ref(2)
    worker.ack("accepted", ref(2))
    assert worker.session.state == "holding"


def test_an_upload_goes_on_beside_the_next_task() -> None:
    worker = uploading()
    worker.credit(0, 1)
    worker(task(ref(1)))
    assert worker.session.state == "training"
    assert sent(worker.credit(2)) == ["DeltaCommit"]
    worker.ack("accepted")
    assert worker.session.state == "training"


def test_a_delta_is_not_offered_without_a_session_and_again_in_the_next() -> None:
    worker = uploading()
    worker.credit(0, 1)
    worker(e.LinkDown())
    assert sent(worker.wait(9_000)) == []
    assert sent(worker(e.LinkUp())) == ["Hello"]
    assert sent(worker.welcome()) == ["DeltaBegin"]


def test_a_delta_that_is_told_to_wait_is_offered_as_long_as_it_takes() -> None:
    worker = uploading()
    for _ in range(100):
        assert "TaskRefuse" not in sent(worker.wait(8_000, keep=True))
        worker.credit(wait_ms=2_000)
    assert worker.credit(0, 1) == [c.SendChunks(1, ref(), (0, 1), CHUNK_BYTES)]
    assert [one.ref for one in worker.session.held] == [ref()]


def test_a_delta_that_cannot_be_read_for_now_is_offered_again_and_given_up_after_a_minute() -> None:
    worker = uploading()
    busy = e.DeltaUnreadable(ref().lease, "too many open files", passing=True)
    for attempt in range(6):
        commands = worker(busy)
        assert said(commands) == ("" if attempt else "round 0 shard 0 of run run-1: too many open files; trying again")
        assert sent(worker.wait(10_000, keep=True)) == ["DeltaBegin"]
    commands = worker(busy)
    refused = message(commands, messages.TaskRefuse)
    assert (refused.reason, refused.busy) == ("too many open files", True)
    assert has(commands, c.ForgetDelta)


def test_hello_names_as_many_deltas_as_it_can() -> None:
    worker = Driver(held=tuple(delta(ref(number)) for number in range(12)))
    worker(e.Start())
    worker(e.TrainerReady(1.0))
    hello = message(worker(e.LinkUp()), messages.Hello)
    assert [one.ref.round for one in hello.holding] == list(range(4, 12))


def test_a_delta_whose_file_is_gone_is_handed_back() -> None:
    worker = uploading()
    commands = worker(e.DeltaUnreadable(ref().lease, "no such file"))
    assert message(commands, messages.TaskRefuse).reason == "no such file"
    assert only(commands, c.ForgetDelta) == c.ForgetDelta(ref().lease, counted=False)
    assert worker.session.held == ()


def eager() -> tuple[Driver, list[c.Command]]:
    """A worker whose task says that there is a place for its delta, and what it does when it is done."""
    worker = Driver(anchor=ANCHOR)
    worker.join()
    worker(task(eager=True))
    return worker, worker(done())


def test_where_there_is_a_place_the_first_window_goes_with_the_offer() -> None:
    worker, commands = eager()
    assert message(commands, messages.DeltaBegin).sent == 2
    assert [type(one) for one in commands][-2:] == [c.Send, c.SendChunks]
    assert only(commands, c.SendChunks).want == (0, 1)
    commands = worker.credit(2)
    assert only(commands, c.SendChunks).want == (2,)
    assert sent(commands) == ["DeltaCommit"]


def test_a_whole_delta_in_the_first_window_is_committed_at_once_and_again_after_gaps() -> None:
    worker = Driver(anchor=ANCHOR)
    worker.join()
    small = task(n_parameters=CHUNK_BYTES // 4, eager=True)
    worker(small)
    commands = worker(dataclasses.replace(done(), delta_bytes=CHUNK_BYTES))
    assert sent(commands) == ["DeltaBegin", "DeltaCommit"]
    assert only(commands, c.SendChunks).want == (0,)
    commands = worker.credit(0)  # there was no place after all
    assert only(commands, c.SendChunks).want == (0,)
    assert sent(commands) == ["DeltaCommit"]


def test_a_second_offer_is_not_eager() -> None:
    worker, _ = eager()
    again = worker.wait(11_000, keep=True)
    assert message(again, messages.DeltaBegin).sent == 0
    assert not has(again, c.SendChunks)
