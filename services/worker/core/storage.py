"""A full or broken disk: this worker says so, takes no work, and looks later and later whether the disk works again."""

from services.common.protocol.messages import Reason, because
from services.worker.core import hand, limits, replica, training
from services.worker.core.commands import CheckStorage, Command, Say
from services.worker.core.events import StorageFailed, StorageWorks
from services.worker.core.state import BYTES_PER_PARAMETER, State, Timer

FILES_PER_TASK = 5  # anchor, delta, residual before and after, updates


def on_storage_failed(state: State, event: StorageFailed, now_ms: int) -> list[Command]:
    """Pause, and hand the task back whose file it was. DRAIN goes first, so that no other task comes in between."""
    task, reason = state.task, because("DISK_FAILED", why=event.text)
    if event.lease:
        training.over(state, event.lease)
    if task is not None:
        state.storage_needed_bytes = FILES_PER_TASK * BYTES_PER_PARAMETER * task.n_parameters
    commands = pause(state, reason, now_ms)
    if task is not None and (event.lease == task.ref.lease or (not event.lease and replica.is_awaited(state))):
        replica.void(state)  # its file may be what failed
        return commands + hand.give_back(state, reason, now_ms, busy=True)
    if not event.lease:
        state.download = None
    return commands + training.give_next(state, now_ms)


def pause(state: State, reason: Reason, now_ms: int) -> list[Command]:
    """Take no tasks; look again after a wait that doubles with each failure."""
    if state.storage_paused is not None and Timer.STORAGE in state.timers:
        return []  # the same trouble: one look is due already
    state.storage_failures += 1
    doublings = min(state.storage_failures - 1, 16)
    wait_ms = min(limits.STORAGE_RETRY_MAX_MS, limits.STORAGE_RETRY_BASE_MS * 2**doublings)
    state.arm(Timer.STORAGE, now_ms + wait_ms)
    is_news = reason != state.storage_paused
    state.storage_paused = reason
    drain = hand.drained(state) if is_news and state.joined() else []
    return [Say("WARN", f"{reason}; trying again in {wait_ms // 1000} s"), *drain]


def on_storage_timer(state: State, now_ms: int) -> list[Command]:
    """The wait is over."""
    del now_ms
    return [CheckStorage(state.storage_needed_bytes)]


def on_storage_works(state: State, event: StorageWorks, now_ms: int) -> list[Command]:
    """Take tasks again; the next HEARTBEAT tells the master."""
    del event, now_ms
    if state.storage_paused is None:
        return []
    state.storage_paused = None
    return [Say("TASK", "the disk works again; this PC takes tasks")]
