"""How threads hand things to the loop: a queue, and a socket pair that wakes its poller (pipes cannot on Windows)."""

import queue
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Mailbox(Generic[Item]):
    """Many writers, one reader."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def put(self, item: Item) -> None:
        """From any thread."""
        self._items.put(item)
        with suppress(OSError):  # a full pair wakes just as well; a closed one has no reader left
            self._writer.send(b"\0")

    def fileno(self) -> int:
        """For the poller."""
        return self._reader.fileno()

    def drain(self) -> Iterator[Item]:
        """In the loop: everything that has come."""
        with suppress(BlockingIOError):
            while self._reader.recv(4096):
                pass
        with suppress(queue.Empty):
            while True:
                yield self._items.get_nowait()

    def close(self) -> None:
        """After the last reader."""
        self._reader.close()
        self._writer.close()
