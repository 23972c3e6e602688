"""Requests as bytes on a socket of their own: what no HTTP client would send, or not at this pace."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from services.console.tests.conftest import RunningConsole

WAIT_S = 10.0


def head(console: RunningConsole, method: str, target: str, *lines: str) -> bytes:
    """The head of a request as the page would make it, with further header `lines`, up to its empty line."""
    own = (f"Host: {console.host}", f"X-MAHE-Token: {console.token}", "Connection: close")
    return "\r\n".join((f"{method} {target} HTTP/1.1", *own, *lines, "", "")).encode("latin-1")


@contextmanager
def connected(console: RunningConsole) -> Iterator[socket.socket]:
    """A connection to the console."""
    host, _, port = console.host.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=WAIT_S) as made:
        yield made


def read_all(connection: socket.socket) -> bytes:
    """What still comes until the console closes; fails after WAIT_S without a byte."""
    parts = []
    try:
        while part := connection.recv(65_536):
            parts.append(part)
    except ConnectionError:  # it closed while bytes of ours were on their way
        pass
    return b"".join(parts)


def answer_to(console: RunningConsole, request: bytes, *, and_end: bool = False) -> bytes:
    """The whole answer; with `and_end` nothing more is sent, and the console knows it."""
    with connected(console) as connection:
        try:
            connection.sendall(request)
            if and_end:
                connection.shutdown(socket.SHUT_WR)
        except ConnectionError:  # it has refused and closed before it was sent whole
            pass
        return read_all(connection)


def status_of(answer: bytes) -> int:
    """The status of an answer; 0 when there is none."""
    words = answer.partition(b"\r\n")[0].split()
    return int(words[1]) if len(words) > 1 else 0
