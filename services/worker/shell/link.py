"""The one socket to the master and its monitor: opened under a key, closed, and read as events of the core.

What the monitor of a DEALER says, by what answers at the endpoint, was measured on libzmq 4.3.5:
- a master that does not know our key: CONNECTED, HANDSHAKE_FAILED_AUTH 400, DISCONNECTED, and never a retry;
- a master with another key, or a proxy that closes at once: CONNECTED, HANDSHAKE_FAILED_NO_DETAIL (EPIPE), retry;
- something that says nothing for HANDSHAKE_IVL: CONNECTED, HANDSHAKE_FAILED_NO_DETAIL (EAGAIN), retry;
- ZeroMQ without CURVE: CONNECTED, HANDSHAKE_FAILED_PROTOCOL, no retry; HTTP or SSH: CONNECTED, DISCONNECTED, no retry;
- nothing, or an unknown name: CONNECT_RETRIED without CONNECTED.
"""

import errno
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import zmq
from zmq.utils.monitor import parse_monitor_message

from services.common.errors import SettingsError
from services.common.protocol.codec import Buffer
from services.common.protocol.limits import DEALER_OPTIONS, LIBZMQ_MIN, RECONNECT_IVL_RANGE_MS
from services.worker.core.events import Fault, LinkDown, LinkFailed, LinkUp

ROUTING_ID_BYTES = 16
SILENT_ERRNOS = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ETIMEDOUT)
LinkEvent = LinkUp | LinkDown | LinkFailed


@dataclass(frozen=True)
class Keys:
    """One CURVE key pair, Z85."""

    public: bytes
    secret: bytes


def route_id() -> bytes:
    """Random, and not beginning with 0, which ZeroMQ keeps for itself."""
    return bytes([1 + secrets.randbelow(255)]) + secrets.token_bytes(ROUTING_ID_BYTES - 1)


def check_library() -> None:
    """Refuse a libzmq that is too old or cannot do CURVE."""
    if zmq.zmq_version_info() < LIBZMQ_MIN or not zmq.has("curve"):
        needed = ".".join(map(str, LIBZMQ_MIN))
        raise SettingsError(f"libzmq {zmq.zmq_version()} cannot be used: needed is {needed} or newer, with CURVE")


class MasterLink:
    """At most one DEALER. Its owner is the agent's thread alone."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], server_key: bytes) -> None:
        self._context = context
        self._server_key = server_key
        low, high = RECONNECT_IVL_RANGE_MS
        self._reconnect_ivl_ms = low + secrets.randbelow(high - low + 1)
        self._socket: zmq.Socket[bytes] | None = None
        self._monitor: zmq.Socket[bytes] | None = None
        self._is_connected = self._is_up = self._has_failed = False

    @property
    def sockets(self) -> list[zmq.Socket[bytes]]:
        """What the poller watches."""
        return [one for one in (self._socket, self._monitor) if one is not None]

    def open(self, endpoint: str, keys: Keys) -> None:
        """A new socket, whose route id is a new random one. Raises zmq.ZMQError for an endpoint ZeroMQ refuses."""
        self.close()
        dealer = self._socket = self._context.socket(zmq.DEALER)
        for name, value in DEALER_OPTIONS.items():
            dealer.setsockopt(getattr(zmq, name), value)
        dealer.setsockopt(zmq.RECONNECT_IVL, self._reconnect_ivl_ms)
        dealer.setsockopt(zmq.ROUTING_ID, route_id())
        if endpoint.startswith("tcp://["):
            dealer.setsockopt(zmq.IPV6, 1)
        dealer.curve_serverkey = self._server_key
        dealer.curve_publickey = keys.public
        dealer.curve_secretkey = keys.secret
        self._monitor = dealer.get_monitor_socket()
        self._monitor.setsockopt(zmq.LINGER, 0)
        self._is_connected = self._is_up = self._has_failed = False
        dealer.connect(endpoint)

    def close(self, linger_ms: int = 0) -> None:
        """Close both sockets; safe to call twice. One that stayed open would keep the context from ending, for ever."""
        dealer, monitor = self._socket, self._monitor
        self._socket = self._monitor = None
        self._is_up = False
        try:
            if dealer is not None and monitor is not None:
                dealer.disable_monitor()
        finally:
            if monitor is not None:
                monitor.close(linger=0)
            if dealer is not None:
                dealer.close(linger=linger_ms)

    def send(self, frames: Sequence[Buffer]) -> bool:
        """False when there is no link or it is full: the message is dropped."""
        if self._socket is None or not self._is_up:
            return False
        try:
            self._socket.send_multipart(frames, zmq.DONTWAIT)
        except zmq.Again:
            return False
        return True

    def receive(self, limit: int) -> Iterator[list[memoryview]]:
        """Up to `limit` messages that are here, as frames; a frame is valid as long as it is referenced."""
        for _ in range(limit):
            if self._socket is None:
                return
            try:
                frames = self._socket.recv_multipart(zmq.DONTWAIT, copy=False)
            except zmq.Again:
                return
            yield [frame.buffer for frame in frames]

    def events(self) -> Iterator[LinkEvent]:
        """What the monitor says, as events of the core."""
        while self._monitor is not None:
            try:
                message = parse_monitor_message(self._monitor.recv_multipart(zmq.DONTWAIT))
            except zmq.Again:
                return
            yield from self._read(int(message["event"]), int(message["value"]))

    def _read(self, event: int, value: int) -> Iterator[LinkEvent]:
        if event == zmq.EVENT_CONNECTED:
            self._is_connected, self._has_failed = True, False
        elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._is_up = True
            yield LinkUp()
        elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            self._has_failed = True
            yield LinkFailed(Fault.AUTH)
        elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
            self._has_failed = True
            yield LinkFailed(Fault.ALIEN)
        elif event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL:
            self._has_failed = True
            yield LinkFailed(Fault.SILENT if value in SILENT_ERRNOS else Fault.KEY)
        elif event == zmq.EVENT_DISCONNECTED:
            was_up, self._is_up = self._is_up, False
            if was_up:
                yield LinkDown()
            elif not self._has_failed:
                yield LinkFailed(Fault.ALIEN)
        elif event == zmq.EVENT_CONNECT_RETRIED:
            was_connected, self._is_connected = self._is_connected, False
            if not was_connected:
                yield LinkFailed(Fault.NO_ANSWER)
