"""A master that does what a test tells it: a real control ROUTER (CURVE, ZAP, the real messages), no training.

Its thread owns the socket; tests change `state`, `events` and `replies` through the methods here.
"""

import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zmq
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils import z85

from services.common.protocol import codec
from services.common.protocol.control import (
    Alive,
    Command,
    ControlError,
    Event,
    FileChunk,
    FilePull,
    Reply,
    Snapshot,
    Subscribe,
)
from services.common.protocol.join_string import PURPOSE_CONSOLE, derive_key
from services.common.protocol.limits import CURVE_DOMAIN_CONSOLE, ROUTER_OPTIONS

SECRET = bytes(range(32))
Answer = tuple[bool, str, str, dict[str, Any]]
Script = Callable[[dict[str, Any]], Answer]


def answers(result: dict[str, Any]) -> Script:
    """A script that always gives this result."""
    return lambda _: (True, "OK", "", result)


def _nothing(_: dict[str, Any]) -> Answer:
    return True, "OK", "", {"items": []}


class _OneKey:
    """Admits the console's key and no other."""

    def __init__(self, secret: bytes) -> None:
        self._key = zmq.curve_public(z85.encode(derive_key(secret, PURPOSE_CONSOLE)))

    def callback(self, domain: str, key: bytes) -> bool:
        return domain == CURVE_DOMAIN_CONSOLE and key == self._key


class ScriptedMaster:
    """Starts at once; `close` ends it. `control_dir` gets control.json."""

    def __init__(
        self, control_dir: Path, state: dict[str, Any], *, term: int = 1, keys: tuple[bytes, bytes] | None = None
    ) -> None:
        self.term = term
        self.keys = keys or zmq.curve_keypair()
        self.commands: list[dict[str, Any]] = []
        self.mute = False  # hears everything, answers nothing
        self.lose_replies = 0  # so many replies, and events, are made and not sent
        self.lose_events = 0
        self.files: dict[str, bytes] = {}
        self.replies: dict[str, Script] = {}
        self._state = state
        self._events: list[Event] = []
        self._lock = threading.Lock()
        self._kept_replies: dict[str, list[Any]] = {}
        self._kept_commands: dict[str, Any] = {}
        self._listeners: dict[bytes, int] = {}
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._auth = ThreadAuthenticator(self._context)
        self._auth.start()
        self._auth.configure_curve_callback(domain=CURVE_DOMAIN_CONSOLE, credentials_provider=_OneKey(SECRET))
        self._router = self._open()
        self.endpoint = self._router.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        control_dir.mkdir(parents=True, exist_ok=True)
        fields = {"endpoint": self.endpoint, "server_key": self.keys[0].decode(), "secret": SECRET.hex()}
        (control_dir / "control.json").write_text(json.dumps(fields))

    def close(self) -> None:
        """End the thread, then the sockets."""
        self._stopping.set()
        self._thread.join()
        self._router.close(0)
        self._auth.stop()
        self._context.term()

    def say(self, kind: str, text: str = "", data: dict[str, Any] | None = None) -> int:
        """One event for whoever listens; returns its number."""
        with self._lock:
            seq = len(self._events) + 1
            self._events.append(
                Event(term=self.term, seq=seq, time_ms=1_796_000_000_000 + seq, kind=kind, text=text, data=data or {})
            )
        return seq

    def change_state(self, state: dict[str, Any]) -> None:
        """What the next snapshot says."""
        with self._lock:
            self._state = state

    def keep_file(self, content: bytes) -> str:
        """A file that can be pulled; returns its SHA-256."""
        sha256 = hashlib.sha256(content).hexdigest()
        self.files[sha256] = content
        return sha256

    def _open(self) -> "zmq.Socket[bytes]":
        router = self._context.socket(zmq.ROUTER)
        for name, value in ROUTER_OPTIONS.items():
            router.setsockopt(getattr(zmq, name), value)
        router.setsockopt(zmq.ZAP_DOMAIN, CURVE_DOMAIN_CONSOLE.encode())
        router.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
        router.curve_secretkey = self.keys[1]
        router.curve_publickey = self.keys[0]
        router.curve_server = True
        router.bind("tcp://127.0.0.1:0")
        return router

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self._router.poll(10):
                route, *frames = self._router.recv_multipart()
                message, _ = codec.decode_from_console(frames)
                if not self.mute:
                    self._answer(route, message)
            for route in list(self._listeners):
                self._send_events(route)

    def _answer(self, route: bytes, message: Any) -> None:
        if isinstance(message, Subscribe):
            self._on_subscribe(route, message)
        elif isinstance(message, Command):
            self._on_command(route, message)
        elif isinstance(message, FilePull):
            self._on_pull(route, message)

    def _on_subscribe(self, route: bytes, message: Subscribe) -> None:
        with self._lock:
            newest = len(self._events)
            body = json.dumps(self._state).encode()
        if message.term != self.term:
            self._listeners[route] = newest
            self._send(route, Snapshot(term=self.term, seq=newest), body)
            return
        self._listeners[route] = message.after_seq
        if message.after_seq >= newest:
            self._send(route, Alive(term=self.term, seq=newest))

    def _send_events(self, route: bytes) -> None:
        if self.mute:
            return
        with self._lock:
            new = self._events[self._listeners[route] :]
        for event in new:
            self._listeners[route] = event.seq
            if self.lose_events:
                self.lose_events -= 1
            else:
                self._send(route, event)

    def _on_command(self, route: bytes, message: Command) -> None:
        if self._kept_commands.setdefault(message.cmd_id, message.command) != message.command:
            refused = ControlError(code="IDEMPOTENCY_KEY_REUSED", text="used before", cmd_id=message.cmd_id)
            self._send(route, refused)
            return
        if message.cmd_id not in self._kept_replies:
            command = message.command.model_dump()
            self.commands.append(command)
            script = self.replies.get(command["name"], _nothing)
            ok, code, text, result = script(command)
            reply = Reply(cmd_id=message.cmd_id, ok=ok, code=code, text=text)
            self._kept_replies[message.cmd_id] = [reply, json.dumps(result).encode()]
        if self.lose_replies:
            self.lose_replies -= 1
        else:
            self._send(route, *self._kept_replies[message.cmd_id])

    def _on_pull(self, route: bytes, message: FilePull) -> None:
        content = self.files.get(message.sha256)
        if content is None:
            self._send(route, ControlError(code="FILE_GONE", text="that file is not kept any more"))
            return
        for index in message.want:
            part = content[index * message.chunk_bytes : (index + 1) * message.chunk_bytes]
            chunk = FileChunk(sha256=message.sha256, index=index, total_bytes=len(content), crc32=codec.crc32(part))
            self._send(route, chunk, part)

    def _send(self, route: bytes, message: Any, payload: bytes | None = None) -> None:
        try:
            self._router.send_multipart([route, *codec.encode(message, payload)], zmq.DONTWAIT)
        except zmq.ZMQError:
            self._listeners.pop(route, None)  # it has gone; it subscribes again when it is back
