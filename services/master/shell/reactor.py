"""What becomes of each event, letter, chunk and tick: the coordinator decides, the effects are done. Owns no socket.

The loop feeds it from real sockets, the simulator from simulated ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from services.common.learning.encodings import Bytes
from services.common.protocol.codec import Buffer
from services.common.protocol.limits import HEARTBEAT_MS
from services.common.protocol.messages import DeltaBegin, DeltaChunk, DeltaCommit, Pull
from services.master.core.commands import Command, Evaluate
from services.master.core.coordinator import Coordinator
from services.master.core.events import CreateRun, DeltaStaged, Event, PauseRun, Tick
from services.master.shell.desk import EncodedUpdate, Snapshot
from services.master.shell.effects import Effects
from services.master.shell.resume import Found, Unprepared

# events, new versions and what makes them, the evaluator's lines, a crash
Letter = Event | Snapshot | EncodedUpdate | dict[str, Any] | Exception


SLEPT_MS = 2 * HEARTBEAT_MS  # a tick later than this: the PC slept, or the loop stood still


@dataclass
class Reactor:
    """`clock` is monotonic, in ms. Transfers and the evaluator are timed without the time in which this PC slept."""

    coordinator: Coordinator
    effects: Effects
    clock: Callable[[], int]
    seen: Callable[[int, Event, list[Command]], None] | None = None  # by a journal, by the simulator's oracle
    _last_tick_ms: int = 0
    _slept_ms: int = 0

    def step(self, event: Event) -> None:
        """One event and all that follows from it."""
        now_ms = self.clock()
        following: list[Event] = [event]
        while following:
            event = following.pop(0)
            commands = self.coordinator.step(event, now_ms)
            if self.seen is not None:
                self.seen(now_ms, event, commands)
            if isinstance(event, DeltaStaged):
                self.effects.uploads.checked(event.ref.lease, event.digest, self._awake_ms())
            for command in commands:
                following += self.effects.apply(command, self._awake_ms())

    def open(self, letter: Letter) -> None:
        """What another thread or process has to say."""
        if isinstance(letter, Exception):
            raise letter
        if isinstance(letter, Snapshot):
            self.effects.downloads.publish(letter)
        elif isinstance(letter, EncodedUpdate):
            self.effects.downloads.publish_update(letter)
        elif isinstance(letter, dict):
            for event in self.effects.evaluation.take(letter):
                self.step(event)
        else:
            self.step(letter)

    def bulk(self, worker: str, message: Pull | DeltaChunk | DeltaCommit, payload: Buffer | None) -> None:
        """What only moves bytes and never reaches the coordinator."""
        now_ms = self._awake_ms()
        if isinstance(message, Pull):
            self.effects.downloads.pull(worker, message, now_ms)
        elif isinstance(message, DeltaChunk):
            assert payload is not None
            self.effects.uploads.chunk(worker, message, payload, now_ms)
        else:
            self.effects.uploads.commit(worker, message, now_ms)

    def complete(self, worker: str, begin: DeltaBegin, delta: Bytes) -> None:
        """A delta is here, whole."""
        self.effects.aggregation.do(lambda desk: desk.check(worker, begin, delta))

    def tick(self) -> None:
        """Deadlines; log lines go to the store."""
        gap_ms = self.clock() - self._last_tick_ms if self._last_tick_ms else 0
        self._last_tick_ms = self.clock()
        self._slept_ms += gap_ms if gap_ms > SLEPT_MS else 0
        now_ms = self._awake_ms()
        effects = self.effects
        self.step(Tick())
        effects.downloads.tick(now_ms)
        effects.evaluation.tick(now_ms)
        for event in effects.uploads.tick(now_ms):
            self.step(event)
        effects.bulletin.tick(now_ms)
        if effects.bulletin.unsaved:
            lines, effects.bulletin.unsaved = effects.bulletin.unsaved, []
            effects.aggregation.do(lambda desk: desk.save_events(lines))

    def resume(self, found: Found | Unprepared) -> int:
        """Take up the run that was going on, before the first event; at what time that was."""
        if isinstance(found, Unprepared):
            return self._prepare_again(found)
        saved, now_ms = found.saved, self.clock()
        self.coordinator.restore(saved, now_ms)
        self.effects.bulletin.created_ms.update(found.created_ms)
        self.effects.bulletin.start_run(saved.run, found.rows)
        best = saved.best_eval.version if saved.best_eval else None
        self.effects.aggregation.do(lambda desk: desk.restore(saved.spec, found.checkpoint, best))
        for version in self.coordinator.state.run.rows if self.coordinator.state.run else ():
            self.effects.apply(Evaluate(saved.run, version), self._awake_ms())
        text = f"run {saved.run}, {saved.phase.value}, is taken up at version {saved.meta['version']}"
        text += f"; {len(saved.queue)} in the queue" if saved.queue else ""
        self.effects.bulletin.post("MASTER", text, {})
        return now_ms

    def _prepare_again(self, found: Unprepared) -> int:
        """A run without version 0, and those that wait for it: as if they were asked for now."""
        now_ms = self.clock()
        self.effects.bulletin.created_ms.update(found.created_ms)
        self.step(CreateRun("", found.run, found.spec))
        if found.paused:
            self.step(PauseRun("", found.run))
        for queued in found.queue:
            self.step(CreateRun("", queued.id, queued.spec))
        return now_ms

    def _awake_ms(self) -> int:
        return self.clock() - self._slept_ms
