"""Any order of events: the session never breaks, never loses a delta, and trains only on files that are whole."""

import dataclasses
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.protocol import messages
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.core.state import NO_ANCHOR, Link, Timer, Work
from services.worker.tests.driver import BAD, CHUNK_BYTES, PARAMETERS, Driver, done, has, ref, task

ROUNDS = st.integers(0, 3)
TERMS = st.integers(1, 2)
RUNS = st.sampled_from(["run-1", "run-1", "run-2"])
REFS = st.builds(lambda number, run: ref(number, run=run), ROUNDS, RUNS)
GIVES_UP = (messages.Ack, messages.RoundClosed, messages.Cancel)
UPDATE_BYTES = messages.encoded_bytes("int8", PARAMETERS)  # one chunk
DUE = ("chunk",) * 6 + ("fine",) * 4 + ("join again",) * 4 + ("chunk anew", "wrong", "stopped", "gone")
ANCHORS = st.sampled_from([NO_ANCHOR, e.Anchor("run-1", 0, f"{0:032x}"), e.Anchor("", -1, f"{1:032x}")])


def may_forget(step: Any) -> bool:
    """Whether the master has said that a delta may be forgotten, or wants a unit in its place, or it is lost."""
    if not isinstance(step, e.Received):
        return isinstance(step, e.DeltaUnreadable)
    message = step.message
    return isinstance(message, GIVES_UP) or (isinstance(message, messages.Task) and message.fresh)


def job(of: messages.TaskRef, term: int, *, fresh: bool = False) -> messages.Task:
    """Both runs have the same versions 0; all later ones differ."""
    digest = f"{of.base_version + (100 if of.run == 'run-2' and of.base_version else 0):032x}"
    return task(of, term=term, anchor_digest=digest, encoding="int8", fresh=fresh)


def update(number: int, run: str, term: int, digest: str) -> messages.Update:
    """Announced."""
    return messages.Update(term=term, run=run, version=number, bytes=UPDATE_BYTES, digest=digest)


def of_master() -> st.SearchStrategy[e.Event]:
    """What a master may say, also at the wrong time."""
    statuses = st.sampled_from(["accepted", "duplicate", "stale", "refused", "closed"])
    named = st.one_of(
        st.builds(job, REFS, TERMS, fresh=st.booleans()),
        st.builds(update, ROUNDS, RUNS, TERMS, st.sampled_from(["c" * 32, "d" * 32])),
        st.just(messages.Error(code="UPDATE_GONE", text="")),
        st.builds(lambda of, term, ms: messages.Credit(term=term, ref=of, want=[], wait_ms=ms), REFS, TERMS, TERMS),
        st.builds(lambda of, term: messages.Credit(term=term, ref=of, want=[0, 2]), REFS, TERMS),
        st.builds(
            lambda of, term, status: messages.Ack(term=term, ref=of, status=status, code="OK", text=""),
            REFS,
            TERMS,
            statuses,
        ),
        st.builds(lambda of, term: messages.Cancel(term=term, ref=of, reason=""), REFS, TERMS),
        st.builds(
            lambda of, term, counted: messages.RoundClosed(
                term=term,
                run=of.run,
                round=of.round,
                version=of.round + 1,
                digest=BAD,
                counted=[of.lease] if counted else [],
            ),
            REFS,
            TERMS,
            st.booleans(),
        ),
        st.builds(lambda term: messages.Rejoin(term=term, reason=""), TERMS),
        st.just(messages.Reject(code="FULL", text="", retry_after_ms=1000)),
        st.just(messages.Bye(term=1, code="STOPPING", reason="")),
        st.just(messages.Heartbeat(term=1)),
    )
    return st.builds(e.Received, named)


