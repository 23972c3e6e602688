"""Offering finished deltas to the master, one after another, until each is accepted in the present term.

A delta leaves the slot only when ROUND_CLOSED names its round, when ACK says stale, refused or closed, or by CANCEL.
"""

from services.common.protocol.messages import (
    Ack,
    Cancel,
    Credit,
    DeltaBegin,
    DeltaCommit,
    RoundClosed,
    TaskRefuse,
    because,
)
from services.worker.core import limits
from services.worker.core.commands import Command, ForgetDelta, KeepDelta, Say, Send, SendChunks
from services.worker.core.events import Delta, DeltaUnreadable
from services.worker.core.state import Offer, State, Timer, Work, place


def settle(state: State, now_ms: int) -> list[Command]:
    """After anything that may change what is held or in hand: name the work, and offer the next delta if there is one.

    Offering goes on beside a task, so a delta never waits for the next one to be trained.
    """
    waiting = [delta for delta in state.held if delta.accepted_session != state.session]
    if state.task is None:
        state.work = Work.UPLOADING if waiting else Work.HOLDING if state.held else Work.IDLE
    if not waiting or not state.joined():
        state.offer = None
        state.disarm(Timer.OFFER)
        return []
    if state.offer is not None and state.offer.lease == waiting[0].ref.lease:
        return []
    return offer(state, waiting[0], now_ms)


