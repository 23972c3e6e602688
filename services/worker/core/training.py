"""The one task that the trainer has: given when it is free, getting on, over. Until it is over, time counts against it.

A cancelled task is over only when the trainer says so: that is how a trainer that stands still is noticed in any case.
"""

from services.common.protocol.messages import Task
from services.worker.core import limits
from services.worker.core.commands import Command, Rebase, Train
from services.worker.core.events import Anchor, TrainerWaits
from services.worker.core.state import BYTES_PER_PARAMETER, State, Timer, Work


def anchor_of(task: Task) -> Anchor:
    """The version that a task begins with."""
    version = task.ref.base_version if task.start_version is None else task.start_version
    return Anchor(task.ref.run, version, task.anchor_digest)


def resolve(state: State, task: Task) -> Task:
    """The task with its base, if that is announced by now; else as it is."""
    known = (state.closed.run, state.closed.version) == (task.ref.run, task.ref.base_version)
    return task.based(state.closed.digest) if task.is_ahead and known else task


def goes_on(state: State, task: Task) -> bool:
    """Whether a task begins where the trainer's last one ended: its base is what that one goes into."""
    before = state.trained
    return task.is_ahead and before is not None and (before.run, before.round) == (task.ref.run, task.ref.base_version)


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
    continues = goes_on(state, state.task)
    state.trained = None
    if continues:
        return [Train(state.task, goes_on=True)]
    needed = anchor_of(state.task)
    if state.anchor.digest == needed.digest:
        return [Train(state.task)]
    state.moving = needed
    return [Train(state.task, _updates_to(state, needed))]


def rebase(state: State, now_ms: int) -> list[Command]:
    """The base of the task that the trainer has is here: the trainer goes over to it."""
    assert state.given is not None
    state.rebasing = state.awaits_base = False
    expect_step(state, now_ms)
    base = anchor_of(state.given)
    if state.anchor.digest == base.digest:
        return [Rebase(state.given)]
    state.moving = base
    return [Rebase(state.given, _updates_to(state, base))]


def on_waits(state: State, event: TrainerWaits, now_ms: int) -> list[Command]:
    """Nothing to do for the trainer until the base is here. The heartbeat tells: the news of it may be lost."""
    del now_ms
    if has(state, event.lease) and state.given is not None and (state.given.is_ahead or state.rebasing):
        state.awaits_base = True
        state.disarm(Timer.STEP)
    return []


def _updates_to(state: State, needed: Anchor) -> tuple[int, ...]:
    return tuple(version for version in state.updates if version <= needed.version)


def give_next(state: State, now_ms: int) -> list[Command]:
    """The trainer may be free by now: give it the task that waits, if there is one."""
    is_free = state.trainer_ready and state.given is None
    waits = state.work is Work.TRAINING and Timer.TRAINER_FREE in state.timers
    return give(state, now_ms) if is_free and waits else []


def over(state: State, lease: str) -> None:
    """The trainer has done with this task, in whatever way."""
    if has(state, lease):
        state.given = None
        state.rebasing = state.awaits_base = False
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
