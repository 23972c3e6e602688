"""One task: take it or hand it back, train, hold the delta. Its anchor is `replica`, what follows `upload`."""

from services.common.protocol.messages import (
    Cancel,
    Progress,
    Reason,
    RoundClosed,
    Task,
    TaskAck,
    because,
    encoded_bytes,
)
from services.worker.core import hand, limits, replica, training, upload
from services.worker.core.commands import Command, ForgetDelta, Say, Send
from services.worker.core.events import Anchor, Delta, TrainerDone, TrainerFailed, TrainerProgress, TrainerStopped
from services.worker.core.state import BYTES_PER_PARAMETER, State, Timer, Work, place


def on_task(state: State, task: Task, now_ms: int) -> list[Command]:
    """A task while none is in hand."""
    if state.held_by(task.ref.lease) is not None:
        return [Send(TaskAck(term=state.term, ref=task.ref))]  # done already, its delta is on its way
    if (paused := state.paused) is not None:
        return hand.refuse(state, task, paused, busy=True)
    room = upload.make_room(state) if task.fresh and len(state.held) >= limits.HELD_MAX else []
    if len(state.held) >= limits.HELD_MAX:
        return hand.refuse(state, task, because("HOLDS_DELTAS", count=len(state.held)), busy=True)
    if (reason := cannot_do(state, task)) is not None:
        return room + hand.refuse(state, task, reason)
    state.task = training.resolve(state, task)
    state.progress_at_ms = now_ms
    commands: list[Command] = [
        *room,
        Send(TaskAck(term=state.term, ref=task.ref)),
        Say("TASK", f"{place(task.ref)}: {task.samples} samples, {task.k_steps} local steps of {task.batch}"),
    ]
    return commands + replica.reach(state, now_ms)


def on_task_while_busy(state: State, task: Task, now_ms: int) -> list[Command]:
    """A task while another is in hand: the next round's comes after it, a later one makes it stale; else refused."""
    assert state.task is not None
    current = state.task.ref
    queued = state.queued.ref.lease if state.queued is not None else ""
    if task.ref.lease in (current.lease, queued) or state.held_by(task.ref.lease) is not None:
        return [Send(TaskAck(term=state.term, ref=task.ref))]
    if task.is_ahead and (task.ref.run, task.ref.base_version) == (current.run, current.round):
        state.queued = task
        return [
            Send(TaskAck(term=state.term, ref=task.ref)),
            Say("TASK", f"{place(task.ref)}: comes after round {current.round}"),
        ]
    if task.ref.run == current.run and task.ref.round > current.round:
        said: list[Command] = [Say("TASK", f"{place(current)}: stale, round {task.ref.round} is open; dropped")]
        return said + hand.drop(state, now_ms) + on_task(state, task, now_ms)
    return hand.refuse(state, task, because("BUSY_WITH", place=place(current)), busy=True)


def take_queued(state: State, now_ms: int) -> list[Command]:
    """The next round's task, as soon as nothing is in hand. Asked after each event."""
    if state.task is not None or state.queued is None:
        return []
    task, state.queued = state.queued, None
    return on_task(state, task, now_ms)


def cannot_do(state: State, task: Task) -> Reason | None:
    """Why this PC can never do the task; None if it can."""
    copies = limits.PARAMETER_COPIES_ADAMW if task.inner.get("name") == "adamw" else limits.PARAMETER_COPIES
    needed_mib = task.n_parameters * BYTES_PER_PARAMETER * copies // 2**20
    if needed_mib > state.facts.memory_mib:
        memory_mib = state.facts.memory_mib
        return because("MEMORY", parameters=task.n_parameters, needed_mib=needed_mib, memory_mib=memory_mib)
    return None


def on_progress(state: State, event: TrainerProgress, now_ms: int) -> list[Command]:
    """Show the step; tell the master once a second."""
    in_hand = state.task is not None and event.lease == state.task.ref.lease
    if in_hand and event.step > state.step:
        state.step_ms = (now_ms - state.progress_at_ms) // (event.step - state.step)
    if training.has(state, event.lease):
        training.expect_step(state, now_ms)
    if state.task is None or not in_hand:
        return []
    state.step = event.step
    state.progress_at_ms = now_ms
    if not state.joined() or now_ms - state.progress_said_ms < limits.PROGRESS_EVERY_MS:
        return []
    state.progress_said_ms = now_ms
    progress = Progress(
        term=state.term,
        ref=state.task.ref,
        step=event.step,
        steps_total=event.steps_total,
        loss=event.loss,
        samples=event.samples,
    )
    return [Send(progress)]


