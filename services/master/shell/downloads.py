"""Snapshots on their way out: what a worker asks for is its credit; at most DOWNLOADS_SERVED_MAX are served at a time.

Sends views of one read-only array, so any number of workers shares one copy. Used by the loop only.
"""

from collections import OrderedDict
from collections.abc import Callable

from services.common.protocol.codec import crc32
from services.common.protocol.limits import DOWNLOADS_SERVED_MAX
from services.common.protocol.messages import Chunk, Credit, Error, Pull, TaskRef, ToWorker
from services.master.shell.desk import Snapshot

WAIT_MS = 2_000
WANT_MAX = 64  # of one PULL
IDLE_MS = 5_000  # a download that asks for nothing in this time gives its place away


class Downloads:
    """`send` fills a worker's outbox; `ref_of` finds the task that (worker, run, version) is for."""

    def __init__(
        self,
        term: int,
        chunk_bytes: int,
        send: Callable[[str, ToWorker, memoryview | None], None],
        ref_of: Callable[[str, str, int], TaskRef | None],
    ) -> None:
        self._term, self._chunk_bytes, self._send, self._ref_of = term, chunk_bytes, send, ref_of
        self._snapshot: Snapshot | None = None
        self._served: dict[str, int] = {}  # worker -> when it last asked
        self._waiting: OrderedDict[str, Pull] = OrderedDict()
        self._told: dict[str, int] = {}  # worker -> when it was last told to wait

    def publish(self, snapshot: Snapshot) -> None:
        """This version, and no other, may be pulled from now on."""
        self._snapshot = snapshot

    def pull(self, worker: str, message: Pull, now_ms: int) -> None:
        """Send the wanted chunks, now or when a place is free."""
        if worker not in self._served and len(self._served) >= DOWNLOADS_SERVED_MAX:
            known = self._waiting.get(worker)
            if known is not None and (known.run, known.version) == (message.run, message.version):
                want = list(dict.fromkeys(known.want + message.want))[:WANT_MAX]
                message = message.model_copy(update={"want": want})
            self._waiting[worker] = message
            self._told.setdefault(worker, now_ms - WAIT_MS)
            return
        self._serve(worker, message, now_ms)

    def tick(self, now_ms: int) -> None:
        """Free the places of those that fell silent."""
        for worker in [one for one, asked_ms in self._served.items() if now_ms - asked_ms > IDLE_MS]:
            del self._served[worker]
        self._fill(now_ms)
        for worker, message in self._waiting.items():
            ref = self._ref_of(worker, message.run, message.version)
            if ref is not None and now_ms - self._told[worker] >= WAIT_MS:
                self._told[worker] = now_ms
                self._send(worker, Credit(term=self._term, ref=ref, want=[], wait_ms=WAIT_MS), None)

    def forget(self, worker: str, now_ms: int) -> None:
        """Free the place of a worker that is gone."""
        self._served.pop(worker, None)
        self._waiting.pop(worker, None)
        self._told.pop(worker, None)
        self._fill(now_ms)

    def _fill(self, now_ms: int) -> None:
        while self._waiting and len(self._served) < DOWNLOADS_SERVED_MAX:
            worker, message = self._waiting.popitem(last=False)
            self._told.pop(worker, None)
            self._serve(worker, message, now_ms)

    def _serve(self, worker: str, message: Pull, now_ms: int) -> None:
        snapshot = self._snapshot
        if snapshot is None or (snapshot.run, snapshot.version) != (message.run, message.version):
            text = f"version {message.version} of run {message.run} is not served any more; a newer task follows"
            self._send(worker, Error(code="SNAPSHOT_GONE", text=text), None)
            return
        whole = snapshot.parameters.data.cast("B")
        count = -(-len(whole) // self._chunk_bytes)
        self._served[worker] = now_ms
        for index in message.want:
            if index >= count:
                text = f"field want has chunk {index}, allowed are 0 to {count - 1}"
                self._send(worker, Error(code="BAD_FIELD", text=text), None)
                continue
            part = whole[index * self._chunk_bytes : (index + 1) * self._chunk_bytes]
            chunk = Chunk(
                term=self._term,
                run=snapshot.run,
                version=snapshot.version,
                index=index,
                count=count,
                total_bytes=len(whole),
                digest=snapshot.digest,
                crc32=crc32(part),
            )
            self._send(worker, chunk, part)
            if index == count - 1:
                self._served.pop(worker, None)
        self._fill(now_ms)
