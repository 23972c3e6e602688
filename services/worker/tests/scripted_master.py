"""A master that does what a test tells it: a real ROUTER with CURVE and a real authenticator, speaking MAHE/1.

Not a model of the master: it decides nothing by itself, except that HEARTBEAT and PROGRESS may come at any time.
"""

import contextlib
import time
from collections.abc import Iterator
from typing import Any, TypeVar

import xxhash
import zmq
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils import z85

from services.common.protocol import limits, messages
from services.common.protocol.codec import Buffer, crc32, decode_from_worker, encode
from services.common.protocol.join_string import PURPOSE_JOIN, JoinString, derive_key, format_join_string

M = TypeVar("M", bound=messages.Message)
WAIT_S = 10.0
CHUNK_BYTES = 4096
WINDOW_CHUNKS = 4
ANY_TIME = (messages.Heartbeat, messages.Progress)


class ScriptedMaster:
    """One ROUTER on a free port of loopback. `keys` are the public keys it admits."""

    def __init__(self, *, secret: bytes = b"\x07" * 32) -> None:
        self.public, self._secret_key = zmq.curve_keypair()
        self.secret = secret
        self.join_key = zmq.curve_public(z85.encode(derive_key(secret, PURPOSE_JOIN)))
        self.keys = {self.join_key}
        self.term = 1
        self.port = 0
        self.route = b""
        self.user = b""
        self.seen: list[messages.Message] = []
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._auth = ThreadAuthenticator(self._context)
        self._auth.start()
        self._auth.configure_curve_callback(domain=limits.CURVE_DOMAIN_WORKERS, credentials_provider=self)
        self._socket: zmq.Socket[bytes] | None = None
        self.bind()

    def callback(self, domain: str, key: bytes) -> bool:
        """Whether this key (Z85) may come in; asked by the authenticator."""
        return domain == limits.CURVE_DOMAIN_WORKERS and key in self.keys

    def bind(self) -> None:
        """Answer on the port, the same one after `unbind`."""
        router = self._context.socket(zmq.ROUTER)
        for name, value in limits.ROUTER_OPTIONS.items():
            router.setsockopt(getattr(zmq, name), value)
        router.curve_server = True
        router.curve_publickey, router.curve_secretkey = self.public, self._secret_key
        router.zap_domain = limits.CURVE_DOMAIN_WORKERS.encode()
        router.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
        if self.port:
            self._bind_again(router)
        else:
            self.port = router.bind_to_random_port("tcp://127.0.0.1")
        self._socket = router

    def unbind(self) -> None:
        """Be gone."""
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None

    def new_key(self) -> None:
        """Another CURVE key pair on the same port, as of another master."""
        self.unbind()
        self.public, self._secret_key = zmq.curve_keypair()
        self.bind()

    def close(self) -> None:
        """The end."""
        self.unbind()
        self._auth.stop()
        self._context.term()

    def join_string(self, *endpoints: str, secret: bytes | None = None) -> str:
        """The line to paste."""
        named = endpoints or (f"tcp://127.0.0.1:{self.port}",)
        return format_join_string(JoinString(named, z85.decode(self.public), secret or self.secret))

    def receive(self, wait_s: float = WAIT_S) -> tuple[Any, Buffer | None]:
        """The next message; AssertionError when none comes."""
        assert self._socket is not None
        assert self._socket.poll(round(wait_s * 1000)), f"nothing came in {wait_s} s; so far: {self.names()}"
        frames = self._socket.recv_multipart(copy=False)
        self.route, self.user = frames[0].bytes, str(frames[-1].get("User-Id")).encode()
        message, payload = decode_from_worker([frame.bytes for frame in frames[1:]])
        self.seen.append(message)
        return message, payload

    def expect(self, kind: type[M], wait_s: float = WAIT_S) -> M:
        """The next message that is not a HEARTBEAT or PROGRESS; it must be of this kind."""
        return self.expect_with_payload(kind, wait_s)[0]

    def expect_with_payload(self, kind: type[M], wait_s: float = WAIT_S) -> tuple[M, Buffer | None]:
        """As `expect`, with the payload."""
        deadline = time.monotonic() + wait_s
        while True:
            message, payload = self.receive(max(0.0, deadline - time.monotonic()))
            if isinstance(message, kind):
                return message, payload
            assert isinstance(message, ANY_TIME), f"{kind.__name__} was due, this came: {message}"

    def quiet(self, wait_s: float) -> None:
        """Nothing but HEARTBEAT and PROGRESS comes for a while."""
        deadline = time.monotonic() + wait_s
        assert self._socket is not None
        while self._socket.poll(max(0, round((deadline - time.monotonic()) * 1000))):
            message, _ = self.receive()
            assert isinstance(message, ANY_TIME), f"nothing was due, this came: {message}"

    def send(self, message: messages.Message, payload: Buffer | None = None) -> None:
        """To the worker that spoke last."""
        assert self._socket is not None
        self._socket.send_multipart([self.route, *encode(message, payload)])

    def enrol(self, worker: str = "w-1") -> None:
        """ENROL under the join key, ENROLLED, and the worker's own key is admitted."""
        enrol = self.expect(messages.Enrol)
        assert self.user == self.join_key
        self.keys.add(enrol.public_key.encode())
        self.send(messages.Enrolled(worker=worker, name=enrol.name, endpoints=[], beacon_key="k" * 40))

    def welcome(self, worker: str = "w-1", *, heartbeat_ms: int = 300, suspect_ms: int = 6_000) -> messages.Hello:
        """HELLO, WELCOME."""
        hello = self.expect(messages.Hello)
        self.send(
            messages.Welcome(
                term=self.term,
                proto=1,
                worker=worker,
                name=worker,
                heartbeat_ms=heartbeat_ms,
                suspect_ms=suspect_ms,
                lost_ms=limits.LOST_MS,
                chunk_bytes=CHUNK_BYTES,
                window_chunks=WINDOW_CHUNKS,
            )
        )
        return hello

    def serve(self, version: int, run: str, anchor: bytes, digest: str, what: messages.What = "snapshot") -> int:
        """Answer PULL until every chunk of a version, or of an update to it, went out once; the number of chunks."""
        count = -(-len(anchor) // CHUNK_BYTES)
        left = set(range(count))
        while left:
            pull = self.expect(messages.Pull)
            assert (pull.what, pull.run, pull.version) == (what, run, version)
            for index in pull.want:
                left.discard(index)
                self.send_chunk(pull, index, anchor, digest)
        return count

    def send_chunk(self, pull: messages.Pull, index: int, anchor: bytes, digest: str) -> None:
        """One CHUNK."""
        payload = anchor[index * CHUNK_BYTES : (index + 1) * CHUNK_BYTES]
        chunk = messages.Chunk(
            term=self.term,
            what=pull.what,
            run=pull.run,
            version=pull.version,
            index=index,
            count=-(-len(anchor) // CHUNK_BYTES),
            total_bytes=len(anchor),
            digest=digest,
            crc32=crc32(payload),
        )
        self.send(chunk, payload)

    def take_delta(self) -> tuple[messages.DeltaBegin, bytes]:
        """DELTA_BEGIN, the chunks by credit, DELTA_COMMIT: the whole delta, not acknowledged yet."""
        begin = self.expect(messages.DeltaBegin)
        parts: dict[int, bytes] = {}
        self.send(messages.Credit(term=self.term, ref=begin.ref, want=list(range(min(WINDOW_CHUNKS, begin.chunks)))))
        asked = min(WINDOW_CHUNKS, begin.chunks)
        while len(parts) < begin.chunks:
            message, payload = self.expect_with_payload(messages.DeltaChunk)
            assert payload is not None
            assert crc32(payload) == message.crc32
            parts[message.index] = bytes(payload)
            if asked < begin.chunks:
                self.send(messages.Credit(term=self.term, ref=begin.ref, want=[asked]))
                asked += 1
        commit = self.expect(messages.DeltaCommit)
        assert commit.digest == begin.digest
        return begin, b"".join(parts[index] for index in range(begin.chunks))

    def ack(self, ref: messages.TaskRef, status: messages.AckStatus) -> None:
        """The verdict."""
        self.send(messages.Ack(term=self.term, ref=ref, status=status, code="OK", text="said by the test"))

    def announce(self, version: int, run: str, update: bytes) -> None:
        """There is an update to this version."""
        digest = xxhash.xxh3_128_hexdigest(update)
        self.send(messages.Update(term=self.term, run=run, version=version, bytes=len(update), digest=digest))

    def serve_update(self, version: int, run: str, update: bytes) -> int:
        """As `serve`."""
        return self.serve(version, run, update, xxhash.xxh3_128_hexdigest(update), "update")

    def round_closed(self, ref: messages.TaskRef, *, counted: bool = True) -> None:
        """The round of this work is durable, with its delta or without."""
        self.send(
            messages.RoundClosed(
                term=self.term,
                run=ref.run,
                round=ref.round,
                version=ref.base_version + 1,
                digest="0" * 32,
                counted=[ref.lease] if counted else [],
            )
        )

    def names(self) -> list[str]:
        """The kinds of messages that came, for assertions."""
        return [type(message).__name__ for message in self.seen]

    def _bind_again(self, router: "zmq.Socket[bytes]") -> None:
        """The I/O thread frees the port of a closed socket a moment later."""
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                router.bind(f"tcp://127.0.0.1:{self.port}")
                return
            except zmq.ZMQError as error:
                if error.errno != zmq.EADDRINUSE or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


@contextlib.contextmanager
def scripted_master() -> Iterator[ScriptedMaster]:
    """A master for one test."""
    master = ScriptedMaster()
    try:
        yield master
    finally:
        master.close()
