"""Putting a task out of hand: dropped, or handed back to the master, whole and with the reason."""

from services.common.protocol.messages import Drain, Reason, Task, TaskRefuse
from services.worker.core import limits, training, upload
from services.worker.core.commands import Command, Say, Send, StopTraining
from services.worker.core.state import State, Timer, place


def refuse(state: State, task: Task, reason: Reason, *, busy: bool = False) -> list[Command]:
    """Hand a task back, whole. `busy`: it is not the task's fault."""
    text = reason.text[: limits.REASON_LENGTH_MAX]
    return [
        Say("TASK", f"{place(task.ref)}: handed back: {text}"),
        Send(TaskRefuse(term=state.term, ref=task.ref, reason=text, reason_said=reason, busy=busy)),
    ]


def drained(state: State) -> list[Command]:
    """Tell the master why no tasks are taken, if so."""
    why = state.paused
    return [] if why is None else [Send(Drain(term=state.term, reason=why.text, reason_said=why))]


def give_back(state: State, reason: Reason, now_ms: int, *, busy: bool = False) -> list[Command]:
    """Hand back the task in hand. Without a link nothing is sent: HELLO will not name it as `working`."""
    assert state.task is not None
    task = state.task
    return drop(state, now_ms) + refuse(state, task, reason, busy=busy)


def drop(state: State, now_ms: int) -> list[Command]:
    """Stop the task in hand and forget it."""
    assert state.task is not None
    lease = state.task.ref.lease
    stop: list[Command] = [StopTraining(lease)] if training.has(state, lease) else []
    release(state)
    return stop + upload.settle(state, now_ms)


def release(state: State) -> None:
    """No task is in hand any more. An update on its way is for the next one, too."""
    state.task = None
    state.rebasing = state.awaits_base = False
    state.step = state.steps_total = 0
    state.disarm(Timer.TRAINER_FREE)
    if state.download is not None and state.download.what == "snapshot":
        state.download = None
        state.disarm(Timer.CHUNK)
