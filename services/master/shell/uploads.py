"""Deltas on their way in: few places, credits, chunks at their offset, resumed by what is missing. For the loop only.

A delta is staged whole before anything looks at it: nothing half received ever touches an accumulator.
"""

import tempfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from services.common.errors import ProtocolError
from services.common.learning.encodings import Bytes
from services.common.protocol.codec import Buffer
from services.common.protocol.limits import (
    MIB,
    UPLOAD_DEAD_MS,
    UPLOAD_STALL_BYTES,
    UPLOAD_STALL_MS,
    UPLOADS_STAGED_MAX,
    WINDOW_CHUNKS,
)
from services.common.protocol.messages import Credit, DeltaBegin, DeltaChunk, DeltaCommit, ToWorker
from services.master.core.events import UploadStalled

WAIT_MS = 2_000
IN_MEMORY_MAX = 64 * MIB  # a larger delta waits in a file


def room_for(size: int) -> Bytes:
    """Where the bytes of one delta are put together."""
    if size <= IN_MEMORY_MAX:
        return np.empty(size, dtype=np.uint8)
    with tempfile.TemporaryFile() as file:  # the array keeps it until it is itself forgotten
        return np.memmap(file, dtype=np.uint8, mode="w+", shape=(size,))


@dataclass
class _Upload:
    worker: str
    begin: DeltaBegin
    missing: set[int]
    array: Bytes | None = None  # made when a place is free, not before
    next_chunk: int = 0
    unasked: int = 0  # chunks that follow by themselves, if there is a place at once
    since_ms: int = 0
    bytes_since: int = 0
    still_ms: int = 0  # with a place and without a new byte, in earlier places
    since_moved_ms: int = 0  # the last new byte, or when it got its place
    told_ms: int = 0  # when it was last told to wait

    def ask(self, count: int) -> list[int]:
        """The next chunks to credit, in order; each is asked once until the worker begins again."""
        want: list[int] = []
        while len(want) < count and self.next_chunk < self.begin.chunks:
            if self.next_chunk in self.missing:
                want.append(self.next_chunk)
            self.next_chunk += 1
        return want


