"""One conversation with the master at one place: subscription, commands and files, until it falls silent.

Runs in the link's thread, which alone touches the sockets. It ends when nothing was heard for GONE_S; the link then
reads control.json again and begins another.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import zmq

from services.common.errors import ProtocolError
from services.common.protocol import codec
from services.common.protocol.control import Alive, ControlError, Event, FileChunk, Reply, Snapshot, Subscribe
from services.common.protocol.limits import HEARTBEAT_MS, SUSPECT_MS
from services.common.protocol.messages import Message
from services.common.protocol.reasons import Reason, because
from services.console.commands import CommandDesk
from services.console.control_file import MasterPlace
from services.console.files import FileDesk
from services.console.problems import Problem
from services.console.sockets import Watch, make_dealer

SUBSCRIBE_S = HEARTBEAT_MS / 1000
STALE_S = SUSPECT_MS / 1000
GONE_S = 10.0
GAP_S = 1.0
POLL_MS = 200
READS_MAX = 500  # messages taken from one socket before the rest has its turn


class Listener(Protocol):
    """Who is told, from the link's thread, what the master says."""

    def heard(self) -> None:
        """The master answers."""

    def silent(self, reason: Reason) -> None:
        """The master does not answer, because of this."""

    def snapshot(self, term: int, seq: int, state: dict[str, Any]) -> None:
        """A whole state."""

    def event(self, event: Event) -> None:
        """The next event."""

    def warn(self, sentence: str) -> None:
        """Something came that was refused."""


@dataclass
class Cursor:
    """Up to where events are known; it outlives a conversation."""

    term: int = 0
    seq: int = 0
    gaps: int = 0  # in a row; one may be closed by asking again, a second asks for a snapshot
    gap_at: float = 0.0  # when one was last acted on


@dataclass
class Desks:
    """What waits for the master; it outlives a conversation."""

    commands: CommandDesk
    files: FileDesk


class Talk:
    """The sockets to one place and what is said over them."""

    def __init__(
        self,
        context: "zmq.Context[zmq.Socket[bytes]]",
        place: MasterPlace,
        cursor: Cursor,
        desks: Desks,
        listener: Listener,
    ) -> None:
        self._cursor = cursor
        self._desks = desks
        self._listener = listener
        self._main = make_dealer(context, place)
        self._watch = Watch(self._main, place.endpoint)
        self._bulk = make_dealer(context, place)
        self._heard_at = time.monotonic()
        self._ever_heard = False
        self._subscribe_at = 0.0

    def run(self, wake_fd: int, on_wake: Callable[["Talk"], bool]) -> None:
        """Talk until the master is silent for GONE_S or `on_wake` says stop."""
        poller = zmq.Poller()
        poller.register(self._main, zmq.POLLIN)
        poller.register(self._bulk, zmq.POLLIN)
        poller.register(wake_fd, zmq.POLLIN)
        try:
            while True:
                ready = dict(poller.poll(POLL_MS))
                if wake_fd in ready and not on_wake(self):
                    return
                for socket in (self._main, self._bulk):
                    if socket in ready:
                        self._read(socket)
                if not self._tick(time.monotonic()):
                    return
        finally:
            self._watch.close()
            self._main.close(0)
            self._bulk.close(0)

    def send(self, message: Message) -> bool:
        """Send on the command connection; False while there is none."""
        return _send(self._main, message)

    def send_bulk(self, message: Message) -> bool:
        """Send on the bulk connection; False while there is none."""
        return _send(self._bulk, message)

    def _tick(self, now: float) -> bool:
        self._watch.read()
        silent_s = now - self._heard_at
        if now >= self._subscribe_at:
            self._subscribe(now)
        reason = self._watch.reason
        if self._watch.connected and self._ever_heard:
            reason = because("LINK_SILENT")
        if reason is not None and (not self._ever_heard or silent_s > STALE_S):
            self._listener.silent(reason)
        why = "the master does not answer" if reason is None else reason.text
        self._desks.commands.tick(now, self.send, why)
        return silent_s <= GONE_S

    def _subscribe(self, now: float) -> None:
        went = self.send(Subscribe(term=self._cursor.term, after_seq=self._cursor.seq))
        self._subscribe_at = now + (SUBSCRIBE_S if went else POLL_MS / 1000)

    def _read(self, socket: "zmq.Socket[bytes]") -> None:
        for _ in range(READS_MAX):
            try:
                frames = socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            try:
                message, payload = codec.decode_to_console(frames)
            except ProtocolError as error:
                self._listener.warn(error.sentence)
                continue
            self._heard_at, self._ever_heard = time.monotonic(), True
            self._take(message, bytes(payload or b""), bulk=socket is self._bulk)

    def _take(self, message: Any, payload: bytes, *, bulk: bool) -> None:
        match message:
            case Event():
                self._on_event(message)
            case Snapshot():
                self._on_snapshot(message, payload)
            case Alive():
                self._on_alive(message)
            case Reply():
                self._desks.commands.on_reply(message, payload)
            case FileChunk():
                self._desks.files.on_chunk(message, payload)
            case ControlError():
                self._listener.warn(message.text)
                if bulk:
                    self._desks.files.on_error(Problem(message.text, code=message.code))
                else:
                    self._desks.commands.on_error(message)
            case _:
                self._listener.warn(f"a message of type {type(message).__name__} is not for a console")

    def _on_snapshot(self, message: Snapshot, payload: bytes) -> None:
        try:
            state = json.loads(payload)
        except ValueError:
            state = None
        if not isinstance(state, dict):
            self._listener.warn("the master's snapshot is not a JSON object; use the same MAHE on both sides")
            return
        self._cursor.term, self._cursor.seq, self._cursor.gaps = message.term, message.seq, 0
        self._listener.snapshot(message.term, message.seq, state)
        self._listener.heard()

    def _on_alive(self, message: Alive) -> None:
        if message.term == self._cursor.term and message.seq > self._cursor.seq:
            self._on_gap()  # what was sent while the connection was broken never came
        self._listener.heard()

    def _on_event(self, event: Event) -> None:
        cursor = self._cursor
        if event.term == cursor.term and event.seq <= cursor.seq:
            return
        if event.term != cursor.term or event.seq > cursor.seq + 1:
            self._on_gap()
            return
        cursor.seq, cursor.gaps = event.seq, 0
        self._listener.event(event)
        self._listener.heard()

    def _on_gap(self) -> None:
        """Events were lost with a connection: ask for them once, then for the whole state; not at each that follows."""
        now = time.monotonic()
        if self._cursor.gaps and now < self._cursor.gap_at + GAP_S:
            return
        self._cursor.gaps += 1
        self._cursor.gap_at = now
        if self._cursor.gaps > 1:
            self._cursor.term, self._cursor.seq = 0, 0
        self._subscribe(now)


def _send(socket: "zmq.Socket[bytes]", message: Message) -> bool:
    try:
        socket.send_multipart(codec.encode(message), zmq.DONTWAIT)
    except zmq.Again:
        return False
    return True