def of_this_pc() -> st.SearchStrategy[e.Event]:
    """What happens here, also at the wrong time."""
    return st.one_of(
        st.sampled_from([e.LinkUp(), e.LinkDown(), e.TrainerReady(1.0), e.TrainerExited(messages.said("gone"))]),
        st.builds(e.LinkFailed, st.sampled_from(list(e.Fault))),
        st.sampled_from(
            [e.AnchorChecked(f"{0:032x}"), e.AnchorChecked(BAD), e.StorageFailed("full"), e.StorageWorks()]
        ),
        st.builds(answer, REFS),
        st.builds(lambda of: e.Anchored(of.lease), REFS),
        st.builds(lambda of: e.AnchorWrong(of.lease, "why"), REFS),
        st.builds(lambda of: e.StorageFailed("full", of.lease), REFS),
        st.builds(lambda of: e.DeltaUnreadable(of.lease, "busy", passing=True), REFS),
        st.builds(lambda of: e.TrainerStopped(of.lease), REFS),
        st.builds(lambda of: e.TrainerFailed(of.lease, "why"), REFS),
        st.builds(lambda of: e.TrainerProgress(of.lease, 1, 7, None, 8), REFS),
    )


def answer(of: messages.TaskRef) -> e.TrainerDone:
    """The trainer has done it."""
    return dataclasses.replace(done(of), delta_bytes=UPDATE_BYTES)


def chunk_of(
    what: messages.What, run: str, version: int, index: int, total: int, count: int, term: int, digest: str
) -> messages.Chunk:
    """On its way."""
    return messages.Chunk(
        term=term,
        what=what,
        run=run,
        version=version,
        index=index,
        count=count,
        total_bytes=total,
        digest=digest,
        crc32=0,
    )


def next_chunk(worker: Driver, *, anew: bool) -> list[c.Command]:
    """The chunk that is missing; `anew`: of an update that the master has made again."""
    state = worker.session._state
    download = state.download
    if download is None or not state.joined():
        return []
    if download.complete():
        return worker(e.AnchorChecked(BAD if anew else download.digest))
    index = download.received.index(False)
    digest = "e" * 32 if anew and download.what == "update" else download.digest or "c" * 32
    total, count = download.total_bytes, len(download.received)
    message = chunk_of(download.what, download.run, download.version, index, total, count, state.term, digest)
    return worker(message, min(download.chunk_bytes, total - index * download.chunk_bytes))


def next_of_trainer(worker: Driver, step: str) -> list[c.Command]:
    """An answer for the task that the trainer has."""
    state = worker.session._state
    if state.given is None:
        return []
    lease = state.given.ref.lease
    if step == "fine":
        return worker(e.Anchored(lease) if state.moving is not None else answer(state.given.ref))
    answers: dict[str, e.Event] = {
        "wrong": e.AnchorWrong(lease, "why"),
        "stopped": e.TrainerStopped(lease),
        "gone": e.TrainerExited(messages.said("why")),
    }
    commands = worker(answers[step])
    if not has(commands, c.CheckAnchor):
        return commands
    return commands + worker(e.AnchorChecked(BAD if state.moving is None else state.moving.digest))


def join_again(worker: Driver) -> list[c.Command]:
    """Whatever holds it up is over."""
    state = worker.session._state
    commands = [] if state.trainer_ready else worker(e.TrainerReady(1.0))
    commands += worker(e.StorageWorks())
    if state.link is Link.CONNECTING:
        commands += worker.wait(5_000) if Timer.RETRY in state.timers else []
        commands += worker(e.LinkUp())
    return commands + (worker.welcome(worker.term) if state.link is Link.JOINING else [])


def play(worker: Driver, step: Any) -> list[c.Command]:
    """One step; what it led to."""
    state = worker.session._state
    match step:
        case "chunk" | "chunk anew":
            return next_chunk(worker, anew=step == "chunk anew")
        case "fine" | "wrong" | "stopped" | "gone":
            return next_of_trainer(worker, step)
        case "join again":
            return join_again(worker)
        case ("announce", int(ahead)):
            run = state.anchor.run or "run-1"
            return worker(update(max(0, state.anchor.version + ahead), run, state.term, "c" * 32))
        case ("task", int(ahead)):
            of = ref(max(0, state.anchor.version + ahead), run=state.anchor.run or "run-1")
            return worker(job(of, state.term))
        case ("update", int(version), int(term)):
            return worker(chunk_of("update", "run-1", version, 0, UPDATE_BYTES, 1, term, "d" * 32), UPDATE_BYTES)
        case ("snapshot", int(version), int(index)):
            return worker.chunk(index, term=worker.term, digest=f"{version:032x}", version=version)
        case (int(term), int(chunk_bytes)):
            return worker.welcome(term, chunk_bytes)
        case int():
            return worker.wait(step)
        case _:
            return worker(step)


