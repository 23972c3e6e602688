"""A file of the master as a stream of chunks, with at most WINDOW_CHUNKS asked for ahead; never held whole.

`FileDesk` routes chunks in the link's thread; `pull` runs in the event loop and gives credits as it is read.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from services.common.protocol.control import FileChunk, FilePull
from services.common.protocol.limits import CHUNK_BYTES, WINDOW_CHUNKS
from services.console.problems import Problem, unreachable

CHUNK_WAIT_S = 5.0
ATTEMPTS_MAX = 3  # in a row without any chunk
TRANSFERS_MAX = 4

Arrival = tuple[FileChunk, bytes] | Problem


@dataclass(frozen=True)
class Transfer:
    """One download: which file, and where its chunks go."""

    sha256: str
    deliver: Callable[[Arrival], None]


class FileDesk:
    """The downloads in flight, by number. Used only in the link's thread."""

    def __init__(self) -> None:
        self._transfers: dict[int, Transfer] = {}

    def open(self, number: int, transfer: Transfer) -> None:
        """A download begins."""
        self._transfers[number] = transfer

    def close(self, number: int) -> None:
        """A download has ended; chunks that still come are dropped."""
        self._transfers.pop(number, None)

    def on_chunk(self, chunk: FileChunk, payload: bytes) -> None:
        """Hand a chunk to whoever reads that file; a reader drops an index that it does not want."""
        for transfer in self._transfers.values():
            if transfer.sha256 == chunk.sha256:
                transfer.deliver((chunk, payload))

    def on_error(self, problem: Problem) -> None:
        """The error names no file, so every download ends with it."""
        for transfer in self._transfers.values():
            transfer.deliver(problem)


async def pull(
    sha256: str, arrivals: "asyncio.Queue[Arrival]", ask: Callable[[FilePull], None]
) -> AsyncGenerator[bytes, None]:
    """The file's bytes in order. Raises Problem when the master stops answering, refuses, or sends other bytes."""
    digest = hashlib.sha256()
    held: dict[int, bytes] = {}
    wanted = {0}  # how many there are is known with the first
    total_bytes, given_bytes, index, asked, silent = -1, 0, 0, 1, 0
    ask(FilePull(sha256=sha256, chunk_bytes=CHUNK_BYTES, want=[0]))
    while total_bytes < 0 or given_bytes < total_bytes:
        try:
            arrival = await asyncio.wait_for(arrivals.get(), CHUNK_WAIT_S)
        except TimeoutError:
            silent += 1
            if silent == ATTEMPTS_MAX:
                raise unreachable(f"no chunk of the file in {ATTEMPTS_MAX * CHUNK_WAIT_S:.0f} s; try again") from None
            ask(FilePull(sha256=sha256, chunk_bytes=CHUNK_BYTES, want=sorted(wanted)))
            continue
        if isinstance(arrival, Problem):
            raise arrival
        chunk, payload = arrival
        if chunk.index not in wanted or not payload:
            continue
        silent, total_bytes = 0, chunk.total_bytes
        wanted.remove(chunk.index)
        held[chunk.index] = payload
        while index in held:
            payload = held.pop(index)
            index += 1
            digest.update(payload)
            given_bytes += len(payload)
            yield payload
        ahead = range(asked, min(index + WINDOW_CHUNKS, -(-total_bytes // CHUNK_BYTES)))
        if ahead:
            wanted.update(ahead)
            asked = ahead.stop
            ask(FilePull(sha256=sha256, chunk_bytes=CHUNK_BYTES, want=list(ahead)))
    if digest.hexdigest() != sha256:
        raise unreachable("the file that came is not the one asked for; try again")
