"""A simulated trainer process: it really computes, and only pretends the time that this takes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from services.common.learning import build_inner, build_model, bytes_digest, load, run_local_steps
from services.common.learning.encodings import check, decode, encode
from services.common.learning.exchange import follow, pack_residual, unpack_residual
from services.common.protocol.messages import Task
from services.tests.simulation.slot import FULL, Floats, Pace, Slot
from services.tests.simulation.world import World
from services.worker.core import events as e
from services.worker.shell.trainer import local_task

READY_MS = (200, 2_000)
STOP_MS = (1, 50)
THAW_MS = 1_000  # how often a frozen one looks
LINE_MS = 1  # a line takes so long to the agent; no line overtakes another
_DATA: dict[str, Any] = {}


class Later(Protocol):
    """Do this later, as long as the agent lives; not while its PC sleeps."""

    def __call__(self, wait_ms: float, action: Callable[[], None]) -> None:
        """Ask for it."""


@dataclass(frozen=True)
class Made:
    """A delta as it was sent, with what was owed before (None: nothing) and what is after, should it be counted."""

    task: Task
    digest: str
    sent: Floats
    owed: Floats | None
    left_over: Floats | None


Heard = Callable[[Made], None]


class Trainer:
    """All trainer processes of one agent, one after the other. `say` tells the agent; `made` hears of each delta."""

    def __init__(
        self,
        world: World,
        slot: Slot,
        pace: Pace,
        later: Later,
        say: Callable[[e.Event], None],
        made: Heard,
    ) -> None:
        self.world, self.slot, self.pace = world, slot, pace
        self._later, self._say, self._made = later, say, made
        self._process = 0  # which one; an older one's words are lost
        self._dead = True  # what the agent says to it is lost: it may not know yet
        self._lease = ""  # in work
        self._base: Floats | None = None  # of the work that is ahead
        self._waits: Callable[[], None] | None = None  # what to do when it comes
        self._local: tuple[str, int, Floats] | None = None  # run, round, parameters after the last step
        self._ended: tuple[str, int, float] = ("", 0, 0.0)  # run, round, when its steps ended
        self._sync_ms: int | None = None

    def start(self) -> None:
        """Spawn it."""
        self._process += 1
        self._dead = False
        self._tell(self.world.chance.randint(*READY_MS), e.TrainerReady(self.pace.samples_per_s, 1))

    def stop(self) -> None:
        """It is gone, and says nothing more."""
        self._process += 1
        self._dead = True
        self._lease, self._local = "", None

    def stop_training(self, lease: str) -> None:
        """It gives up the piece of work, a little later."""
        if self._dead:
            return
        self._lease = ""
        self._tell(self.world.chance.randint(*STOP_MS), e.TrainerStopped(lease))

    def train(self, task: Task, updates: tuple[int, ...], *, goes_on: bool) -> None:
        """Begin a piece of work."""
        if self._dead:
            return
        lease = self._lease = task.ref.lease
        self._base, self._waits, self._sync_ms = None, None, None
        if goes_on:
            assert self._local is not None
            assert self._local[:2] == (task.ref.run, task.ref.base_version)
            anchor = self._local[2]
        else:
            reached = self._reach(task, updates)
            if reached is None:
                return
            anchor = reached
            self._note_sync(task)
        process, samples = self._process, task.k_steps * task.batch
        duration_ms = 1000.0 * samples / self.pace.samples_per_s
        self._tell(duration_ms / 2, e.TrainerProgress(lease, task.k_steps // 2, task.k_steps, 1.0, samples // 2))

        def finish() -> None:
            if self._process != process or self._lease != lease:
                return
            if self.pace.frozen:
                self._later(THAW_MS, finish)
            elif task.is_ahead and self._base is None:
                self._waits = finish
                self._say(e.TrainerWaits(lease))
            else:
                self._finish(task, anchor, int(duration_ms))

        self._later(duration_ms, finish)

    def rebase(self, task: Task, updates: tuple[int, ...]) -> None:
        """The base of the work in hand. It really takes its place before the first step, whenever it comes."""
        if self._dead or self._lease != task.ref.lease or (base := self._reach(task, updates)) is None:
            return
        self._base = base
        self._note_sync(task)
        if self._waits is not None:
            self._later(LINE_MS, self._waits)
            self._waits = None

    def _note_sync(self, task: Task) -> None:
        if self._ended[:2] == (task.ref.run, task.ref.round - 1):
            self._sync_ms = round(self.world.now_ms - self._ended[2])

    def _reach(self, task: Task, updates: tuple[int, ...]) -> Floats | None:
        """The version in the slot with these updates, if it is the task's; else the work is over."""
        lease = task.ref.lease
        raw = [np.frombuffer(bytes(self.slot.updates[version]), dtype=np.uint8) for version in updates]
        anchor = follow(self.slot.parameters(), raw, task.anchor_digest)
        if anchor is None:
            reason = "the anchor in this slot is another one by now"
            self._lease = ""
            self._tell(LINE_MS, e.AnchorWrong(lease, reason) if updates else e.TrainerFailed(lease, reason))
        elif updates:
            self.slot.anchor = bytearray(anchor.tobytes())
            self._tell(LINE_MS, e.Anchored(lease))
        return anchor

    def _tell(self, wait_ms: float, event: e.Event) -> None:
        """An event of this process; a frozen one says it when it thaws, a dead one never."""
        process = self._process

        def tell() -> None:
            if self._process != process:
                return
            if self.pace.frozen:
                self._later(THAW_MS, tell)
            else:
                self._say(event)

        self._later(wait_ms, tell)

    def _finish(self, task: Task, anchor: Floats, duration_ms: int) -> None:
        lease = task.ref.lease
        if self.slot.full:
            self._say(e.TrainerFailed(lease, f"OSError: {FULL}"))
            return
        base, self._base = self._base, None
        result = local_steps(task, anchor, base)
        self._local = (task.ref.run, task.ref.round, result.local)
        self._ended = (task.ref.run, task.ref.round, self.world.now_ms)
        delta = result.delta
        if self.pace.nan and self.world.chance.random() < self.pace.nan:
            self.pace.faults += 1
            delta = delta.copy()
            delta[self.world.chance.randrange(len(delta))] = np.nan
        before = residual = None
        if not task.fresh and task.encoding != "fp32":
            before = unpack_residual(task.lineage, self.slot.residual, len(delta))
            residual = np.zeros_like(delta) if before is None else before.copy()
        encoded = encode(task.encoding, delta, residual)
        name = bytes_digest(encoded)
        sent = delta if check(task.encoding, encoded, len(delta)) else decode(task.encoding, encoded, len(delta))
        self._made(Made(task, name, sent, before, residual))
        self.slot.files[lease] = encoded.tobytes()
        if residual is not None:
            self.slot.left_over[lease] = b"".join(pack_residual(task.lineage, residual))
        counts = (
            result.samples,
            result.steps,
            result.n_correct,
            result.loss,
            duration_ms,
            self._sync_ms,
            duration_ms // 2,
        )
        self._tell(LINE_MS, e.TrainerDone(lease, encoded.nbytes, name, *counts))


def local_steps(task: Task, anchor: Floats, base: Floats | None = None) -> Any:
    """The shipped local steps, with a fresh inner optimizer; of a task that is ahead with its base."""
    name = str(task.data["name"])
    if name not in _DATA:
        _DATA[name] = load(task.data)
    data = _DATA[name]
    model = build_model(task.model, data.x_train.shape[1], data.classes)
    optimizer = build_inner(task.inner, model.n_parameters)
    on_base = None if base is None else lambda all_done: base
    return run_local_steps(model, optimizer, anchor, data, local_task(task), lambda step, loss: False, on_base)