class Files:
    """Which updates are whole in the slot, as far as the commands say."""

    def __init__(self) -> None:
        self.whole: set[int] = set()

    def do(self, command: c.Command) -> None:
        """What a command makes of them; before a task is trained its updates must be whole."""
        match command:
            case c.PrepareUpdate():
                assert command.total_bytes == UPDATE_BYTES
                self.whole.discard(command.version)
            case c.StoreChunk() if command.what == "update":
                assert command.offset == 0
                self.whole.add(command.version)
            case c.ForgetUpdates():
                self.whole = {version for version in self.whole if version > command.version}
            case c.Train():
                assert set(command.updates) <= self.whole
            case _:
                pass


def check_replica(worker: Driver, commands: list[c.Command]) -> None:
    """Updates are those after the anchor, without a gap; who waits for a version has asked for it."""
    state = worker.session._state
    first = state.anchor.version + 1
    assert state.updates == list(range(first, first + len(state.updates)))
    assert not state.updates or first > 0
    download = state.download
    if download is not None and download.what == "update":
        assert download.run == state.anchor.run
        assert download.version <= first + len(state.updates)
    assert (state.work is Work.PULLING) <= (download is not None)
    assert (download is not None and download.what == "snapshot") <= (state.work is Work.PULLING)
    if download is not None and not download.complete() and state.joined():
        assert Timer.CHUNK in state.timers
    for train in [one for one in commands if isinstance(one, c.Train)]:
        of = train.task.ref
        if train.updates:
            assert (state.anchor.run, train.updates) == (of.run, tuple(range(first, of.base_version + 1)))
        else:
            assert state.anchor == e.Anchor(of.run, of.base_version, train.task.anchor_digest)


def check_trainer(worker: Driver, commands: list[c.Command], given: messages.Task | None) -> None:
    """The trainer has one task, with a deadline; who waits for it has one, too."""
    state = worker.session._state
    assert (Timer.STEP in state.timers) == (state.given is not None)
    assert not has(commands, c.Train) or state.given not in (None, given)
    waits = worker.session.state == "training" and (state.given is None or state.given is not state.task)
    assert not waits or Timer.TRAINER_FREE in state.timers
    if has(commands, c.Train):
        assert worker.session.state in ("training", "connecting", "joining")


ANY = st.one_of(
    of_master(),
    of_this_pc(),
    st.integers(1, 20_000),
    st.tuples(st.just("update"), ROUNDS, TERMS),
    st.tuples(st.just("snapshot"), ROUNDS, st.integers(0, 2)),
    st.builds(lambda term, size: (term, size * CHUNK_BYTES), TERMS, TERMS),
)
AS_DUE: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(DUE),
    st.sampled_from(DUE),
    st.tuples(st.sampled_from(["announce", "task"]), st.integers(0, 3)),
)
STEPS = st.lists(st.booleans().flatmap(lambda chance: ANY if chance else AS_DUE), min_size=20, max_size=60)


@given(ANCHORS, STEPS)
@settings(max_examples=150, deadline=None)
def test_no_order_of_events_breaks_it_or_loses_a_delta(anchor: e.Anchor, steps: list[Any]) -> None:
    worker, files = Driver(anchor=anchor), Files()
    worker.join()
    for step in steps:
        before, given_before = worker.session.held, worker.session._state.given
        commands = play(worker, step)
        for command in commands:
            files.do(command)
        gone = [delta for delta in before if delta not in worker.session.held]
        assert not gone or may_forget(step)
        assert all(has_forgotten(commands, delta) for delta in gone)
        check_trainer(worker, commands, given_before)
        check_replica(worker, commands)
        assert not has(commands, c.Exit)
        assert worker.session.state in STATES


def has_forgotten(commands: list[c.Command], delta: e.Delta) -> bool:
    """Whether the slot is told, once, and whether it counted."""
    return [one.lease for one in commands if isinstance(one, c.ForgetDelta)].count(delta.ref.lease) == 1


STATES = ("connecting", "enrolling", "joining", "idle", "pulling", "training", "uploading", "holding")