def offer(state: State, delta: Delta, now_ms: int) -> list[Command]:
    """DELTA_BEGIN, from the start of the conversation; the master's CREDIT asks only for what it lacks."""
    chunks = max(1, -(-delta.delta_bytes // state.chunk_bytes))
    state.offer = Offer(delta.ref.lease, chunks, window=state.window_chunks)
    state.arm(Timer.OFFER, now_ms + limits.SILENCE_MS)
    sent = min(state.window_chunks, chunks) if delta.eager else 0
    delta.eager = False
    begin = begin_of(delta, state.term, chunks, state.chunk_bytes, sent)
    if not sent:
        return [Send(begin)]
    state.offer.begun, state.offer.highest = True, sent - 1
    commands: list[Command] = [Send(begin), SendChunks(state.term, delta.ref, tuple(range(sent)), state.chunk_bytes)]
    return commands + (_commit(state, delta) if sent == chunks else [])


def begin_of(delta: Delta, term: int, chunks: int, chunk_bytes: int, sent: int = 0) -> DeltaBegin:
    """DELTA_BEGIN; ValueError when the delta is none that could be offered."""
    return DeltaBegin(
        term=term,
        ref=delta.ref,
        encoding=delta.encoding,
        bytes=delta.delta_bytes,
        chunks=chunks,
        chunk_bytes=chunk_bytes,
        sent=sent,
        digest=delta.digest,
        samples=delta.samples,
        steps=delta.steps,
        correct=delta.correct,
        loss=delta.loss,
        compute_ms=delta.compute_ms,
        late_ms=delta.late_ms,
        sync_ms=delta.sync_ms,
    )


def _commit(state: State, delta: Delta) -> list[Command]:
    assert state.offer is not None
    state.offer.committed = True
    return [Send(DeltaCommit(term=state.term, ref=delta.ref, digest=delta.digest))]


def keep(state: State, delta: Delta) -> list[Command]:
    """A new delta is held from now on."""
    state.held.append(delta)
    state.held.sort(key=lambda one: (one.ref.run, one.ref.round, one.ref.shard))
    return [KeepDelta(delta)]


def forget(state: State, delta: Delta, *, counted: bool = False) -> list[Command]:
    """A delta is of no more use; `counted`: it is part of a version."""
    state.held.remove(delta)
    if state.offer is not None and state.offer.lease == delta.ref.lease:
        state.offer = None
        state.disarm(Timer.OFFER)
    return [ForgetDelta(delta.ref.lease, counted)]


def make_room(state: State) -> list[Command]:
    """Units carry nothing over: one that the master has accepted can be made again, should the master lose it."""
    accepted = next((one for one in state.held if one.accepted_session == state.session), None)
    return forget(state, accepted) if accepted is not None else []


def on_credit(state: State, message: Credit, now_ms: int) -> list[Command]:
    """Send what is wanted; commit once the master must have every chunk; or wait for a place.

    The master asks for missing chunks in rising order, a window at first: less than a window was all that is missing.
    A commit too early does no harm, it is answered by CREDIT for the gaps.
    """
    delta = state.held_by(message.ref.lease)
    if delta is None or state.offer is None or state.offer.lease != message.ref.lease:
        return []
    if not message.want and message.wait_ms:
        state.arm(Timer.OFFER, now_ms + max(message.wait_ms, limits.CREDIT_WAIT_MIN_MS))
        return []
    want = sorted(index for index in message.want if index < state.offer.chunks)
    if want and state.offer.committed:  # the master found gaps: the conversation goes on from the first
        state.offer = Offer(delta.ref.lease, state.offer.chunks, window=state.window_chunks)
    state.arm(Timer.OFFER, now_ms + limits.SILENCE_MS)
    commands: list[Command] = []
    if want:
        commands.append(SendChunks(state.term, delta.ref, tuple(want), state.chunk_bytes))
    if state.offer.all_given(want) and not state.offer.committed:
        commands += _commit(state, delta)
    return commands


def on_ack(state: State, message: Ack, now_ms: int) -> list[Command]:
    """The verdict: hold what is accepted, forget what is refused for good."""
    state.read_faults = 0
    delta = state.held_by(message.ref.lease)
    if delta is None:
        return []
    where = place(delta.ref)
    if message.status in ("accepted", "duplicate"):
        delta.accepted_session = state.session
        said: list[Command] = [Say("DELTA", f"{where}: {message.status}; held until the round is closed")]
        return said + settle(state, now_ms)
    said = [Say("DELTA", f"{where}: {message.status}, forgotten: {message.text}")]
    return said + forget(state, delta, counted=message.status == "closed") + settle(state, now_ms)


def on_round_closed(state: State, message: RoundClosed, now_ms: int) -> list[Command]:
    """The round is durable: its deltas, and those of earlier rounds of the run, are of no more use."""
    commands: list[Command] = []
    for delta in [one for one in state.held if one.ref.run == message.run and one.ref.round <= message.round]:
        counted = delta.ref.lease in message.counted
        verdict = "counted" if counted else "not counted; its data comes again"
        commands.append(Say("DELTA", f"{place(delta.ref)}: the round is closed, {verdict}"))
        commands += forget(state, delta, counted=counted)
    return commands + settle(state, now_ms)


def on_cancel(state: State, message: Cancel, now_ms: int) -> list[Command]:
    """A held delta that the master does not want."""
    delta = state.held_by(message.ref.lease)
    if delta is None:
        return []
    said: list[Command] = [Say("DELTA", f"{place(delta.ref)}: cancelled, forgotten: {message.reason}")]
    return said + forget(state, delta) + settle(state, now_ms)


def on_delta_unreadable(state: State, event: DeltaUnreadable, now_ms: int) -> list[Command]:
    """It may be read a little later; else it is lost: hand its shard back, so that nobody waits for it."""
    delta = state.held_by(event.lease)
    if delta is None:
        return []
    state.read_faults += 1
    if event.passing and state.read_faults <= limits.READ_FAULTS_MAX:  # the deadline offers it again
        return state.say_once("WARN", f"{place(delta.ref)}: {event.text}; trying again", now_ms)
    state.read_faults = 0
    commands: list[Command] = [Say("WARN", f"{place(delta.ref)}: the delta is lost: {event.text}")]
    if state.joined():
        why = because("DISK_FAILED", why=event.text)
        refuse = TaskRefuse(term=state.term, ref=delta.ref, reason=why.text, reason_said=why, busy=True)
        commands.append(Send(refuse))
    return commands + forget(state, delta) + settle(state, now_ms)


def on_offer_silence(state: State, now_ms: int) -> list[Command]:
    """Neither CREDIT nor ACK came: say DELTA_BEGIN again."""
    delta = state.held_by(state.offer.lease) if state.offer is not None else None
    return offer(state, delta, now_ms) if delta is not None and state.joined() else []
