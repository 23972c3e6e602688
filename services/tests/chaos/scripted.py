"""Many workers in one thread that speak the real protocol over real CURVE sockets, and train nothing.

Each makes its own key pair, enrols, joins, acknowledges tasks, pulls the snapshot, uploads a tiny delta by credits and
keeps heartbeats. Not a worker to copy: it keeps no delta over a restart, and it trusts what it is told.
"""

import secrets
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xxhash
import zmq
from zmq.utils import z85

from services.common.protocol.codec import Buffer, crc32, decode_to_worker, encode
from services.common.protocol.join_string import PURPOSE_JOIN, JoinString, derive_key
from services.common.protocol.limits import APP_VERSION, DEALER_OPTIONS, RECONNECT_IVL_RANGE_MS
from services.common.protocol.messages import (
    DeltaBegin,
    DeltaChunk,
    DeltaCommit,
    Enrol,
    Heartbeat,
    Hello,
    Message,
    Pull,
    Task,
    TaskAck,
    TaskRef,
)

HEARTBEAT_S = 2.0
POLL_MS = 100
MESSAGES_AT_ONCE = 64


@dataclass
class Scripted:
    """One worker: its keys, its socket, and where it stands in its one task."""

    name: str
    public: bytes
    secret: bytes
    socket: "zmq.Socket[bytes] | None" = None
    enrolled: bool = False
    joined: bool = False
    term: int = 0
    chunk_bytes: int = 4096
    task: Task | None = None
    pulled: int = 0
    beat_at: float = 0.0


