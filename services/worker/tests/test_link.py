"""The session and its master: connect, enrol, join, notice silence, be refused, park. Events in, commands out."""

import pytest

from services.common.protocol import messages
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.core import limits
from services.worker.tests.driver import ENDPOINTS, Driver, delta, has, message, only, ref, said, sent


def test_a_new_worker_enrols_under_the_join_key_and_comes_back_with_its_own() -> None:
    worker = Driver(enrolled=False, can_enrol=True)
    assert worker(e.Start()) == [c.StartTrainer(), c.Connect("tcp://a:1", own_key=False)]
    assert message(worker(e.LinkUp()), messages.Enrol).public_key == "p" * 40
    assert worker.session.state == "enrolling"
    enrolled = messages.Enrolled(worker="w-1", name="pc", endpoints=["tcp://c:3"], beacon_key="k" * 40)
    commands = worker(enrolled)
    assert only(commands, c.SaveIdentity).endpoints == ("tcp://a:1", "tcp://c:3")
    assert only(commands, c.Connect) == c.Connect("tcp://a:1", own_key=True)


def test_hello_waits_for_the_score_of_the_trainer() -> None:
    worker = Driver()
    worker(e.Start())
    assert sent(worker(e.LinkUp())) == []
    assert sent(worker.wait(20_000)) == []
    assert message(worker(e.TrainerReady(123.0)), messages.Hello).score == 123.0
    worker.welcome()
    assert worker.session.state == "idle"


def test_hello_names_what_is_held_and_what_is_in_work() -> None:
    worker = Driver(held=(delta(),))
    worker.join()
    worker.train(ref(1))
    worker(e.LinkDown())
    hello = message(worker(e.LinkUp()), messages.Hello)
    assert [one.ref for one in hello.holding] == [ref()]
    assert hello.working == ref(1)


def test_hello_is_said_three_times_then_the_next_endpoint_comes() -> None:
    worker = Driver(endpoints=ENDPOINTS)
    worker(e.Start())
    worker(e.TrainerReady(1.0))
    assert sent(worker(e.LinkUp())) == ["Hello"]
    assert sent(worker.wait(5_000)) == ["Hello"]
    assert sent(worker.wait(5_000)) == ["Hello"]
    commands = worker.wait(5_000)
    assert has(commands, c.Disconnect)
    assert "does not answer" in said(commands)
    assert only(worker.wait(1_000), c.Connect).endpoint == "tcp://b:2"


def test_without_a_handshake_the_endpoints_are_tried_in_turn() -> None:
    worker = Driver(endpoints=ENDPOINTS)
    worker(e.Start())
    tried = [one.endpoint for one in worker.wait(30_000) if isinstance(one, c.Connect)]
    assert tried[:4] == ["tcp://b:2", "tcp://a:1", "tcp://b:2", "tcp://a:1"]


def test_that_nothing_answers_is_said_after_a_while_and_once_a_minute() -> None:
    worker = Driver()
    worker(e.Start())
    worker(e.TrainerReady(1.0))
    assert said(worker(e.LinkFailed(e.Fault.NO_ANSWER))) == ""
    lines = said(worker.wait(59_000)).splitlines()
    assert lines == ["nothing answers at tcp://a:1; is the master running, is the port open?"]
    assert "nothing answers" in said(worker.wait(60_000))


def test_an_unknown_key_waits_from_30_s_and_says_why() -> None:
    worker = Driver()
    worker(e.Start())
    commands = worker(e.LinkFailed(e.Fault.AUTH))
    assert said(commands) == (
        "this master does not know the key: the join string is wrong, revoked, or this PC was removed; "
        "get a new join string from the page"
    )
    assert has(commands, c.Disconnect)
    assert not has(worker.wait(29_500), c.Connect)
    assert has(worker.wait(1_000), c.Connect)
    worker(e.LinkFailed(e.Fault.AUTH))
    assert not has(worker.wait(59_500), c.Connect)
    assert has(worker.wait(1_000), c.Connect)


