"""A real master in this process on ports of its own, and a scripted worker that speaks the real protocol to it."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import zmq
from zmq.utils import z85

from services.common.host.logs import Log
from services.common.protocol.codec import Buffer, decode_to_worker, encode
from services.common.protocol.join_string import PURPOSE_CONSOLE, PURPOSE_JOIN, derive_key, parse_join_string
from services.common.protocol.limits import CHUNK_BYTES, DEALER_OPTIONS
from services.common.protocol.messages import DeltaBegin, Encoding, Enrol, Hello, Message, TaskRef
from services.master.settings import MasterSettings
from services.master.shell.loop import Master

PATIENCE_MS = 5_000


@dataclass
class Running:
    """A master at work; `stop` ends it and raises what its thread raised."""

    folder: Path
    thread: threading.Thread
    stopping: list[bool]
    failures: list[BaseException]

    def stop(self) -> None:
        self.stopping.append(True)
        self.thread.join(10)
        assert not self.thread.is_alive()
        if self.failures:
            raise self.failures[0]


def start_master(folder: Path) -> Running:
    settings = MasterSettings(data=folder, bind="127.0.0.1", port=0, control_port=0)
    stopping: list[bool] = []
    failures: list[BaseException] = []
    ready = threading.Event()

    def work() -> None:
        try:
            master = Master(settings, Log("master"))
            ready.set()
            master.run(lambda: bool(stopping))
        except BaseException as error:  # noqa: BLE001 - raised again by `stop`, in the test's own thread
            failures.append(error)
            ready.set()

    thread = threading.Thread(target=work, name="master", daemon=True)
    thread.start()
    assert ready.wait(10)
    return Running(folder, thread, stopping, failures)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Running]:
    running = start_master(tmp_path / "master")
    yield running
    running.stop()


class Peer:
    """A DEALER under some key: a worker's, a join string's, or the console's."""

    def __init__(self, endpoint: str, server_key: bytes, secret: bytes) -> None:
        self.term = 0
        self.payload: Buffer | None = None
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.socket = self._context.socket(zmq.DEALER)
        for name, value in DEALER_OPTIONS.items():
            self.socket.setsockopt(getattr(zmq, name), value)
        self.socket.setsockopt(zmq.IMMEDIATE, 0)
        self.socket.curve_serverkey = server_key
        self.socket.curve_publickey, self.socket.curve_secretkey = zmq.curve_public(secret), secret
        self.socket.connect(endpoint)

    def send(self, message: Message, payload: Buffer | None = None) -> None:
        self.socket.send_multipart(encode(message, payload))

    def frames(self) -> list[bytes]:
        assert self.socket.poll(PATIENCE_MS), "no answer"
        return self.socket.recv_multipart()

    def receive(self, kind: str) -> Any:
        """The next message of this type; others are passed over."""
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while time.monotonic() < deadline:
            message, self.payload = decode_to_worker(self.frames())
            if message.t == kind:
                return message
        raise AssertionError(f"no {kind}")

    def close(self) -> None:
        self._context.destroy(linger=0)


def guest(running: Running) -> Peer:
    """Under the key of the join string for this PC."""
    join = parse_join_string((running.folder / "join" / "join-string").read_text())
    secret = z85.encode(derive_key(join.secret, PURPOSE_JOIN))
    return Peer(join.endpoints[0], z85.encode(join.server_key), secret)


def console(running: Running) -> Peer:
    """Under the console's key."""
    facts = json.loads((running.folder / "control" / "control.json").read_text())
    secret = z85.encode(derive_key(bytes.fromhex(facts["secret"]), PURPOSE_CONSOLE))
    return Peer(facts["endpoint"], facts["server_key"].encode(), secret)


def enrolled(running: Running, name: str = "ada") -> Peer:
    """Enrolled and connected under its own key; HELLO is still to be said."""
    public, secret = zmq.curve_keypair()
    newcomer = guest(running)
    newcomer.send(Enrol(name=name, public_key=public.decode(), proto_min=1, proto_max=1, app_version="0.1.0"))
    newcomer.receive("ENROLLED")
    newcomer.close()
    join = parse_join_string((running.folder / "join" / "join-string").read_text())
    return Peer(join.endpoints[0], z85.encode(join.server_key), secret)


def hello(**changed: Any) -> Hello:
    values: dict[str, Any] = {
        "proto_min": 1,
        "proto_max": 1,
        "app_version": "0.1.0",
        "boot_id": "0" * 32,
        "platform": "linux",
        "cores": 2,
        "threads": 1,
        "memory_mib": 1024,
        "score": 1000.0,
    }
    return Hello(**{**values, **changed})


def offer(ref: TaskRef, encoding: Encoding, delta: Any, name: str) -> DeltaBegin:
    """DELTA_BEGIN of these encoded bytes, announced with this digest."""
    return DeltaBegin(
        term=1,
        ref=ref,
        encoding=encoding,
        bytes=delta.nbytes,
        chunks=1,
        chunk_bytes=CHUNK_BYTES,
        digest=name,
        samples=10,
        steps=1,
        correct=0,
        loss=None,
        compute_ms=1,
    )
