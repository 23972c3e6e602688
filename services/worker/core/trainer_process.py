"""The trainer process as the session sees it: starting, ready, standing still, gone, started again with a limit."""

from services.common.protocol.messages import Reason, because
from services.worker.core import hand, limits, training
from services.worker.core.commands import CheckAnchor, Command, Say, StartTrainer, StopTrainer
from services.worker.core.events import TrainerExited, TrainerReady
from services.worker.core.state import State, Timer, Work


def start(state: State, now_ms: int) -> list[Command]:
    """Start it; from now on time counts against it."""
    state.trainer_words = 0
    state.arm(Timer.TRAINER_READY, now_ms + limits.TRAINER_WORD_EVERY_MS)
    return [StartTrainer()]


def ready(state: State, event: TrainerReady, now_ms: int) -> list[Command]:
    """It may have the task that waited for it."""
    state.trainer_ready = True
    state.score = event.score
    state.trainer_paused = None
    state.disarm(Timer.TRAINER_READY)
    said = Say("TRAINER", f"process {event.pid} is ready: {event.score:.0f} samples/s")
    return [said, *training.give_next(state, now_ms)]


def restart(state: State, reason: Reason, now_ms: int) -> list[Command]:
    """It is gone: its task goes back, it is started later and later, and in the end no tasks are taken till then."""
    was_ready, state.trainer_ready = state.trainer_ready, False
    state.given = state.trained = None
    state.disarm(Timer.STEP, Timer.TRAINER_READY)
    state.trainer_deaths += 1
    wait_ms = limits.TRAINER_RETRY_MS[min(state.trainer_deaths, len(limits.TRAINER_RETRY_MS)) - 1]
    state.arm(Timer.TRAINER_START, now_ms + wait_ms)
    again = because("TRAINER_AGAIN", why=reason, seconds=wait_ms // 1000)
    commands: list[Command] = [Say("WARN", again.text), *([CheckAnchor()] if state.moving is not None else [])]
    if state.trainer_deaths >= limits.TRAINER_DEATHS_BEFORE_PAUSE:
        state.trainer_paused = because("TRAINER_DIES", why=reason, times=state.trainer_deaths)
        if state.joined():
            commands += hand.drained(state)
    if state.work is Work.TRAINING and (was_ready or state.trainer_paused is not None):
        commands += hand.give_back(state, again, now_ms)
    return commands


def on_trainer_exited(state: State, event: TrainerExited, now_ms: int) -> list[Command]:
    """It died, or could not be started."""
    return restart(state, event.reason, now_ms)


def on_trainer_start(state: State, now_ms: int) -> list[Command]:
    """The wait after its end is over."""
    return start(state, now_ms)


def on_starting(state: State, now_ms: int) -> list[Command]:
    """It starts and starts: say so now and then, and in the end begin anew."""
    state.trainer_words += 1
    waited_ms = state.trainer_words * limits.TRAINER_WORD_EVERY_MS
    if waited_ms < limits.TRAINER_READY_MS:
        state.arm(Timer.TRAINER_READY, now_ms + limits.TRAINER_WORD_EVERY_MS)
        joins = "" if state.score is not None else "; this PC joins as soon as it is ready"
        return [Say("TRAINER", f"the trainer has been starting for {waited_ms // 1000} s{joins}")]
    reason = because("TRAINER_NOT_READY", seconds=limits.TRAINER_READY_MS // 1000)
    return [StopTrainer(), *restart(state, reason, now_ms)]


def on_standstill(state: State, now_ms: int) -> list[Command]:
    """It has a task and does not get on: stopped, swapped out, or stuck in reading."""
    if state.given is None:
        return []
    reason = because("TRAINER_STANDS", seconds=training.step_wait_ms(state) // 1000)
    return [StopTrainer(), *restart(state, reason, now_ms)]
