"""The two encrypted DEALERs to the master and what their monitor says in words. Used only in the link's thread."""

import random
import secrets

import zmq
from zmq.utils.monitor import recv_monitor_message

from services.common.protocol.limits import DEALER_OPTIONS, RECONNECT_IVL_RANGE_MS
from services.common.protocol.reasons import Reason, because
from services.console.control_file import MasterPlace

_RECONNECT_IVL_MS = random.SystemRandom().randint(*RECONNECT_IVL_RANGE_MS)
_REFUSALS = {
    int(zmq.EVENT_HANDSHAKE_FAILED_AUTH): "LINK_KEY_UNKNOWN",
    int(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL): "LINK_OTHER_KEY",
    int(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL): "LINK_NOT_MAHE",
}
_ENDINGS = {
    int(zmq.EVENT_DISCONNECTED): "LINK_CLOSED",
    int(zmq.EVENT_CLOSED): "LINK_NOBODY",
}
_WATCHED = sum(_REFUSALS) + sum(_ENDINGS) + int(zmq.EVENT_HANDSHAKE_SUCCEEDED)


def make_dealer(context: "zmq.Context[zmq.Socket[bytes]]", place: MasterPlace) -> "zmq.Socket[bytes]":
    """A DEALER that connects to `place` under our CURVE key, with a route id of its own."""
    socket = context.socket(zmq.DEALER)
    for name, value in DEALER_OPTIONS.items():
        socket.setsockopt(getattr(zmq, name), value)
    socket.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_IVL_MS)
    socket.setsockopt(zmq.ROUTING_ID, b"\x01" + secrets.token_bytes(15))
    socket.curve_secretkey = place.secret_key
    socket.curve_publickey = zmq.curve_public(place.secret_key)
    socket.curve_serverkey = place.server_key
    socket.setsockopt(zmq.IPV6, 1)
    socket.connect(place.endpoint)
    return socket


class Watch:
    """Why a socket is not connected, as its monitor said last. Close it before its socket."""

    def __init__(self, socket: "zmq.Socket[bytes]", endpoint: str) -> None:
        self._socket = socket
        self._endpoint = endpoint
        self._monitor = socket.get_monitor_socket(_WATCHED)
        self._refused = False
        self.connected = False
        self.reason: Reason | None = None

    def read(self) -> None:
        """Take in what the monitor has said since."""
        while self._monitor.poll(0):
            event = int(recv_monitor_message(self._monitor)["event"])
            self.connected = event == zmq.EVENT_HANDSHAKE_SUCCEEDED
            if self.connected:
                self._refused = False
                self.reason = because("LINK_BEGINS", endpoint=self._endpoint)
            elif event in _REFUSALS:
                self._refused = True
                self.reason = Reason(_REFUSALS[event], {"endpoint": self._endpoint})
            elif event in _ENDINGS and not self._refused:  # the closing after a refusal tells nothing new
                self.reason = Reason(_ENDINGS[event], {"endpoint": self._endpoint})

    def close(self) -> None:
        """Stop watching."""
        self._socket.disable_monitor()
        self._monitor.close(0)
