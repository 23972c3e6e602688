"""The ROUTER that the console connects to: commands once each, events in order, files by SHA-256. For the loop only.

A console that is slow or gone never holds the master up: sends do not block, and what was missed is sent as a snapshot.
"""

import hashlib
import json
import traceback
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import zmq

from services.common.errors import MaheError, ProtocolError
from services.common.protocol.codec import Buffer, command_id_of, crc32, decode_from_console, encode
from services.common.protocol.control import (
    Alive,
    Command,
    ControlError,
    FileChunk,
    FilePull,
    Query,
    Reply,
    Snapshot,
    Subscribe,
)
from services.common.protocol.messages import Message
from services.master.shell.bulletin import Bulletin

REPLIES_KEPT = 1_000  # of commands that do something, until this master ends
SUBSCRIBER_SILENT_MS = 10_000
EVENTS_AT_ONCE = 200
FRAMES_AT_ONCE = 64


@dataclass
class _Subscriber:
    seq: int
    heard_ms: int


@dataclass
class _Asked:
    """A command that came; not kept whole: it may be as large as a header, and REPLIES_KEPT of them are."""

    route: bytes
    query: bool
    digest: bytes  # SHA-256
    reply: list[Buffer] | None = None


@dataclass
class ControlPort:
    """`perform` runs a command and returns its result, or None when the reply follows through `answer`."""

    socket: "zmq.Socket[bytes]"
    term: int
    bulletin: Bulletin
    perform: Callable[[str, Any], dict[str, Any] | None]
    _subscribers: dict[bytes, _Subscriber] = field(default_factory=dict)
    _answered: OrderedDict[str, _Asked] = field(default_factory=OrderedDict)
    _asked: dict[str, _Asked] = field(default_factory=dict)  # without an answer yet
    _files: dict[str, Path] = field(default_factory=dict)
    _hashed: dict[Path, tuple[tuple[int, int], str]] = field(default_factory=dict)  # by (mtime_ns, size)
    _now_ms: int = 0

    def receive(self, now_ms: int) -> None:
        """Take what has come."""
        self._now_ms = now_ms
        for _ in range(FRAMES_AT_ONCE):
            try:
                route, *frames = self.socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            try:
                message, _ = decode_from_console(frames)
                self._take(route, message, now_ms)
            except ProtocolError as error:
                cmd_id = command_id_of(frames)
                self._send(route, ControlError(code=error.code, text=error.sentence, cmd_id=cmd_id))

    def carry_out(self, cmd_id: str, command: Any) -> None:
        """Perform a command and answer it; one that waited comes back here."""
        try:
            result = self.perform(cmd_id, command)
        except MaheError as error:
            faults = {"errors": [asdict(fault) for fault in error.faults]} if error.faults else {}
            self.answer(cmd_id, False, error.code, error.sentence, faults)
            return
        except Exception as error:  # noqa: BLE001 - one command's bug must not end everybody's training
            self.bulletin.post("WARN", f"a bug: {type(command).__name__} failed: {traceback.format_exc(limit=-3)}", {})
            text = f"a bug in MAHE ({type(error).__name__}); the master's log has the details: please report it"
            self.answer(cmd_id, False, "INTERNAL", text, {})
            return
        if result is not None:
            self.answer(cmd_id, True, "OK", "", result)

    def answer(self, cmd_id: str, ok: bool, code: str, text: str, result: dict[str, Any]) -> None:
        """Reply to a command, and if it is no query whenever it is sent again; what it caused is told first."""
        self.flush(self._now_ms)
        asked = self._asked.pop(cmd_id, None)
        if asked is None:
            return
        asked.reply = encode(Reply(cmd_id=cmd_id, ok=ok, code=code, text=text), json.dumps(result).encode())
        if not asked.query:
            self._answered[cmd_id] = asked
            while len(self._answered) > REPLIES_KEPT:
                self._answered.popitem(last=False)
        self._send_frames(asked.route, asked.reply)

    def offer(self, path: Path) -> dict[str, Any]:
        """Let a file be pulled by its SHA-256 until it is pruned; returns its facts."""
        stat = path.stat()
        state = (stat.st_mtime_ns, stat.st_size)
        known = self._hashed.get(path)
        if known is None or known[0] != state:
            self._hashed = {one: kept for one, kept in self._hashed.items() if one.exists()}
            known = self._hashed[path] = (state, hashlib.sha256(path.read_bytes()).hexdigest())
        self._files = {kept[1]: one for one, kept in self._hashed.items()}
        return {"bytes": stat.st_size, "sha256": known[1], "path": str(path.resolve())}

    def flush(self, now_ms: int) -> None:
        """Send each subscriber what is new."""
        for route, subscriber in list(self._subscribers.items()):
            if now_ms - subscriber.heard_ms > SUBSCRIBER_SILENT_MS:
                del self._subscribers[route]
                continue
            events = self.bulletin.after(subscriber.seq)
            if events is None:
                self._snapshot(route, subscriber, now_ms)
                continue
            for event in events[:EVENTS_AT_ONCE]:
                try:
                    if not self._send(route, event):
                        break
                except ProtocolError:  # it does not fit a header: a snapshot says the same
                    self._snapshot(route, subscriber, now_ms)
                    break
                subscriber.seq = event.seq

    def _take(self, route: bytes, message: Any, now_ms: int) -> None:
        if isinstance(message, Subscribe):
            self._subscribe(route, message, now_ms)
        elif isinstance(message, FilePull):
            self._file(route, message)
        else:
            self._command(route, message)

    def _subscribe(self, route: bytes, message: Subscribe, now_ms: int) -> None:
        subscriber = self._subscribers.get(route)
        if subscriber is None:
            subscriber = self._subscribers[route] = _Subscriber(message.after_seq, now_ms)
            if message.term != self.term or self.bulletin.after(message.after_seq) is None:
                self._snapshot(route, subscriber, now_ms)
                return
        subscriber.heard_ms = now_ms
        if message.term != self.term:
            self._snapshot(route, subscriber, now_ms)
        elif subscriber.seq == self.bulletin.seq:
            self._send(route, Alive(term=self.term, seq=self.bulletin.seq))

    def _snapshot(self, route: bytes, subscriber: _Subscriber, now_ms: int) -> None:
        body = json.dumps(self.bulletin.snapshot(now_ms)).encode()
        seq = self.bulletin.seq
        if self._send_frames(route, encode(Snapshot(term=self.term, seq=seq), body)):
            subscriber.seq = seq

    def _command(self, route: bytes, message: Command) -> None:
        asked = _Asked(route, isinstance(message.command, Query), _digest(message))
        known = self._answered.get(message.cmd_id) or self._asked.get(message.cmd_id)
        if known is not None and known.digest != asked.digest:
            text = f"id {message.cmd_id} was that of another command; take a new key for another one"
            self._send(route, ControlError(code="IDEMPOTENCY_KEY_REUSED", text=text, cmd_id=message.cmd_id))
            return
        if known is not None and known.reply is not None:
            self._send_frames(route, known.reply)
            return
        if known is not None:
            known.route = route
            return
        self._asked[message.cmd_id] = asked
        self.carry_out(message.cmd_id, message.command)

    def _file(self, route: bytes, message: FilePull) -> None:
        path = self._files.get(message.sha256)
        try:
            if path is None:
                raise FileNotFoundError
            size = path.stat().st_size
            with path.open("rb") as file:
                for index in message.want:
                    if index * message.chunk_bytes >= size:
                        text = f"field want has chunk {index}, the file has {size} bytes"
                        self._send(route, ControlError(code="BAD_FIELD", text=text))
                        continue
                    file.seek(index * message.chunk_bytes)
                    part = file.read(message.chunk_bytes)
                    chunk = FileChunk(sha256=message.sha256, index=index, total_bytes=size, crc32=crc32(part))
                    self._send_frames(route, encode(chunk, part))
        except OSError:
            self._files.pop(message.sha256, None)
            text = "this checkpoint is not kept any more; list the checkpoints again"
            self._send(route, ControlError(code="FILE_GONE", text=text))

    def _send(self, route: bytes, message: Message) -> bool:
        return self._send_frames(route, encode(message))

    def _send_frames(self, route: bytes, frames: list[Buffer]) -> bool:
        try:
            self.socket.send_multipart([route, *frames], zmq.DONTWAIT)
        except zmq.Again:
            return False
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            self._subscribers.pop(route, None)
            return False
        return True


def _digest(message: Command) -> bytes:
    return hashlib.sha256(message.model_dump_json().encode()).digest()