@dataclass
class Herd:
    """All of them, on one context and one poller; `turn` is called again and again by one thread.

    `think_s`: so long a worker seems to train. `seen` counts messages by type.
    """

    join: JoinString
    think_s: float = 0.0
    workers: list[Scripted] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    _thinking: "deque[tuple[float, Scripted]]" = field(default_factory=deque)
    _by_socket: "dict[zmq.Socket[bytes], Scripted]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context(io_threads=1)
        self._context.set(zmq.MAX_SOCKETS, 4096)
        self._poller = zmq.Poller()
        guest = z85.encode(derive_key(self.join.secret, PURPOSE_JOIN))
        self._guest = (zmq.curve_public(guest), guest)

    def start(self, count: int) -> None:
        """`count` more workers connect under the join key, all at once."""
        for number in range(len(self.workers) + 1, len(self.workers) + count + 1):
            worker = Scripted(f"scripted-{number}", *zmq.curve_keypair())
            self.workers.append(worker)
            self._connect(worker, *self._guest)
            public = worker.public.decode()
            self._send(
                worker, Enrol(name=worker.name, public_key=public, proto_min=1, proto_max=1, app_version=APP_VERSION)
            )

    @property
    def joined(self) -> int:
        """How many have been welcomed."""
        return sum(worker.joined for worker in self.workers)

    def turn(self) -> None:
        """Take what has come, go on with what was thought over, send heartbeats that are due."""
        for socket, _ in self._poller.poll(POLL_MS):
            worker = self._by_socket.get(socket)
            for _ in range(MESSAGES_AT_ONCE):
                if worker is None or worker.socket is not socket or not self._receive(worker):
                    break
        now = time.monotonic()
        while self._thinking and self._thinking[0][0] <= now:
            self._offer(self._thinking.popleft()[1])
        for worker in self.workers:
            if worker.joined and now >= worker.beat_at:
                worker.beat_at = now + HEARTBEAT_S
                self._send(worker, Heartbeat(term=worker.term, agent="training" if worker.task else "idle"))

    def close(self) -> None:
        """Close all sockets."""
        self._context.destroy(linger=0)

    def _connect(self, worker: Scripted, public: bytes, secret: bytes) -> None:
        if worker.socket is not None:
            self._poller.unregister(worker.socket)
            del self._by_socket[worker.socket]
            worker.socket.close(linger=0)
        socket = worker.socket = self._context.socket(zmq.DEALER)
        for name, value in DEALER_OPTIONS.items():
            socket.setsockopt(getattr(zmq, name), value)
        low, high = RECONNECT_IVL_RANGE_MS
        socket.setsockopt(zmq.RECONNECT_IVL, low + secrets.randbelow(high - low + 1))
        socket.setsockopt(zmq.IMMEDIATE, 0)  # the first word waits in the pipe for the handshake
        socket.setsockopt(zmq.ROUTING_ID, b"\x01" + secrets.token_bytes(15))
        socket.curve_serverkey = z85.encode(self.join.server_key)
        socket.curve_publickey, socket.curve_secretkey = public, secret
        socket.connect(self.join.endpoints[0])
        self._poller.register(socket, zmq.POLLIN)
        self._by_socket[socket] = worker

    def _receive(self, worker: Scripted) -> bool:
        assert worker.socket is not None
        try:
            frames = worker.socket.recv_multipart(zmq.DONTWAIT)
        except zmq.Again:
            return False
        message, payload = decode_to_worker(frames)
        self.seen[message.t] += 1
        self._take(worker, message, payload)
        return True

    def _take(self, worker: Scripted, message: Any, payload: Buffer | None) -> None:
        match message.t:
            case "ENROLLED":
                worker.enrolled = True
                self._connect(worker, worker.public, worker.secret)
                self._send(worker, _hello())
            case "REJOIN":
                worker.joined, worker.task = False, None
                self._send(worker, _hello())
            case "WELCOME":
                worker.joined, worker.term, worker.chunk_bytes = True, message.term, message.chunk_bytes
            case "TASK":
                worker.task, worker.pulled = message, 0
                self._send(worker, TaskAck(term=worker.term, ref=message.ref))
                self._pull(worker, message, [0])
            case "CHUNK" if worker.task is not None and message.version == worker.task.ref.base_version:
                assert payload is not None
                worker.pulled += len(payload)
                if message.index + 1 < message.count:
                    self._pull(worker, worker.task, [message.index + 1])
                else:
                    self._thinking.append((time.monotonic() + self.think_s, worker))
            case "CREDIT" if worker.task is not None and message.ref.lease == worker.task.ref.lease:
                self._upload(worker, message.ref, message.want)
            case "ROUND_CLOSED" | "CANCEL":
                worker.task = None
            case _:
                pass

    def _pull(self, worker: Scripted, task: Task, want: list[int]) -> None:
        ref = task.ref
        self._send(worker, Pull(term=worker.term, what="snapshot", run=ref.run, version=ref.base_version, want=want))

    def _offer(self, worker: Scripted) -> None:
        task = worker.task
        if task is None:
            return
        delta = _delta(task)
        begin = DeltaBegin(
            term=worker.term,
            ref=task.ref,
            encoding="fp32",
            bytes=len(delta),
            chunks=-(-len(delta) // worker.chunk_bytes),
            chunk_bytes=worker.chunk_bytes,
            digest=xxhash.xxh3_128_hexdigest(delta),
            samples=task.samples,
            steps=task.k_steps,
            correct=0,
            loss=1.0,
            compute_ms=100,
        )
        self._send(worker, begin)

    def _upload(self, worker: Scripted, ref: TaskRef, want: list[int]) -> None:
        assert worker.task is not None
        delta = _delta(worker.task)
        for index in want:
            part = delta[index * worker.chunk_bytes : (index + 1) * worker.chunk_bytes]
            self._send(worker, DeltaChunk(term=worker.term, ref=ref, index=index, crc32=crc32(part)), part)
            if (index + 1) * worker.chunk_bytes >= len(delta):
                self._send(worker, DeltaCommit(term=worker.term, ref=ref, digest=xxhash.xxh3_128_hexdigest(delta)))

    @staticmethod
    def _send(worker: Scripted, message: Message, payload: Buffer | None = None) -> None:
        assert worker.socket is not None
        worker.socket.send_multipart(encode(message, payload), zmq.DONTWAIT)


def _delta(task: Task) -> bytes:
    """The same small numbers for the same shard: what a worker would have learnt does not matter here."""
    return np.full(task.n_parameters, 1e-4 * (1 + task.ref.shard % 7), dtype=np.float32).tobytes()


def _hello() -> Hello:
    return Hello(
        proto_min=1,
        proto_max=1,
        app_version=APP_VERSION,
        boot_id=secrets.token_hex(16),
        platform="scripted",
        cores=1,
        threads=1,
        memory_mib=1024,
        score=1000.0,
    )