@dataclass
class Uploads:
    """`complete` gets each complete delta; `send` puts a message into a worker's outbox."""

    term: int
    send: Callable[[str, ToWorker], None]
    complete: Callable[[str, DeltaBegin, Bytes], None]
    _active: dict[str, _Upload] = field(default_factory=dict)  # by lease
    _waiting: OrderedDict[str, _Upload] = field(default_factory=OrderedDict)  # by lease
    _in_check: set[str] = field(default_factory=set)  # leases; for membership and their number only

    def begin(self, worker: str, begin: DeltaBegin, now_ms: int) -> None:
        """An admitted delta: give it a place, or say wait. The same delta again goes on where it stood."""
        lease = begin.ref.lease
        known = self._active.get(lease) or self._waiting.get(lease)
        if known is not None and known.worker != worker:  # a unit that another has now: what came so far is not its own
            self._active.pop(lease, None)
            self._waiting.pop(lease, None)
            known = None
        if known is None:
            self._waiting[lease] = _Upload(worker, begin, set(range(begin.chunks)), unasked=begin.sent)
        elif known.begin.digest != begin.digest or known.begin.chunk_bytes != begin.chunk_bytes:
            known.begin, known.missing, known.array = begin, set(range(begin.chunks)), None
        if lease in self._active:
            self._credit(self._active[lease], now_ms)
            return
        self._next(now_ms)
        if lease in self._waiting:
            self._waiting[lease].unasked = 0  # they come, and are dropped
            self._tell_to_wait(self._waiting[lease], now_ms)

    def chunk(self, worker: str, message: DeltaChunk, payload: Buffer, now_ms: int) -> None:
        """One chunk; a duplicate has no effect. Raises ProtocolError when it does not fit what was announced."""
        upload = self._active.get(message.ref.lease)
        if upload is None or upload.array is None or upload.worker != worker:
            return
        size = upload.begin.chunk_bytes
        offset = message.index * size
        expected = min(size, upload.begin.bytes - offset)
        if message.index >= upload.begin.chunks or len(payload) != expected:
            raise ProtocolError(
                f"chunk {message.index} of {len(payload)} bytes, announced were {upload.begin.chunks} chunks of {size}",
                code="DELTA_CHUNK",
            )
        upload.array.data[offset : offset + expected] = payload
        if message.index in upload.missing:
            upload.missing.discard(message.index)
            upload.bytes_since += expected
            upload.still_ms, upload.since_moved_ms = 0, now_ms
        if want := upload.ask(1):
            self.send(worker, Credit(term=self.term, ref=message.ref, want=want))

    def commit(self, worker: str, message: DeltaCommit, now_ms: int) -> None:
        """All sent, says the worker: hand it on, or ask for what is missing. Its place is free when it is `checked`."""
        lease = message.ref.lease
        upload = self._active.get(lease)
        if upload is None or upload.array is None or upload.worker != worker:
            return
        if upload.missing:
            upload.next_chunk = 0
            self.send(worker, Credit(term=self.term, ref=message.ref, want=upload.ask(WINDOW_CHUNKS)))
            return
        del self._active[lease]
        self._in_check.add(lease)
        self.complete(worker, upload.begin, upload.array)

    def checked(self, lease: str, digest: str, now_ms: int) -> None:
        """The verdict on a delta is known: its place is free, and the same one need not come again."""
        self._in_check.discard(lease)
        for place in (self._active, self._waiting):
            if lease in place and place[lease].begin.digest == digest:
                del place[lease]
        self._next(now_ms)

    def tick(self, now_ms: int) -> list[UploadStalled]:
        """An upload that hardly moves gives its place away while others wait; what it sent is kept.

        Those that wait are told so again and again. Returns uploads of which nothing came for UPLOAD_DEAD_MS.
        """
        dead = []
        for lease, upload in list(self._active.items()):
            if upload.still_ms + now_ms - upload.since_moved_ms >= UPLOAD_DEAD_MS:
                del self._active[lease]
                dead.append(UploadStalled(upload.worker, upload.begin.ref))
            elif now_ms - upload.since_ms >= UPLOAD_STALL_MS:
                if upload.bytes_since < UPLOAD_STALL_BYTES and self._waiting:
                    del self._active[lease]
                    upload.still_ms += now_ms - upload.since_moved_ms
                    self._waiting[lease] = upload
                    self._tell_to_wait(upload, now_ms)
                upload.since_ms, upload.bytes_since = now_ms, 0
        self._next(now_ms)
        for upload in self._waiting.values():
            if now_ms - upload.told_ms >= WAIT_MS:
                self._tell_to_wait(upload, now_ms)
        return dead

    def forget(self, worker: str, now_ms: int) -> None:
        """Forget everything of a worker that is gone."""
        self._drop(lambda one: one.worker == worker, now_ms)

    def drop_round(self, run: str, round_number: int, now_ms: int) -> None:
        """Forget everything staged for a round."""
        self._drop(lambda one: (one.begin.ref.run, one.begin.ref.round) == (run, round_number), now_ms)

    def _drop(self, gone: Callable[[_Upload], bool], now_ms: int) -> None:
        self._active = {lease: one for lease, one in self._active.items() if not gone(one)}
        self._waiting = OrderedDict((lease, one) for lease, one in self._waiting.items() if not gone(one))
        self._next(now_ms)

    def _credit(self, upload: _Upload, now_ms: int) -> None:
        """Ask for what is missing, from the first chunk."""
        if upload.array is None:
            upload.array = room_for(upload.begin.bytes)
        upload.next_chunk, upload.since_ms, upload.bytes_since = min(upload.unasked, upload.begin.chunks), now_ms, 0
        want = upload.ask(WINDOW_CHUNKS - upload.next_chunk)
        if want or not upload.unasked:
            self.send(upload.worker, Credit(term=self.term, ref=upload.begin.ref, want=want))
        upload.unasked = 0

    def _tell_to_wait(self, upload: _Upload, now_ms: int) -> None:
        upload.told_ms = now_ms
        self.send(upload.worker, Credit(term=self.term, ref=upload.begin.ref, want=[], wait_ms=WAIT_MS))

    def _next(self, now_ms: int) -> None:
        """Free places go to those that wait longest; a lease in check waits for its verdict."""
        passed_over = 0
        while len(self._waiting) > passed_over and len(self._active) + len(self._in_check) < UPLOADS_STAGED_MAX:
            lease, upload = next(islice(self._waiting.items(), passed_over, None))
            if lease in self._in_check:
                passed_over += 1
                continue
            del self._waiting[lease]
            self._active[lease] = upload
            upload.since_moved_ms = now_ms
            self._credit(upload, now_ms)
