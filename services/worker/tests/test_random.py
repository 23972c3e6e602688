"""Any order of events: the session never breaks, and never loses a delta that nobody gave up."""

from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.protocol import messages
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.core.state import Timer
from services.worker.tests.driver import BAD, GOOD, Driver, done, has, ref, task

ROUNDS = st.integers(0, 2)
TERMS = st.integers(1, 2)
GIVES_UP = (messages.Ack, messages.RoundClosed, messages.Cancel)


def of_master() -> st.SearchStrategy[e.Event]:
    """What a master may say, also at the wrong time."""
    refs = st.builds(ref, ROUNDS)
    statuses = st.sampled_from(["accepted", "duplicate", "stale", "refused", "closed"])
    said = st.one_of(
        st.builds(lambda of, term, digest: task(of, term=term, anchor_digest=digest), refs, TERMS, st.just(GOOD)),
        st.builds(lambda of, term, ms: messages.Credit(term=term, ref=of, want=[], wait_ms=ms), refs, TERMS, TERMS),
        st.builds(lambda of, term: messages.Credit(term=term, ref=of, want=[0, 2]), refs, TERMS),
        st.builds(
            lambda of, term, status: messages.Ack(term=term, ref=of, status=status, code="OK", text=""),
            refs,
            TERMS,
            statuses,
        ),
        st.builds(lambda of, term: messages.Cancel(term=term, ref=of, reason=""), refs, TERMS),
        st.builds(
            lambda number, term: messages.RoundClosed(
                term=term, run="run-1", round=number, version=number + 1, digest=GOOD, accepted=[]
            ),
            ROUNDS,
            TERMS,
        ),
        st.builds(lambda term: messages.Rejoin(term=term, reason=""), TERMS),
        st.just(messages.Reject(code="FULL", text="", retry_after_ms=1000)),
        st.just(messages.Bye(term=1, code="STOPPING", reason="")),
        st.just(messages.Heartbeat(term=1)),
    )
    return st.builds(e.Received, said)


def of_this_pc() -> st.SearchStrategy[e.Event]:
    """What happens here."""
    refs = st.builds(ref, ROUNDS)
    return st.one_of(
        st.sampled_from([e.LinkUp(), e.LinkDown(), e.TrainerReady(1.0), e.TrainerExited("gone")]),
        st.builds(e.LinkFailed, st.sampled_from(list(e.Fault))),
        st.sampled_from([e.AnchorChecked(GOOD), e.AnchorChecked(BAD), e.StorageFailed("full"), e.StorageWorks()]),
        st.builds(done, refs),
        st.builds(lambda of: e.StorageFailed("full", of.lease), refs),
        st.builds(lambda of: e.DeltaUnreadable(of.lease, "busy", passing=True), refs),
        st.builds(lambda of: e.TrainerStopped(of.lease), refs),
        st.builds(lambda of: e.TrainerFailed(of.lease, "why"), refs),
        st.builds(lambda of: e.TrainerProgress(of.lease, 1, 7, None, 8), refs),
    )


STEPS = st.lists(
    st.one_of(of_master(), of_this_pc(), st.integers(1, 20_000), st.tuples(ROUNDS, TERMS, st.integers(0, 2)), TERMS),
    max_size=60,
)


@given(STEPS)
@settings(max_examples=150)
def test_no_order_of_events_breaks_it_or_loses_a_delta(steps: list[object]) -> None:
    worker = Driver()
    worker.join()
    state = worker.session._state
    for step in steps:
        before = worker.session.held
        given = state.given
        match step:
            case (int(version), int(term), int(index)):
                commands = worker.chunk(index, term=term, version=version)
            case 1 | 2:
                commands = worker.welcome(step)
            case int():
                commands = worker.wait(step)
            case _:
                commands = worker(step)  # type: ignore[arg-type]
        gone = [delta for delta in before if delta not in worker.session.held]
        given_up = isinstance(step, e.DeltaUnreadable) or (
            isinstance(step, e.Received) and isinstance(step.message, GIVES_UP)
        )
        assert not gone or given_up
        assert (Timer.STEP in state.timers) == (state.given is not None)
        assert not has(commands, c.Train) or state.given not in (None, given)
        waits = worker.session.state == "training" and (state.given is None or state.given is not state.task)
        assert not waits or Timer.TRAINER_FREE in state.timers
        assert not has(commands, c.Exit)
        assert worker.session.state in STATES
        if has(commands, c.Train):
            assert worker.session.state in ("training", "connecting", "joining")


STATES = ("connecting", "enrolling", "joining", "idle", "pulling", "training", "uploading", "holding")
