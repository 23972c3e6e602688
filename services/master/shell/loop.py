"""The master's loop: one thread that owns the sockets, moves frames and table rows, and never computes.

frame -> event -> Coordinator.step -> commands -> effects. Results of other threads come in through the mailbox.
"""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import zmq

from services.common.host.logs import Log
from services.common.kernels import kernel_impl
from services.common.protocol.codec import Buffer
from services.common.protocol.limits import APP_VERSION, CHUNK_BYTES
from services.common.protocol.messages import DeltaChunk, DeltaCommit, Drain, Pull, TaskRef
from services.master.core.commands import Evaluate
from services.master.core.coordinator import Coordinator
from services.master.core.events import Event, Tick
from services.master.settings import MasterSettings
from services.master.shell.admission import Admission
from services.master.shell.aggregation import Aggregation, Snapshot
from services.master.shell.bulletin import Bulletin
from services.master.shell.control_port import ControlPort
from services.master.shell.downloads import Downloads
from services.master.shell.effects import Effects
from services.master.shell.evaluation import Evaluation
from services.master.shell.keys import load_keys
from services.master.shell.mailbox import Mailbox
from services.master.shell.operator import Operator
from services.master.shell.startup import (
    check_zeromq,
    find_run,
    lock_data,
    open_doors,
    raise_file_limit,
    write_control_file,
)
from services.master.shell.store import Store, wall_ms
from services.master.shell.uploads import Uploads
from services.master.shell.worker_port import WorkerPort

TICK_MS = 200
REFUSED_LOG_MS = 60_000
Letter = Event | Snapshot | dict[str, Any] | Exception  # events, new versions, the evaluator's lines, a crash