def on_done(state: State, event: TrainerDone, now_ms: int) -> list[Command]:
    """Hold the delta and offer it."""
    if state.task is None or event.lease != state.task.ref.lease:
        return on_done_unasked(state, event, now_ms)
    training.over(state, event.lease)
    ref = state.task.ref
    needed = encoded_bytes(state.task.encoding, state.task.n_parameters)
    if event.delta_bytes != needed:
        return [
            *hand.give_back(state, because("DELTA_LENGTH", bytes=event.delta_bytes, needed=needed), now_ms),
            ForgetDelta(event.lease),
        ]
    state.trainer_deaths = state.storage_failures = 0
    delta = Delta(
        ref,
        state.task.encoding,
        event.delta_bytes,
        event.digest,
        event.samples,
        event.steps,
        event.correct,
        event.loss,
        event.compute_ms,
        event.sync_ms,
        event.late_ms,
        eager=state.task.eager,
    )
    loss = f"{event.loss:.4f}" if event.loss is not None else "not a number"
    said = Say("DELTA", f"{place(ref)}: {event.steps} steps in {event.compute_ms:.1f} ms, train_loss={loss}")
    state.trained = ref
    hand.release(state)
    return [said, *upload.keep(state, delta), *upload.settle(state, now_ms)]


def on_done_unasked(state: State, event: TrainerDone, now_ms: int) -> list[Command]:
    """The delta of a task that was cancelled in its last step."""
    training.over(state, event.lease)
    forget: list[Command] = [] if state.held_by(event.lease) is not None else [ForgetDelta(event.lease)]
    return forget + training.give_next(state, now_ms)


def on_trainer_failed(state: State, event: TrainerFailed, now_ms: int) -> list[Command]:
    """The trainer says why it cannot do the task."""
    training.over(state, event.lease)
    if state.task is None or event.lease != state.task.ref.lease:
        return training.give_next(state, now_ms)
    replica.void(state)  # the file of the anchor may be what is wrong
    return hand.give_back(state, because("TRAINER_FAILED", why=event.reason), now_ms)


def on_trainer_stopped(state: State, event: TrainerStopped, now_ms: int) -> list[Command]:
    """A cancelled task is over."""
    in_hand = state.work is Work.TRAINING and state.task is not None and event.lease == state.task.ref.lease
    training.over(state, event.lease)
    if in_hand and Timer.TRAINER_FREE not in state.timers:
        return hand.give_back(state, because("TRAINER_STOPPED"), now_ms, busy=True)
    return training.give_next(state, now_ms)


def on_trainer_late(state: State, now_ms: int) -> list[Command]:
    """A task waited for the trainer for too long."""
    if state.task is None:
        return []
    seconds = limits.TRAINER_FREE_MS // 1000
    return hand.give_back(state, because("TRAINER_BUSY", seconds=seconds), now_ms, busy=True)


def on_cancel(state: State, message: Cancel, now_ms: int) -> list[Command]:
    """Stop the task in hand if it is meant, or forget the next; else a held delta may be."""
    if state.queued is not None and message.ref.lease == state.queued.ref.lease:
        state.queued = None
        return [Say("TASK", f"{place(message.ref)}: cancelled: {message.reason}")]
    if state.task is None or message.ref.lease != state.task.ref.lease:
        return upload.on_cancel(state, message, now_ms)
    said: list[Command] = [Say("TASK", f"{place(message.ref)}: cancelled: {message.reason}")]
    return said + hand.drop(state, now_ms)


def on_round_closed(state: State, message: RoundClosed, now_ms: int) -> list[Command]:
    """A round that closed without this task makes it void; for a task that is ahead its version is the base."""
    if message.run != state.closed.run or message.version > state.closed.version:
        state.closed = Anchor(message.run, message.version, message.digest)
    commands: list[Command] = []
    if state.queued is not None and state.queued.ref.run == message.run and state.queued.ref.round <= message.round:
        state.queued = None
    if state.task is not None and state.task.ref.run == message.run and state.task.ref.round <= message.round:
        commands = [
            Say("TASK", f"{place(state.task.ref)}: the round closed without it; dropped"),
            *hand.drop(state, now_ms),
        ]
    commands += upload.on_round_closed(state, message, now_ms)
    if state.task is not None and training.resolve(state, state.task) is not state.task:
        commands += replica.rebase(state, now_ms)
    return commands