def test_the_wait_is_spread_by_the_shells_random_number() -> None:
    waits = []
    for jitter in (0.0, 0.999):
        worker = Driver()
        worker(e.Start())
        worker.wait(500, jitter)
        worker(e.LinkFailed(e.Fault.AUTH))
        started = worker.now_ms
        while not has(worker.wait(500, jitter), c.Connect):
            pass
        waits.append(worker.now_ms - started)
    assert waits == [22_500, 37_500]


def test_an_unknown_own_key_tries_a_new_join_string_once() -> None:
    worker = Driver(can_enrol=True)
    assert only(worker(e.Start()), c.Connect).own_key
    assert not only(worker(e.LinkFailed(e.Fault.AUTH)), c.Connect).own_key
    commands = worker(e.LinkFailed(e.Fault.AUTH))
    assert "get a new join string" in said(commands)
    assert only(worker.wait(40_000), c.Connect).own_key


def test_another_key_is_said_only_when_it_happens_again() -> None:
    worker = Driver()
    worker(e.Start())
    assert worker(e.LinkFailed(e.Fault.KEY)) == []
    commands = worker(e.LinkFailed(e.Fault.KEY))
    assert said(commands).startswith("this master has another key than the join string says")
    assert has(commands, c.Disconnect)


@pytest.mark.parametrize(
    "fault, words", [(e.Fault.ALIEN, "is not a MAHE master"), (e.Fault.SILENT, "takes the connection but says nothing")]
)
def test_something_else_is_said_at_once_and_tried_again_later(fault: e.Fault, words: str) -> None:
    worker = Driver()
    worker(e.Start())
    commands = worker(e.LinkFailed(fault))
    assert words in said(commands)
    assert has(commands, c.Disconnect)
    assert has(worker.wait(3_000), c.Connect)


def test_a_silent_master_is_suspect_then_lost() -> None:
    worker = Driver(endpoints=ENDPOINTS)
    worker.join()
    assert said(worker.wait(5_500)) == ""
    assert "no word from the master for 6 s" in said(worker.wait(1_000))
    assert "answers again" in said(worker(messages.Heartbeat(term=1)))
    commands = worker.wait(16_000)
    assert "no word from the master for 15 s: connecting again" in said(commands)
    assert has(commands, c.Disconnect)
    assert only(commands, c.Connect).endpoint == "tcp://b:2"


def test_heartbeats_name_work_and_progress() -> None:
    worker = Driver()
    worker.join()
    idle = message(worker.wait(500), messages.Heartbeat)
    assert (idle.agent, idle.steps_total, idle.progress_age_ms) == ("idle", 0, 0)
    worker.train()
    worker(e.TrainerProgress(ref().lease, 3, 7, 0.5, 24))
    beats = [
        one.message
        for one in worker.wait(4_000, keep=True)
        if isinstance(one, c.Send) and isinstance(one.message, messages.Heartbeat)
    ]
    assert [(one.agent, one.step, one.steps_total) for one in beats] == [("training", 3, 7)] * 2
    assert [one.progress_age_ms for one in beats] == [2000, 4000]


def test_a_pc_that_slept_does_not_take_its_master_for_dead() -> None:
    worker = Driver()
    worker.join()
    worker.wait(1_000)
    worker.now_ms += 3_600_000
    commands = worker.session.step(e.Tick(), worker.now_ms)
    assert "slept for 3600 s" in said(commands)
    assert not has(commands, c.Disconnect)
    assert "no word from the master for 15 s" in said(worker.wait(15_000))


def test_rejoin_says_hello_again_and_offers_again_what_was_accepted_in_the_old_term() -> None:
    worker = Driver()
    worker.join()
    worker.finish()
    worker.credit(0, 1)
    worker.ack("accepted")
    assert worker.session.state == "holding"
    commands = worker(messages.Rejoin(term=2, reason="the master was restarted"))
    assert [one.ref for one in message(commands, messages.Hello).holding] == [ref()]
    begin = message(worker.welcome(term=2), messages.DeltaBegin)
    assert (begin.term, begin.ref) == (2, ref())


