"""The agent: one thread that owns the socket, moves frames, carries out what the session decides. It never computes.

Commands of the core are the methods named after them; everything that happens becomes an event and goes through `step`.
"""

import contextlib
import random
import secrets
import time
from collections.abc import Callable
from typing import Any

import zmq

from services.common.errors import ProtocolError
from services.common.host.logs import Log
from services.common.protocol.codec import crc32, decode_to_worker, encode
from services.common.protocol.messages import DeltaChunk
from services.common.protocol.reasons import Reason
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.core.session import Session
from services.worker.core.state import Facts
from services.worker.shell.disk import disk_text
from services.worker.shell.joining import Way, enrolled
from services.worker.shell.link import MasterLink
from services.worker.shell.slot import Parked, Slot, read_chunk
from services.worker.shell.trainer_child import TrainerChild

POLL_MS = 200
FRAMES_PER_TURN = 64


class Agent:
    """Runs until `stop` was called or the session ends itself."""

    def __init__(self, facts: Facts, way: Way, slot: Slot, log: Log, *, threads: int, score: float) -> None:
        self._way = way
        self._slot = slot
        self._log = log
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._link = MasterLink(self._context, way.server_key)
        self._trainer = TrainerChild(self._context, threads, score, log)
        self._session = Session(facts)
        self._payload: memoryview | None = None
        self._stop_reason: Reason | None = None
        self._running = True
        self._chance = random.Random(secrets.randbits(64))  # noqa: S311 - spreads waits; keys come from elsewhere

    @property
    def state(self) -> str:
        """One word for what the worker does."""
        return self._session.state

    @property
    def trainer_pid(self) -> int | None:
        """Process id of the trainer, while there is one."""
        return self._trainer.pid

    def stop(self, reason: Reason) -> None:
        """Ask it to end; safe from a signal handler and from any thread."""
        self._stop_reason = reason

    def run(self) -> None:
        """Until the end. SettingsError when the identity cannot be saved."""
        with contextlib.ExitStack() as parts:  # each is closed, the last first, whatever goes wrong with the others
            parts.callback(self._context.term)
            parts.callback(self._trainer.close)
            parts.callback(self._link.close)
            self._step(e.Start())
            while self._running:
                self._turn()

    def _turn(self) -> None:
        poller = zmq.Poller()
        for socket in (self._trainer.lines, *self._link.sockets):
            poller.register(socket, zmq.POLLIN)
        poller.poll(POLL_MS)
        if self._stop_reason is not None:
            self._step(e.Stop(self._stop_reason))
            return
        for event in self._link.events():
            self._step(event)
        self._receive()
        while (line := self._trainer.receive()) is not None:
            self._step(line)
        self._step(e.Tick(self._chance.random()))

    def _receive(self) -> None:
        for frames in self._link.receive(FRAMES_PER_TURN):
            try:
                message, payload = decode_to_worker(frames)
            except ProtocolError as error:
                self._step(e.BadMessage(error.code, error.sentence))
                continue
            self._payload = memoryview(payload) if payload is not None else None
            self._step(e.Received(message, len(payload) if payload is not None else 0))
            self._payload = None

    def _step(self, event: e.Event) -> None:
        """One event and all that follows from it."""
        pending = [event]
        while pending:
            for command in self._session.step(pending.pop(0), time.monotonic_ns() // 1_000_000):
                follows = self._do(command)
                if follows is not None:
                    pending.append(follows)

    def _do(self, command: c.Command) -> e.Event | None:
        """Carry out one command; a failing disk is an event like any other."""
        match command:
            case c.StoreChunk() | c.PrepareAnchor() | c.PrepareUpdate() | c.CheckAnchor() | c.CheckStorage():
                return self._guarded(lambda: self._anchor(command))
            case c.KeepDelta():
                return self._guarded(lambda: self._slot.keep(command.delta), command.delta.ref.lease)
            case c.SendChunks():
                return self._send_chunks(command)
            case c.ForgetDelta() | c.NoteAnchor() | c.ForgetUpdates() | c.SaveIdentity() | c.Park():
                self._record(command)
            case c.Train():
                self._trainer.train(command.task, paths_of(self._slot, command), goes_on=command.goes_on)
            case c.Rebase():
                self._trainer.rebase(command.task, paths_of(self._slot, command))
            case c.StopTraining():
                self._trainer.cancel(command.lease)
            case c.StartTrainer():
                return self._trainer.start()
            case c.StopTrainer():
                self._trainer.stop()
            case c.Say():
                self._log(command.kind, command.text, state=self._session.state)
            case c.Exit():
                self._running = False
            case _:
                self._network(command)
        return None

    def _network(self, command: c.Connect | c.Disconnect | c.Send) -> None:
        match command:
            case c.Connect():
                self._connect(command)
            case c.Disconnect():
                self._link.close(command.linger_ms)
            case c.Send():
                self._link.send(encode(command.message))

    def _connect(self, command: c.Connect) -> None:
        keys = self._way.own_keys if command.own_key or self._way.join_keys is None else self._way.join_keys
        try:
            self._link.open(command.endpoint, keys)
        except zmq.ZMQError as error:
            self._link.close()
            self._log("WARN", f"the endpoint {command.endpoint} cannot be used: {error}")

    def _guarded(self, work: Callable[[], e.Event | None], lease: str = "") -> e.Event | None:
        try:
            return work()
        except OSError as error:
            return e.StorageFailed(disk_text(self._slot.folder, error), lease)

    def _anchor(
        self, command: c.StoreChunk | c.PrepareAnchor | c.PrepareUpdate | c.CheckAnchor | c.CheckStorage
    ) -> e.Event | None:
        files = self._slot.replica
        match command:
            case c.PrepareAnchor():
                files.prepare("snapshot", 0, command.total_bytes)
            case c.PrepareUpdate():
                files.prepare("update", command.version, command.total_bytes)
            case c.StoreChunk():
                assert self._payload is not None
                files.store(command.what, command.version, command.offset, self._payload)
            case c.CheckAnchor():
                return e.AnchorChecked(files.digest())
            case c.CheckStorage():
                self._slot.check(command.free_bytes)
                return e.StorageWorks()
        return None

    def _record(self, command: c.ForgetDelta | c.NoteAnchor | c.ForgetUpdates | c.SaveIdentity | c.Park) -> None:
        match command:
            case c.ForgetDelta():
                self._slot.forget(command.lease, counted=command.counted)
            case c.NoteAnchor():
                self._slot.replica.note(command.anchor)
            case c.ForgetUpdates():
                self._slot.replica.forget_updates(command.version)
            case c.SaveIdentity():
                endpoints = command.endpoints
                identity = enrolled(self._way, command.worker, command.name, endpoints, command.beacon_key)
                self._slot.save_identity(identity)
            case c.Park():
                try:
                    self._slot.park(Parked(command.reason, self._way.joined_with))
                except OSError as error:
                    self._log("WARN", f"after a restart this PC asks again: {disk_text(self._slot.folder, error)}")

    def _send_chunks(self, command: c.SendChunks) -> e.Event | None:
        path = self._slot.delta_path(command.ref.lease)
        try:
            for index in command.want:
                payload = read_chunk(path, index, command.chunk_bytes)
                message = DeltaChunk(term=command.term, ref=command.ref, index=index, crc32=crc32(payload))
                if not self._link.send(encode(message, payload)):
                    break  # the link is gone: the deadline or the next session makes up for it
        except (FileNotFoundError, EOFError) as error:
            return e.DeltaUnreadable(command.ref.lease, f"{path.name} is gone or cut short ({error})")
        except OSError as error:
            return e.DeltaUnreadable(command.ref.lease, disk_text(path, error), passing=True)
        return None


def paths_of(slot: Slot, command: c.Train | c.Rebase) -> dict[str, Any]:
    """The files that the trainer needs for a task. Units carry nothing over, so there is no residual for them."""
    lease = command.task.ref.lease
    carries = not command.task.fresh and command.task.encoding != "fp32"
    return {
        "anchor": str(slot.replica.anchor),
        "updates": [str(slot.replica.update(version)) for version in command.updates],
        "delta": str(slot.delta_path(lease)),
        "residual": str(slot.residual_path) if carries else "",
        "next_residual": str(slot.next_residual_path(lease)) if carries else "",
    }
