"""The master's loop: one thread that owns the sockets, moves frames and table rows, and never computes.

frame -> event -> Coordinator.step -> commands -> effects. Results of other threads come in through the mailbox.
"""

import contextlib
import time
from collections.abc import Callable

import zmq

from services.common.host.logs import Log
from services.common.host.machine import threads_usable
from services.common.kernels import Threads, kernel_impl
from services.common.protocol.limits import APP_VERSION, CHUNK_BYTES
from services.common.protocol.messages import Drain
from services.master.core.coordinator import Coordinator
from services.master.settings import MasterSettings
from services.master.shell.admission import Admission
from services.master.shell.aggregation import Aggregation
from services.master.shell.bulletin import Bulletin
from services.master.shell.checkpoints import Vault
from services.master.shell.checks import Check, all_checks
from services.master.shell.control_port import ControlPort
from services.master.shell.desk import Desk
from services.master.shell.downloads import Downloads
from services.master.shell.effects import Effects
from services.master.shell.evaluation import Evaluation, evaluator
from services.master.shell.initialisation import Initialisation
from services.master.shell.journal import Journal
from services.master.shell.keys import load_keys
from services.master.shell.mailbox import Mailbox
from services.master.shell.model_copies import ModelCopies, Places
from services.master.shell.operator import Operator
from services.master.shell.reactor import Letter, Reactor
from services.master.shell.resume import Found, find_run
from services.master.shell.startup import (
    check_zeromq,
    lock_data,
    open_doors,
    raise_file_limit,
    write_control_file,
)
from services.master.shell.store import Store, wall_ms
from services.master.shell.uploads import Uploads
from services.master.shell.worker_port import WorkerPort

TICK_MS = 200
KERNEL_THREADS_MAX = 8  # for a large fold: more only wait for the memory
REFUSED_LOG_MS = 60_000


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
        self._journal = Journal(settings.journal, self._term) if settings.journal is not None else None
        self._mailbox: Mailbox[Letter | Check] = Mailbox()
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
        checks = all_checks(folder, self._endpoints, advertised=bool(settings.advertise))
        self._initialisation = Initialisation(self._bulletin, checks, self._mailbox.put, _now_ms)
        self._reactor = self._build(settings, keys.beacon_key, log)
        self._logged_refused, self._logged_refused_ms = 0, -REFUSED_LOG_MS
        self._told_refused = 0
        self._keys_refused = 0
        if few_files:
            self._bulletin.post("WARN", few_files, {})
        self._restore()
        write_control_file(control_folder, self._doors, settings, keys)
        join_file.parent.mkdir(parents=True, exist_ok=True)
        self._admission.write_local_join(join_file, [f"tcp://{settings.local_host}:{self._doors.worker_port}"])
        where = ", ".join(self._endpoints)
        self._bulletin.post("MASTER", f"ready for workers at {where} (term {self._term}, {kernel_impl()} kernels)", {})

    def _build(self, settings: MasterSettings, beacon_key: str, log: Log) -> Reactor:
        folder = settings.data
        vault = Vault(folder / "runs")
        places = Places(folder.resolve(), settings.models_below)
        self._workers = WorkerPort(
            socket=self._doors.workers,
            admission=self._admission,
            term=self._term,
            beacon_key=beacon_key,
            endpoints=lambda: self._endpoints,
            bulk=lambda *frame: self._reactor.bulk(*frame),  # noqa: PLW0108 - made below
            refused=self._bulletin.refuse,
        )
        operator = Operator(
            vault=vault,
            store=self._store,
            admission=self._admission,
            bulletin=self._bulletin,
            coordinator=self._coordinator,
            endpoints=lambda: self._endpoints,
            places=places,
            step=lambda event: self._reactor.step(event),  # noqa: PLW0108 - made below
            offer=lambda path: self._control.offer(path),  # noqa: PLW0108 - made below
            initialisation=self._initialisation,
        )
        self._control = ControlPort(self._doors.control, self._term, self._bulletin, operator.perform)
        put = self._mailbox.put
        evaluation = Evaluation(lambda: evaluator(put, log))
        complete = lambda *delta: self._reactor.complete(*delta)  # noqa: E731, PLW0108 - made below
        uploads = Uploads(self._term, self._workers.send, complete)
        downloads = Downloads(self._term, CHUNK_BYTES, self._workers.send, self._coordinator.state.task_of)
        threads = Threads(min(threads_usable(), KERNEL_THREADS_MAX))
        models = ModelCopies(places, vault, put)
        pinned = lambda: evaluation.pinned() | models.pinned()  # noqa: E731
        self._aggregation = Aggregation(lambda: Desk(Store(folder), vault, put, put, pinned, threads), put)
        effects = Effects(
            workers=self._workers,
            control=self._control,
            uploads=uploads,
            downloads=downloads,
            aggregation=self._aggregation,
            evaluation=evaluation,
            admission=self._admission,
            bulletin=self._bulletin,
            vault=vault,
            models=models,
        )
        return Reactor(self._coordinator, effects, _now_ms)

    def _restore(self) -> None:
        self._aggregation.start()
        effects = self._reactor.effects
        found, sentences = find_run(self._store, effects.vault, self._admission.names(), effects.models.found)
        for sentence in sentences:
            self._bulletin.post("WARN", sentence, {})
        if self._journal is not None and not isinstance(found, Found):
            self._reactor.seen = self._journal.seen
        restored_ms = self._reactor.resume(found) if found is not None else 0
        if self._journal is not None and isinstance(found, Found):
            self._reactor.seen = self._journal.seen
            self._journal.restored(found.saved, restored_ms)

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
                    self._reactor.step(event)
                self._control.receive(now_ms)
                if now_ms >= next_tick_ms:
                    next_tick_ms = now_ms + TICK_MS
                    self._tick(now_ms)
                for event in self._workers.flush():
                    self._reactor.step(event)
                self._control.flush(now_ms)
        finally:
            self._close()

    def _open(self, letter: Letter | Check) -> None:
        if not isinstance(letter, Check):
            self._reactor.open(letter)
            return
        for cmd_id, command in self._initialisation.take(letter):
            self._control.carry_out(cmd_id, command)

    def _tick(self, now_ms: int) -> None:
        self._reactor.tick()
        for cmd_id, error in self._initialisation.overdue():
            self._control.answer(cmd_id, False, error.code, error.sentence, {})
        self._count_refused(now_ms)

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
            if self._journal is not None:
                parts.callback(self._journal.close)
            parts.callback(self._store.close)
            parts.callback(self._mailbox.close)
            parts.callback(self._doors.close)
            parts.callback(self._reactor.effects.models.stop)
            parts.callback(self._aggregation.stop)
            parts.callback(self._initialisation.stop)
            parts.callback(self._reactor.effects.evaluation.stop)
            parts.callback(self._bulletin.post, "MASTER", "stopped", {})
            for worker in self._workers.everyone():
                self._workers.send(worker, Drain(term=self._term, reason="the master stops; it will be back"))
            self._workers.flush()


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