class Master:
    """Builds the parts and runs them until `stop` is set."""

    def __init__(self, settings: MasterSettings, log: Log) -> None:
        check_zeromq()
        few_files = raise_file_limit()
        folder = settings.data
        self._lock = lock_data(folder)
        control_folder, join_file = folder / "control", folder / "join" / "join-string"
        (control_folder / "control.json").unlink(missing_ok=True)
        join_file.unlink(missing_ok=True)
        self._store = Store(folder)
        keys = load_keys(folder)
        self._term = self._store.next_term()
        self._mailbox: Mailbox[Letter] = Mailbox()
        self._admission = Admission(self._store, keys)
        self._doors = open_doors(settings, keys, self._admission)
        local = f"tcp://127.0.0.1:{self._doors.worker_port}"
        self._endpoints = settings.endpoints(self._doors.worker_port) or [local]
        self._coordinator = Coordinator(self._term)
        facts = {
            "version": APP_VERSION,
            "endpoints": self._endpoints,
            "started_at_ms": wall_ms(),
            "kernel": kernel_impl(),
        }
        self._bulletin = Bulletin(self._term, log, facts, self._coordinator)
        self._effects = self._build(folder, keys.beacon_key)
        self._logged_refused, self._logged_refused_ms = 0, -REFUSED_LOG_MS
        self._told_refused = 0
        self._keys_refused = 0
        if few_files:
            self._bulletin.post("WARN", few_files, {})
        self._restore(folder)
        write_control_file(control_folder, self._doors, settings, keys)
        join_file.parent.mkdir(parents=True, exist_ok=True)
        self._admission.write_local_join(join_file, [f"tcp://{settings.local_host}:{self._doors.worker_port}"])
        where = ", ".join(self._endpoints)
        self._bulletin.post("MASTER", f"ready for workers at {where} (term {self._term}, {kernel_impl()} kernels)", {})

    def _build(self, folder: Path, beacon_key: str) -> Effects:
        self._workers = WorkerPort(
            socket=self._doors.workers,
            admission=self._admission,
            term=self._term,
            beacon_key=beacon_key,
            endpoints=lambda: self._endpoints,
            bulk=self._bulk,
            refused=self._bulletin.refuse,
        )
        uploads = Uploads(self._term, self._workers.send, self._complete)
        downloads = Downloads(self._term, CHUNK_BYTES, self._workers.send, self._ref_of)
        evaluation = Evaluation(self._mailbox.put)
        aggregation = Aggregation(folder, self._mailbox.put, self._mailbox.put, evaluation.pinned, self._mailbox.put)
        operator = Operator(
            folder=folder,
            store=self._store,
            admission=self._admission,
            bulletin=self._bulletin,
            coordinator=self._coordinator,
            endpoints=lambda: self._endpoints,
            step=self._step,
            offer=lambda path: self._control.offer(path),  # noqa: PLW0108 - made below
        )
        self._control = ControlPort(self._doors.control, self._term, self._bulletin, operator.perform)
        return Effects(
            workers=self._workers,
            control=self._control,
            uploads=uploads,
            downloads=downloads,
            aggregation=aggregation,
            evaluation=evaluation,
            admission=self._admission,
            bulletin=self._bulletin,
            operator=operator,
        )

    def _restore(self, folder: Path) -> None:
        found, sentences = find_run(self._store, folder, self._admission.names())
        for sentence in sentences:
            self._bulletin.post("WARN", sentence, {})
        if found is None:
            self._effects.aggregation.start(None)
            return
        saved = found.saved
        self._bulletin.start_run(found.created_ms, found.rows)
        self._coordinator.restore(saved, _now_ms())
        self._effects.aggregation.start(
            (saved.spec, found.checkpoint, saved.best_eval.version if saved.best_eval else None)
        )
        for version in self._coordinator.state.run.rows if self._coordinator.state.run else ():
            self._effects.apply(Evaluate(saved.run, version), _now_ms())
        text = f"run {saved.run}, {saved.phase.value}, is taken up at version {saved.meta['version']}"
        self._bulletin.post("MASTER", text, {})

    def run(self, stopping: Callable[[], bool]) -> None:
        """Until `stopping()`; then workers are told, everything queued is written, sockets are closed."""
        poller = zmq.Poller()
        poller.register(self._doors.workers, zmq.POLLIN)
        poller.register(self._doors.control, zmq.POLLIN)
        poller.register(self._mailbox.fileno(), zmq.POLLIN)
        next_tick_ms = 0
        try:
            while not stopping():
                poller.poll(TICK_MS)
                now_ms = _now_ms()
                for letter in self._mailbox.drain():
                    self._open(letter)
                for event in self._workers.receive(now_ms):
                    self._step(event)
                self._control.receive(now_ms)
                if now_ms >= next_tick_ms:
                    next_tick_ms = now_ms + TICK_MS
                    self._tick(now_ms)
                for event in self._workers.flush():
                    self._step(event)
                self._control.flush(now_ms)
        finally:
            self._close()

    def _step(self, event: Event) -> None:
        now_ms = _now_ms()
        following: list[Event] = [event]
        while following:
            for command in self._coordinator.step(following.pop(0), now_ms):
                following += self._effects.apply(command, now_ms)

    def _open(self, letter: Letter) -> None:
        if isinstance(letter, Exception):
            raise letter
        if isinstance(letter, Snapshot):
            self._effects.downloads.publish(letter)
        elif isinstance(letter, dict):
            for event in self._effects.evaluation.take(letter):
                self._step(event)
        else:
            self._step(letter)

    def _bulk(self, worker: str, message: Pull | DeltaChunk | DeltaCommit, payload: Buffer | None) -> None:
        now_ms = _now_ms()
        if isinstance(message, Pull):
            self._effects.downloads.pull(worker, message, now_ms)
        elif isinstance(message, DeltaChunk):
            assert payload is not None
            self._effects.uploads.chunk(worker, message, payload, now_ms)
        else:
            self._effects.uploads.commit(worker, message, now_ms)

    def _ref_of(self, worker: str, pull: Pull) -> TaskRef | None:
        return self._coordinator.state.task_of(worker, pull.run, pull.version)

    def _complete(self, worker: str, ref: TaskRef, delta: npt.NDArray[np.float32], digest: str) -> None:
        self._effects.aggregation.do(lambda desk: desk.check(worker, ref, delta, digest))

    def _tick(self, now_ms: int) -> None:
        self._step(Tick())
        self._effects.downloads.tick(now_ms)
        self._effects.evaluation.tick(now_ms)
        for event in self._effects.uploads.tick(now_ms):
            self._step(event)
        self._bulletin.tick(now_ms)
        self._count_refused(now_ms)
        if self._bulletin.unsaved:
            lines, self._bulletin.unsaved = self._bulletin.unsaved, []
            self._effects.aggregation.do(lambda desk: desk.save_events(lines))

    def _count_refused(self, now_ms: int) -> None:
        """Strangers are counted at once and logged at most once a minute."""
        for sentence in self._doors.failed_handshakes():
            self._bulletin.refuse(sentence)
        refused_keys = self._admission.refused_keys
        for _ in range(min(refused_keys - self._keys_refused, 1000)):
            self._bulletin.refuse("a key that is not enrolled (a wrong, revoked or foreign join string)")
        self._keys_refused = refused_keys
        count, last = self._bulletin.refused, self._bulletin.refused_last
        if count == self._told_refused:
            return
        text = ""
        if count > self._logged_refused and now_ms - self._logged_refused_ms >= REFUSED_LOG_MS:
            text = f"refused {count - self._logged_refused}, last: {last}"
            self._logged_refused, self._logged_refused_ms = count, now_ms
        self._told_refused = count
        self._bulletin.post("AUTH", text, {"refused": {"count": count, "last": last}})

    def _close(self) -> None:
        """Every part is closed, also when another fails at it."""
        with contextlib.ExitStack() as parts:
            parts.callback(self._lock.release)
            parts.callback(self._store.close)
            parts.callback(self._mailbox.close)
            parts.callback(self._doors.close)
            parts.callback(self._effects.aggregation.stop)
            parts.callback(self._effects.evaluation.stop)
            parts.callback(self._bulletin.post, "MASTER", "stopped", {})
            for worker in self._workers.everyone():
                self._workers.send(worker, Drain(term=self._term, reason="the master stops; it will be back"))
            self._workers.flush()


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
