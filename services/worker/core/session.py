"""The worker's session: only `step(event, now_ms) -> commands` changes it. No clock, no chance, no I/O.

Two total tables, (link, kind) and (work, kind), say for every event what handles it, or why it is ignored. A kind is
the class of an event or of a received message. Deadlines are in `TIMERS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from services.common.protocol import messages
from services.worker.core import events, limits, link, replica, storage, trainer_process, training, upload, work
from services.worker.core.commands import Command, Say
from services.worker.core.state import Facts, Link, State, Timer, Work, sender_term


@dataclass(frozen=True)
class Ignore:
    """An event that changes nothing in this state, and why."""

    reason: str


Handler: TypeAlias = Callable[[State, Any, int], list[Command]]
Row: TypeAlias = dict[type[Any], "Handler | Ignore"]

PARKED = Ignore("parked: only another start leads out")
STOPPED = Ignore("the agent is ending")
NOT_UP = Ignore("there is no connection that could bring it; it is a late one")
ENROLS = Ignore("under the join key only ENROLLED and REJECT count")
HAS_KEY = Ignore("enrolled already; this connection is under the own key")
STARTED = Ignore("started already")
UP = Ignore("the connection is up; a failed attempt is an old one")
HELLO_SENT = Ignore("HELLO is on its way; its deadline repeats it")

_ALWAYS: Row = {
    events.Stop: link.on_stop,
    events.TrainerReady: link.on_trainer_ready,
    events.TrainerExited: trainer_process.on_trainer_exited,
    events.BadMessage: link.on_bad_message,
    messages.Error: link.on_error,
    messages.Heartbeat: link.on_heartbeat,
}
_CONNECTED: Row = _ALWAYS | {
    events.Start: STARTED,
    events.LinkUp: link.on_link_up,
    events.LinkDown: link.on_link_down,
    events.LinkFailed: UP,
    messages.Reject: link.on_reject,
    messages.Bye: link.on_bye,
    messages.Drain: link.on_drain,
}
LINK_TABLE: dict[Link, Row] = {
    Link.CONNECTING: _ALWAYS
    | {
        events.Start: link.on_start,
        events.LinkUp: link.on_link_up,
        events.LinkDown: Ignore("not up: the attempt that failed says why by itself"),
        events.LinkFailed: link.on_link_failed,
        messages.Enrolled: NOT_UP,
        messages.Welcome: NOT_UP,
        messages.Reject: link.on_reject,
        messages.Rejoin: NOT_UP,
        messages.Bye: link.on_bye,
        messages.Drain: NOT_UP,
    },
    Link.ENROLLING: _CONNECTED
    | {messages.Enrolled: link.on_enrolled, messages.Welcome: ENROLS, messages.Rejoin: ENROLS},
    Link.JOINING: _CONNECTED
    | {messages.Enrolled: HAS_KEY, messages.Welcome: link.on_welcome, messages.Rejoin: HELLO_SENT},
    Link.JOINED: _CONNECTED
    | {messages.Enrolled: HAS_KEY, messages.Welcome: link.on_welcome_again, messages.Rejoin: link.on_rejoin},
}
LINK_KINDS = tuple(LINK_TABLE[Link.JOINED])
LINK_TABLE[Link.PARKED] = dict.fromkeys(LINK_KINDS, PARKED) | {events.Stop: link.on_stop}
LINK_TABLE[Link.STOPPED] = dict.fromkeys(LINK_KINDS, STOPPED)

_NO_TASK: Row = {
    messages.Task: work.on_task,
    messages.Update: replica.on_update,
    messages.Chunk: replica.on_chunk,
    messages.Credit: upload.on_credit,
    messages.Ack: upload.on_ack,
    messages.RoundClosed: work.on_round_closed,
    messages.Cancel: upload.on_cancel,
    events.AnchorChecked: replica.on_anchor_checked,
    events.Anchored: replica.on_anchored,
    events.AnchorWrong: replica.on_anchor_wrong,
    events.StorageFailed: storage.on_storage_failed,
    events.StorageWorks: storage.on_storage_works,
    events.DeltaUnreadable: upload.on_delta_unreadable,
    events.TrainerProgress: work.on_progress,
    events.TrainerDone: work.on_done_unasked,
    events.TrainerWaits: training.on_waits,
    events.TrainerStopped: work.on_trainer_stopped,
    events.TrainerFailed: work.on_trainer_failed,
}
_BUSY: Row = _NO_TASK | {
    messages.Task: work.on_task_while_busy,
    messages.Cancel: work.on_cancel,
}
WORK_TABLE: dict[Work, Row] = {
    Work.IDLE: _NO_TASK,
    Work.PULLING: _BUSY | {messages.Credit: replica.on_pull_wait},
    Work.TRAINING: _BUSY | {events.TrainerDone: work.on_done},
    Work.UPLOADING: _NO_TASK,
    Work.HOLDING: _NO_TASK,
}
WORK_KINDS = tuple(_NO_TASK)

_TIMERS = list(Timer)  # in the order in which those that are due at one time are served
TIMERS: dict[Timer, Callable[[State, int], list[Command]]] = {
    Timer.RETRY: link.on_retry,
    Timer.CONNECT: link.on_connect_timeout,
    Timer.ANSWER: link.on_answer_timeout,
    Timer.HEARTBEAT: link.on_heartbeat_timer,
    Timer.SUSPECT: link.on_suspect,
    Timer.LOST: link.on_lost,
    Timer.CHUNK: replica.on_chunk_silence,
    Timer.OFFER: upload.on_offer_silence,
    Timer.TRAINER_START: trainer_process.on_trainer_start,
    Timer.TRAINER_READY: trainer_process.on_starting,
    Timer.TRAINER_FREE: work.on_trainer_late,
    Timer.STEP: trainer_process.on_standstill,
    Timer.STORAGE: storage.on_storage_timer,
    Timer.PARKED: link.on_parked_timer,
}


class Session:
    """One worker's conversation with its master, and what it does in between."""

    def __init__(self, facts: Facts) -> None:
        self._state = State(
            facts,
            endpoints=facts.endpoints,
            enrolled=facts.enrolled,
            own_key=facts.enrolled,
            can_enrol=facts.can_enrol,
            held=list(facts.held),
            anchor=facts.anchor,
            work=Work.UPLOADING if facts.held else Work.IDLE,
        )

    @property
    def state(self) -> str:
        """One word: the work while joined, else how the worker stands with its master."""
        return self._state.work.value if self._state.joined() else self._state.link.value

    @property
    def held(self) -> tuple[events.Delta, ...]:
        """The deltas that must not be lost."""
        return tuple(self._state.held)

    def step(self, event: events.Event, now_ms: int) -> list[Command]:
        """What to do about `event`, in order. `now_ms` is monotonic."""
        if isinstance(event, events.Tick):
            return self._tick(event, now_ms)
        if not isinstance(event, events.Received):
            commands = self._dispatch(event, type(event), now_ms)
        else:
            commands = link.heard(self._state, now_ms) + self._dispatch(event, type(event.message), now_ms)
        if self._state.link in (Link.PARKED, Link.STOPPED):
            return commands
        return commands + work.take_queued(self._state, now_ms)

    def _dispatch(self, event: Any, kind: type[Any], now_ms: int) -> list[Command]:
        state = self._state
        subject = event.message if isinstance(event, events.Received) else event
        if kind in LINK_TABLE[state.link]:
            cell = LINK_TABLE[state.link][kind]
        elif state.link in (Link.PARKED, Link.STOPPED) or self._out_of_session(subject):
            return []
        else:
            cell = WORK_TABLE[state.work][kind]
        if isinstance(cell, Ignore):
            return []
        return cell(state, event if kind is messages.Chunk else subject, now_ms)

    def _out_of_session(self, subject: object) -> bool:
        """Whether this is a message of the master that belongs to no session, or to that of another term."""
        if not isinstance(subject, messages.Message):
            return False
        return not self._state.joined() or sender_term(subject) != self._state.term

    def _tick(self, event: events.Tick, now_ms: int) -> list[Command]:
        state = self._state
        state.jitter = event.jitter
        commands: list[Command] = []
        gap_ms = now_ms - state.last_tick_ms if state.last_tick_ms is not None else 0
        state.last_tick_ms = now_ms
        if gap_ms > limits.SUSPENDED_HEARTBEATS * state.heartbeat_ms:
            commands.append(Say("WARN", f"this PC slept for {gap_ms // 1000} s; all waits start again"))
            state.progress_at_ms += gap_ms
            for timer in state.timers:
                state.timers[timer] += gap_ms
        due = [timer for timer, at_ms in state.timers.items() if at_ms <= now_ms]
        for timer in sorted(due, key=_TIMERS.index):
            if state.timers.get(timer, now_ms + 1) <= now_ms:  # else the one before has put it off
                del state.timers[timer]
                commands += TIMERS[timer](state, now_ms)
        return commands
