"""The ROUTER that workers connect to: sessions, outboxes, and what each frame means. Used by the loop only.

A route id is only a route; who speaks is known by the CURVE key. Sends never block: what does not go now stays in the
worker's outbox, and a worker without a route becomes DETACHED.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import zmq

from services.common.errors import MaheError, ProtocolError
from services.common.protocol.codec import Buffer, decode_from_worker, encode
from services.common.protocol.limits import (
    CHUNK_BYTES,
    HEARTBEAT_MS,
    LOST_MS,
    PROTOCOL_VERSION,
    SUSPECT_MS,
    WINDOW_CHUNKS,
    WORKERS_MAX,
)
from services.common.protocol.messages import (
    DeltaChunk,
    DeltaCommit,
    Enrol,
    Enrolled,
    Error,
    Hello,
    Message,
    Pull,
    Reject,
    Rejoin,
    Welcome,
    because,
)
from services.master.core.events import Event, WorkerHeard, WorkerJoined, WorkerLeft, WorkerSaid
from services.master.shell.admission import Admission, Guest, Member

OUTBOX_MAX = 4_096  # messages; beyond it the worker is cut off and must rejoin
HEARD_EVERY_MS = 500  # bulk frames are told to the core at most this often
FRAMES_AT_ONCE = 256
RETRY_MS = 60_000
BOOTS_MAX = 3  # times a minute that another process may take a worker's session over


@dataclass
class _Session:
    route: bytes
    boot_id: str = ""
    outbox: deque[list[Buffer]] = field(default_factory=deque)
    heard_ms: int = 0


@dataclass
class WorkerPort:
    """`bulk` gets (worker, message, payload) of PULL, DELTA_CHUNK and DELTA_COMMIT; events go to the coordinator."""

    socket: "zmq.Socket[bytes]"
    admission: Admission
    term: int
    beacon_key: str
    endpoints: Callable[[], list[str]]
    bulk: Callable[[str, Pull | DeltaChunk | DeltaCommit, Buffer | None], None]
    refused: Callable[[str], None]
    chunk_bytes: int = CHUNK_BYTES
    _sessions: dict[str, _Session] = field(default_factory=dict)
    _routes: dict[bytes, str] = field(default_factory=dict)
    _boots: dict[str, list[int]] = field(default_factory=dict)  # when another process took a worker's session over
    _unsent: dict[str, None] = field(default_factory=dict)  # workers with something in their outbox, in order

    def receive(self, now_ms: int) -> Iterator[Event]:
        """Take what has come, at most FRAMES_AT_ONCE messages; step each event before you ask for the next."""
        for _ in range(FRAMES_AT_ONCE):
            try:
                frames = self.socket.recv_multipart(zmq.DONTWAIT, copy=False)
            except zmq.Again:
                break
            route, key = frames[0].bytes, str(frames[-1].get("User-Id"))
            try:
                message, payload = decode_from_worker([frame.buffer for frame in frames[1:]])
                events = self._take(route, key, message, payload, now_ms)
            except MaheError as error:  # refused, or the store cannot be written: the sender is told, the loop goes on
                self.refused(error.sentence)
                self._reply(route, Error(code=error.code, text=error.sentence))
                continue
            yield from events

    def send(self, worker: str, message: Message, payload: memoryview | None = None) -> None:
        """Into the worker's outbox; dropped when it has no session (it will be told everything anew on HELLO)."""
        session = self._sessions.get(worker)
        if session is not None:
            session.outbox.append(encode(message, payload))
            self._unsent[worker] = None

    def flush(self) -> list[Event]:
        """Send what the sockets take; a worker that has no route any more, or takes nothing, is DETACHED."""
        events: list[Event] = []
        unsent, self._unsent = self._unsent, {}
        for worker in unsent:
            session = self._sessions.get(worker)
            if session is None:
                continue
            while session.outbox:
                frames = session.outbox[0]
                try:
                    self.socket.send_multipart([session.route, *frames], zmq.DONTWAIT, copy=len(frames) == 1)
                except zmq.Again:
                    break
                except zmq.ZMQError as error:
                    if error.errno != zmq.EHOSTUNREACH:
                        raise
                    self.forget(worker)
                    events.append(WorkerLeft(worker, because("CONNECTION_GONE")))
                    break
                session.outbox.popleft()
            if len(session.outbox) > OUTBOX_MAX:
                self.forget(worker)
                events.append(WorkerLeft(worker, because("TAKES_NO_MESSAGES")))
            elif session.outbox:
                self._unsent[worker] = None
        return events

    def forget(self, worker: str) -> None:
        """Drop a worker's session; its next message is answered REJOIN."""
        session = self._sessions.pop(worker, None)
        if session is not None:
            self._routes.pop(session.route, None)

    def everyone(self) -> list[str]:
        """Workers with a session."""
        return sorted(self._sessions)

    def _take(self, route: bytes, key: str, message: Any, payload: Buffer | None, now_ms: int) -> list[Event]:
        who = self.admission.who(key)
        if who is None:
            text = "this key was removed or its join string revoked; get a new join string from the page"
            self._reply(route, Reject(code="AUTH_REVOKED", text=text))
            return []
        if isinstance(who, Guest):
            self._enrol(route, who, message, now_ms)
            return []
        if isinstance(message, Hello):
            return self._hello(route, who, message, now_ms)
        if self._routes.get(route) != who.worker or getattr(message, "term", self.term) != self.term:
            self._reply(route, Rejoin(term=self.term, reason="this master does not know your session; say HELLO"))
            return []
        if isinstance(message, Error):
            return [WorkerHeard(who.worker)]
        if isinstance(message, Pull | DeltaChunk | DeltaCommit):
            self.bulk(who.worker, message, payload)
            session = self._sessions[who.worker]
            if now_ms - session.heard_ms < HEARD_EVERY_MS:
                return []
            session.heard_ms = now_ms
            return [WorkerHeard(who.worker)]
        return [WorkerSaid(who.worker, message)]

    def _enrol(self, route: bytes, guest: Guest, message: Any, now_ms: int) -> None:
        if not isinstance(message, Enrol):
            self._reply(route, Reject(code="ENROL_ONLY", text="under a join string's key only ENROL is taken"))
            return
        try:
            _check_version(message)
            member = self.admission.enrol(guest, message, now_ms)
        except MaheError as error:
            self.refused(f"{message.name}: {error.sentence}")
            final = isinstance(error, ProtocolError) and error.code != "AUTH_RATE_LIMITED"
            retry_ms = None if final else RETRY_MS
            self._reply(route, Reject(code=error.code, text=error.sentence, retry_after_ms=retry_ms))
            return
        enrolled = Enrolled(
            worker=member.worker, name=member.name, endpoints=self.endpoints(), beacon_key=self.beacon_key
        )
        self._reply(route, enrolled)

    def _hello(self, route: bytes, member: Member, message: Hello, now_ms: int) -> list[Event]:
        try:
            _check_version(message)
        except ProtocolError as error:
            self._reply(route, Reject(code=error.code, text=error.sentence))
            return []
        if member.worker not in self._sessions and len(self._sessions) >= WORKERS_MAX:
            text = f"{WORKERS_MAX} workers are joined, which is the limit; remove one on the page"
            self._reply(route, Reject(code="CLUSTER_FULL", text=text, retry_after_ms=RETRY_MS))
            return []
        if self._comes_too_often(member, message.boot_id, now_ms):
            text = (
                "another process uses this worker's key: was its data folder copied to a second PC? remove one of the "
                "two from that PC (or this worker restarts again and again: see its log)"
            )
            self.refused(f"{member.name}: {text}")
            self._reply(route, Reject(code="WORKER_TWICE", text=text, retry_after_ms=RETRY_MS))
            return []
        self.forget(member.worker)
        self._sessions[member.worker] = _Session(route, message.boot_id, heard_ms=now_ms)
        self._routes[route] = member.worker
        welcome = Welcome(
            term=self.term,
            proto=PROTOCOL_VERSION,
            worker=member.worker,
            name=member.name,
            heartbeat_ms=HEARTBEAT_MS,
            suspect_ms=SUSPECT_MS,
            lost_ms=LOST_MS,
            chunk_bytes=self.chunk_bytes,
            window_chunks=WINDOW_CHUNKS,
        )
        self.send(member.worker, welcome)
        return [WorkerJoined(member.worker, member.name, message)]

    def _comes_too_often(self, member: Member, boot_id: str, now_ms: int) -> bool:
        """Whether processes with one key put each other out more than BOOTS_MAX times a minute."""
        session = self._sessions.get(member.worker)
        if session is None or session.boot_id == boot_id:
            return False
        boots = [at for at in self._boots.get(member.worker, []) if now_ms - at < RETRY_MS]
        self._boots[member.worker] = [*boots, now_ms][-BOOTS_MAX - 1 :]
        return len(boots) >= BOOTS_MAX

    def _reply(self, route: bytes, message: Message) -> None:
        """To whom has no session; lost when it cannot go now, for the other side asks again."""
        try:
            self.socket.send_multipart([route, *encode(message)], zmq.DONTWAIT)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EAGAIN, zmq.EHOSTUNREACH):
                raise


def _check_version(message: Enrol | Hello) -> None:
    if message.proto_min <= PROTOCOL_VERSION <= message.proto_max:
        return
    raise ProtocolError(
        f"this worker ({message.app_version}) speaks protocol {message.proto_min} to {message.proto_max}, "
        f"this master speaks {PROTOCOL_VERSION}; install the same MAHE on both PCs",
        code="PROTO_VERSION",
    )
