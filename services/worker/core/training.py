"""The one task that the trainer has: given when it is free, getting on, over. Until it is over, time counts against it.

A cancelled task is over only when the trainer says so: that is how a trainer that stands still is noticed in any case.
"""

from services.common.protocol.messages import Task
from services.worker.core import limits
from services.worker.core.commands import Command, Train
from services.worker.core.events import Anchor
from services.worker.core.state import BYTES_PER_PARAMETER, State, Timer, Work


def anchor_of(task: Task) -> Anchor:
    """The version that a task is trained from."""
    return Anchor(task.ref.run, task.ref.base_version, task.anchor_digest)


def begin(state: State, now_ms: int) -> list[Command]:
    """The task's version is within reach: the trainer's turn."""
    assert state.task is not None
    state.work = Work.TRAINING
    state.step, state.steps_total = 0, state.task.k_steps
    state.progress_at_ms = now_ms
    return give(state, now_ms)


def give(state: State, now_ms: int) -> list[Command]:
    """Give the task in hand to the trainer, or let it wait until the trainer is free."""
    assert state.task is not None
    if not state.trainer_ready or state.given is not None:
        state.arm(Timer.TRAINER_FREE, now_ms + limits.TRAINER_FREE_MS)
        return []
    state.disarm(Timer.TRAINER_FREE)
    state.given = state.task
    state.progress_at_ms = now_ms
    expect_step(state, now_ms)
    needed = anchor_of(state.task)
    if state.anchor.digest == needed.digest:
        return [Train(state.task)]
    state.moving = needed
    return [Train(state.task, tuple(version for version in state.updates if version <= needed.version))]


def give_next(state: State, now_ms: int) -> list[Command]:
    """The trainer may be free by now: give it the task that waits, if there is one."""
    is_free = state.trainer_ready and state.given is None
    waits = state.work is Work.TRAINING and Timer.TRAINER_FREE in state.timers
    return give(state, now_ms) if is_free and waits else []


def over(state: State, lease: str) -> None:
    """The trainer has done with this task, in whatever way."""
    if has(state, lease):
        state.given = None
        state.disarm(Timer.STEP)


def has(state: State, lease: str) -> bool:
    """Whether the trainer has this task."""
    return state.given is not None and state.given.ref.lease == lease


def expect_step(state: State, now_ms: int) -> None:
    """The next sign of progress is due in this time."""
    state.arm(Timer.STEP, now_ms + step_wait_ms(state))


def step_wait_ms(state: State) -> int:
    """How long the trainer may say nothing: some steps, with time for the files of the anchor and the delta."""
    assert state.given is not None
    files_ms = state.given.n_parameters * BYTES_PER_PARAMETER // limits.FILE_BYTES_PER_MS
    return max(limits.STEP_WAIT_MIN_MS + files_ms, limits.STEP_WAIT_FACTOR * state.step_ms)
