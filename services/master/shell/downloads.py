"""Versions and updates on their way out: what a worker asks for is its credit; DOWNLOADS_SERVED_MAX at a time.

The update log holds the encoded updates of the last versions, in bytes at most one whole version: whoever missed more
pulls a whole version. Sends views of read-only arrays, so any number of workers shares one copy. For the loop only.
"""

from collections import OrderedDict
from collections.abc import Callable

from services.common.protocol.codec import crc32
from services.common.protocol.limits import DOWNLOADS_SERVED_MAX, WINDOW_CHUNKS
from services.common.protocol.messages import Chunk, Credit, Error, Pull, TaskRef, ToWorker, Update
from services.master.shell.desk import EncodedUpdate, Snapshot

WAIT_MS = 2_000
CRCS_KEPT = 4096
WANT_MAX = 64  # of one PULL
IDLE_MS = 5_000  # a download that asks for nothing in this time gives its place away


class Downloads:
    """`send` fills a worker's outbox; `ref_of` finds the task that a worker has in a run."""

    def __init__(
        self,
        term: int,
        chunk_bytes: int,
        send: Callable[[str, ToWorker, memoryview | None], None],
        ref_of: Callable[[str, str], TaskRef | None],
    ) -> None:
        self._term, self._chunk_bytes, self._send, self._ref_of = term, chunk_bytes, send, ref_of
        self._snapshot: Snapshot | None = None
        self._log: dict[int, EncodedUpdate] = {}  # by the version it leads to, in order
        self._crcs: dict[tuple[str, int], int] = {}  # by digest and chunk: all workers pull the same ones
        self._served: dict[str, int] = {}  # worker -> when it last asked
        self._waiting: OrderedDict[str, Pull] = OrderedDict()
        self._told: dict[str, int] = {}  # worker -> when it was last told to wait

    def publish(self, snapshot: Snapshot) -> None:
        """This version, and no other, may be pulled whole from now on. Updates to later ones are void."""
        if self._snapshot is None or self._snapshot.run != snapshot.run or snapshot.alone:
            self._log.clear()
        self._snapshot = snapshot
        self._log = {version: one for version, one in self._log.items() if version <= snapshot.version}

    def publish_update(self, update: EncodedUpdate) -> None:
        """This update may be pulled from now on, and the ones before it as far as the log goes."""
        if self._snapshot is None or self._snapshot.run != update.run:
            return
        self._log[update.version] = update
        room = self._snapshot.parameters.nbytes
        while len(self._log) > 1 and sum(one.encoded.nbytes for one in self._log.values()) > room:
            del self._log[min(self._log)]

    def forget_updates(self) -> None:
        """The log is empty: whoever is behind pulls a whole version."""
        self._log.clear()

    def pull(self, worker: str, message: Pull, now_ms: int) -> None:
        """Send the wanted chunks, now or when a place is free."""
        if worker not in self._served and len(self._served) >= DOWNLOADS_SERVED_MAX:
            known = self._waiting.get(worker)
            if known is not None and _thing(known) == _thing(message):
                want = list(dict.fromkeys(known.want + message.want))[:WANT_MAX]
                message = message.model_copy(update={"want": want})
            self._waiting[worker] = message
            self._told.setdefault(worker, now_ms - WAIT_MS)
            return
        self._serve(worker, message, now_ms)

    def push(self, worker: str, update: Update, now_ms: int) -> None:
        """The first window of an update, as if the worker had asked for it."""
        count = -(-update.bytes // self._chunk_bytes)
        want = list(range(min(WINDOW_CHUNKS, count)))
        pull = Pull(term=self._term, what="update", run=update.run, version=update.version, want=want)
        self.pull(worker, pull, now_ms)

    def tick(self, now_ms: int) -> None:
        """Free the places of those that fell silent."""
        for worker in [one for one, asked_ms in self._served.items() if now_ms - asked_ms > IDLE_MS]:
            del self._served[worker]
        self._fill(now_ms)
        for worker, message in self._waiting.items():
            ref = self._ref_of(worker, message.run)
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

    def _crc(self, digest: str, index: int, part: memoryview) -> int:
        if (digest, index) not in self._crcs:
            if len(self._crcs) >= CRCS_KEPT:
                self._crcs.clear()
            self._crcs[digest, index] = crc32(part)
        return self._crcs[digest, index]

    def _find(self, message: Pull) -> tuple[memoryview, str] | None:
        """The bytes asked for, and their digest."""
        snapshot = self._snapshot
        if snapshot is None or snapshot.run != message.run:
            return None
        if message.what == "update":
            update = self._log.get(message.version)
            return (update.encoded.data, update.digest) if update is not None else None
        if snapshot.version != message.version:
            return None
        return snapshot.parameters.data.cast("B"), snapshot.digest

    def _serve(self, worker: str, message: Pull, now_ms: int) -> None:
        found = self._find(message)
        if found is None:
            what = f"{message.what} {message.version} of run {message.run}"
            then = "pull the whole version" if message.what == "update" else "a newer task follows"
            text = f"{what} is not served any more; {then}"
            self._send(worker, Error(code=f"{message.what.upper()}_GONE", text=text), None)
            return
        whole, digest = found
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
                what=message.what,
                run=message.run,
                version=message.version,
                index=index,
                count=count,
                total_bytes=len(whole),
                digest=digest,
                crc32=self._crc(digest, index, part),
            )
            self._send(worker, chunk, part)
            if index == count - 1:
                self._served.pop(worker, None)
        self._fill(now_ms)


def _thing(message: Pull) -> tuple[str, str, int]:
    return message.what, message.run, message.version
