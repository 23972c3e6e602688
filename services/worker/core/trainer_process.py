"""The trainer process as the session sees it: ready, dead, started again with a limit."""

from services.common.protocol.messages import Drain
from services.worker.core import limits, link, work
from services.worker.core.commands import Command, Say, Send, StartTrainer, Train
from services.worker.core.events import TrainerExited, TrainerReady
from services.worker.core.state import Link, State, Timer, Work


def on_trainer_ready(state: State, event: TrainerReady, now_ms: int) -> list[Command]:
    """Say HELLO or start the task that waited for it."""
    state.trainer_ready = True
    state.score = event.score
    state.paused = ""
    state.disarm(Timer.TRAINER_READY)
    commands: list[Command] = [Say("TRAINER", f"process {event.pid} is ready: {event.score:.0f} samples/s")]
    if state.work is Work.TRAINING and state.task is not None:
        state.progress_at_ms = now_ms
        commands.append(Train(state.task))
    if state.link is Link.JOINING and Timer.ANSWER not in state.timers:
        commands += link.introduce(state, now_ms)
    return commands


def on_trainer_exited(state: State, event: TrainerExited, now_ms: int) -> list[Command]:
    """Hand the task back at once; start again, later and later; after some deaths in a row take no tasks till then."""
    was_ready, state.trainer_ready = state.trainer_ready, False
    state.trainer_deaths += 1
    wait_ms = limits.TRAINER_RETRY_MS[min(state.trainer_deaths, len(limits.TRAINER_RETRY_MS)) - 1]
    state.arm(Timer.TRAINER_START, now_ms + wait_ms)
    commands: list[Command] = [Say("WARN", f"{event.reason}; starting it again in {wait_ms // 1000} s")]
    if state.trainer_deaths >= limits.TRAINER_DEATHS_BEFORE_PAUSE:
        state.paused = f"{event.reason}, {state.trainer_deaths} times in a row"
        if state.joined():
            commands.append(Send(Drain(term=state.term, reason=state.paused)))
    if state.work is Work.TRAINING and (was_ready or state.paused):
        commands += work.give_back(state, event.reason, now_ms)
    return commands


def on_trainer_start(state: State, now_ms: int) -> list[Command]:
    """The wait is over."""
    del state, now_ms
    return [StartTrainer()]