def test_messages_of_another_term_and_of_no_session_do_nothing() -> None:
    worker = Driver()
    worker.join(term=2)
    worker.finish()
    assert worker(messages.Ack(term=1, ref=ref(), status="stale", code="OK", text="")) == []
    worker(e.LinkDown())
    assert worker(messages.Ack(term=2, ref=ref(), status="stale", code="OK", text="")) == []


def test_a_second_welcome_of_the_same_term_does_nothing() -> None:
    worker = Driver()
    worker.join()
    assert worker.welcome() == []


def test_the_connection_breaks_and_the_socket_comes_back_by_itself() -> None:
    worker = Driver()
    worker.join()
    worker.train()
    commands = worker(e.LinkDown())
    assert "the work goes on" in said(commands)
    assert not has(commands, c.StopTraining)
    assert sent(worker(e.LinkUp())) == ["Hello"]


def test_reject_with_a_time_waits_that_long() -> None:
    worker = Driver()
    worker(e.Start())
    worker(e.TrainerReady(1.0))
    worker(e.LinkUp())
    commands = worker(messages.Reject(code="FULL", text="come later", retry_after_ms=60_000))
    assert "come later" in said(commands)
    assert not has(worker.wait(60_000), c.Connect)
    assert has(worker.wait(16_000), c.Connect)


@pytest.mark.parametrize(
    "last_word",
    [
        messages.Reject(code="AUTH_EXPIRED", text="the join string has expired", retry_after_ms=None),
        messages.Bye(term=1, code="REMOVED", reason="the operator removed it"),
    ],
)
def test_a_final_word_parks(last_word: messages.Message) -> None:
    worker = Driver()
    worker.join()
    commands = worker(last_word)
    assert [type(one) for one in commands] == [c.Park, c.StopTrainer, c.Disconnect, c.Say]
    assert worker.session.state == "parked"
    lines = said(worker.wait(1_200_000)).splitlines()
    assert len(lines) == 2
    assert worker(e.LinkUp()) == []
    assert has(worker(e.Stop(messages.said("bye"))), c.Exit)


def test_a_parked_slot_stays_parked_and_says_why() -> None:
    worker = Driver(parked="the operator removed it")
    commands = worker(e.Start())
    assert [type(one) for one in commands] == [c.Say]
    assert "the operator removed it" in said(commands)


def test_goodbye_of_a_master_that_stops_is_not_for_ever() -> None:
    worker = Driver()
    worker.join()
    assert "keeping the work" in said(worker(messages.Drain(term=1, reason="update")))
    commands = worker(messages.Bye(term=1, code="STOPPING", reason="update"))
    assert has(commands, c.Disconnect)
    assert has(worker.wait(1_000), c.Connect)


def test_bad_frames_are_answered_once_a_minute() -> None:
    worker = Driver()
    worker.join()
    assert sent(worker(e.BadMessage("FRAME_CRC", "the CRC differs"))) == ["Error"]
    assert worker(e.BadMessage("FRAME_CRC", "the CRC differs")) == []
    assert "refused a message" in said(worker(messages.Error(code="BAD_FIELD", text="field x")))


def test_stop_says_goodbye_and_ends() -> None:
    worker = Driver()
    worker.join()
    worker.train()
    commands = worker(e.Stop(messages.said("SIGTERM")))
    assert [type(one) for one in commands] == [c.Say, c.Send, c.StopTrainer, c.Disconnect, c.Exit]
    assert only(commands, c.Disconnect).linger_ms == limits.BYE_LINGER_MS
    assert worker(e.TrainerExited(messages.said("killed"))) == []
    assert worker.wait(60_000) == []
