"""Deltas in and snapshots out: few places, credits, resumed by what is missing, nobody starves."""

import zlib
from typing import Any

import numpy as np

from services.common.protocol.limits import DOWNLOADS_SERVED_MAX, UPLOAD_DEAD_MS, UPLOADS_STAGED_MAX
from services.common.protocol.messages import DeltaBegin, DeltaChunk, DeltaCommit, Pull, TaskRef, Update
from services.master.core.events import UploadStalled
from services.master.shell.desk import EncodedUpdate, Snapshot
from services.master.shell.downloads import IDLE_MS, WAIT_MS, Downloads
from services.master.shell.uploads import Uploads

CHUNK = 4096
VALUES = np.arange(5 * CHUNK // 4 + 3, dtype=np.float32)  # five chunks and a rest
RAW = VALUES.tobytes()


class Desk:
    """Records what uploads and downloads send and complete."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []
        self.complete: list[tuple[str, TaskRef, bytes]] = []
        self.uploads = Uploads(1, self._send, self._complete)
        self.downloads = Downloads(1, CHUNK, self._send_payload, lambda worker, run: ref(int(worker[1:])))

    def _send(self, worker: str, message: Any) -> None:
        self.sent.append((worker, message))

    def _send_payload(self, worker: str, message: Any, payload: memoryview | None) -> None:
        self.sent.append((worker, message))

    def _complete(self, worker: str, begin: DeltaBegin, delta: Any) -> None:
        self.complete.append((worker, begin.ref, delta.tobytes()))

    def take(self) -> list[tuple[str, Any]]:
        taken, self.sent = self.sent, []
        return taken

    def wants(self) -> list[list[int]]:
        return [message.want for _, message in self.take()]


def ref(number: int, round_number: int = 1) -> TaskRef:
    return TaskRef(
        run="r-1", round=round_number, base_version=0, shard=number, lease=f"r-1.{round_number}.0.{number}.1"
    )


def begin(number: int) -> DeltaBegin:
    return DeltaBegin(
        term=1,
        ref=ref(number),
        encoding="fp32",
        bytes=len(RAW),
        chunks=6,
        chunk_bytes=CHUNK,
        digest="0" * 32,
        samples=1,
        steps=1,
        correct=0,
        loss=None,
        compute_ms=1,
    )


def chunk(desk: Desk, number: int, index: int) -> None:
    part = RAW[index * CHUNK : (index + 1) * CHUNK]
    desk.uploads.chunk(f"w{number}", DeltaChunk(term=1, ref=ref(number), index=index, crc32=zlib.crc32(part)), part, 0)


def commit(desk: Desk, number: int) -> None:
    desk.uploads.commit(f"w{number}", DeltaCommit(term=1, ref=ref(number), digest="0" * 32), 0)


def test_credits_one_more_for_each_chunk_and_the_whole_arrives() -> None:
    desk = Desk()
    desk.uploads.begin("w0", begin(0), 0)
    assert desk.wants() == [[0, 1, 2, 3]]
    for index in (1, 0, 3, 2, 4, 5):
        chunk(desk, 0, index)
    assert desk.wants() == [[4], [5]]
    commit(desk, 0)
    assert desk.complete == [("w0", ref(0), RAW)]


def test_after_a_reconnect_only_what_is_missing_is_asked() -> None:
    desk = Desk()
    desk.uploads.begin("w0", begin(0), 0)
    for index in (0, 2):
        chunk(desk, 0, index)
    desk.take()
    desk.uploads.begin("w0", begin(0), 0)
    assert desk.wants() == [[1, 3, 4, 5]]


def test_a_fifth_upload_waits_and_gets_the_first_free_place() -> None:
    desk = Desk()
    for number in range(UPLOADS_STAGED_MAX + 1):
        desk.uploads.begin(f"w{number}", begin(number), 0)
    *_, (worker, last) = desk.take()
    assert (worker, last.want) == (f"w{UPLOADS_STAGED_MAX}", [])
    assert last.wait_ms > 0
    for index in range(6):
        chunk(desk, 0, index)
    desk.take()
    commit(desk, 0)
    assert desk.take() == [], "its place is free when it was checked: what waits for that is in memory, too"
    desk.uploads.begin("w0", begin(0), 0)
    desk.uploads.checked(ref(0).lease, "0" * 32, 0)
    told = [(worker, message.want) for worker, message in desk.take()]
    assert told == [("w0", []), (f"w{UPLOADS_STAGED_MAX}", [0, 1, 2, 3])], "and the same delta again is not asked for"


def test_a_stalled_upload_gives_its_place_away_and_keeps_what_it_sent() -> None:
    desk = Desk()
    for number in range(UPLOADS_STAGED_MAX + 1):
        desk.uploads.begin(f"w{number}", begin(number), 0)
    chunk(desk, 0, 0)
    desk.take()
    desk.uploads.tick(5_000)
    told = desk.take()
    assert told[0][0] == "w0"
    assert told[0][1].want == []
    assert (f"w{UPLOADS_STAGED_MAX}", [0, 1, 2, 3]) in [(worker, message.want) for worker, message in told]
    desk.uploads.drop_round("r-1", 2, 5_000)
    assert desk.take() == [], "another round's end changes nothing"


def test_those_that_wait_cost_no_memory_and_are_told_so_again_and_again() -> None:
    desk = Desk()
    for number in range(40):
        desk.uploads.begin(f"w{number}", begin(number), 0)
    made = [one.array is not None for one in [*desk.uploads._active.values(), *desk.uploads._waiting.values()]]
    assert made == [True] * UPLOADS_STAGED_MAX + [False] * (40 - UPLOADS_STAGED_MAX)
    desk.take()
    desk.uploads.tick(2_000)
    told = desk.take()
    assert [worker for worker, _ in told] == [f"w{number}" for number in range(UPLOADS_STAGED_MAX, 40)]
    assert all(message.wait_ms and not message.want for _, message in told)


def test_an_upload_of_which_nothing_comes_is_given_up_however_often_it_begins() -> None:
    desk = Desk()
    desk.uploads.begin("w0", begin(0), 0)
    for now_ms in range(5_000, UPLOAD_DEAD_MS, 5_000):
        desk.uploads.begin("w0", begin(0), now_ms)
        assert desk.uploads.tick(now_ms) == []
    assert desk.uploads.tick(UPLOAD_DEAD_MS) == [UploadStalled("w0", ref(0))]
    assert desk.uploads.tick(UPLOAD_DEAD_MS + 1) == []


def test_many_silent_uploads_that_share_places_are_given_up_too() -> None:
    desk = Desk()
    for number in range(2 * UPLOADS_STAGED_MAX):
        desk.uploads.begin(f"w{number}", begin(number), 0)
    given_up = [one.worker for now_ms in range(0, 4 * UPLOAD_DEAD_MS, 200) for one in desk.uploads.tick(now_ms)]
    assert sorted(given_up) == [f"w{number}" for number in range(2 * UPLOADS_STAGED_MAX)]


def test_the_same_chunk_again_and_again_is_no_progress() -> None:
    desk = Desk()
    desk.uploads.begin("w0", begin(0), 0)
    part = RAW[:CHUNK]
    message = DeltaChunk(term=1, ref=ref(0), index=0, crc32=zlib.crc32(part))
    given_up = []
    for now_ms in range(0, 2 * UPLOAD_DEAD_MS, 1000):
        desk.uploads.chunk("w0", message, part, now_ms)
        given_up += desk.uploads.tick(now_ms)
    assert len(given_up) == 1


def test_a_lost_worker_gives_its_places_back() -> None:
    desk = Desk()
    for number in range(UPLOADS_STAGED_MAX + 1):
        desk.uploads.begin(f"w{number}", begin(number), 0)
    desk.take()
    desk.uploads.forget("w0", 0)
    assert [(worker, message.want) for worker, message in desk.take()] == [(f"w{UPLOADS_STAGED_MAX}", [0, 1, 2, 3])]


def test_a_stranger_cannot_write_into_an_upload() -> None:
    desk = Desk()
    desk.uploads.begin("w0", begin(0), 0)
    part = b"\xff" * CHUNK
    desk.uploads.chunk("w9", DeltaChunk(term=1, ref=ref(0), index=0, crc32=zlib.crc32(part)), part, 0)
    for index in range(6):
        chunk(desk, 0, index)
    commit(desk, 0)
    assert desk.complete[0][2] == RAW


def test_a_unit_that_another_worker_has_now_starts_anew_with_its_delta() -> None:
    desk = Desk()
    desk.uploads.begin("w1", begin(1), 0)
    chunk(desk, 1, 0)
    desk.take()
    desk.uploads.begin("w2", begin(1), 10)
    assert [(worker, message.want) for worker, message in desk.take()] == [("w2", [0, 1, 2, 3])]
    for index in range(6):
        part = RAW[index * CHUNK : (index + 1) * CHUNK]
        message = DeltaChunk(term=1, ref=ref(1), index=index, crc32=zlib.crc32(part))
        desk.uploads.chunk("w2", message, part, 20)
    desk.uploads.commit("w2", DeltaCommit(term=1, ref=ref(1), digest="0" * 32), 30)
    assert [worker for worker, _, _ in desk.complete] == ["w2"]


def test_the_first_chunks_of_an_eager_delta_count_as_credited() -> None:
    desk = Desk()
    desk.uploads.begin("w1", begin(1).model_copy(update={"sent": 4}), 0)
    assert desk.take() == [], "they are on their way, and make up the window"
    for index in range(4):
        chunk(desk, 1, index)
    assert desk.wants() == [[4], [5]]
    for index in (4, 5):
        chunk(desk, 1, index)
    commit(desk, 1)
    assert [(worker, raw) for worker, _, raw in desk.complete] == [("w1", RAW)]


def test_eager_chunks_without_a_place_are_dropped_and_asked_for_later() -> None:
    desk = Desk()
    for number in range(UPLOADS_STAGED_MAX):
        desk.uploads.begin(f"w{number}", begin(number), 0)
    desk.take()
    desk.uploads.begin("w9", begin(9).model_copy(update={"sent": 4}), 0)
    assert desk.wants() == [[]]
    chunk(desk, 9, 0)
    commit(desk, 9)
    assert (desk.take(), desk.complete) == ([], [])
    desk.uploads.forget("w0", 1)
    assert desk.wants() == [[0, 1, 2, 3]]


def test_a_window_of_an_update_is_pushed_and_the_rest_is_asked_for() -> None:
    desk = Desk()
    desk.downloads.publish(Snapshot("r-1", 3, VALUES, "0" * 32))
    update = np.arange(5 * CHUNK + 1, dtype=np.uint64).astype(np.uint8)
    desk.downloads.publish_update(EncodedUpdate("r-1", 4, update, "1" * 32))
    desk.downloads.push("w1", Update(term=1, run="r-1", version=4, bytes=update.nbytes, digest="1" * 32), 0)
    assert [(one.what, one.version, one.index) for _, one in desk.take()] == [("update", 4, at) for at in range(4)]


def test_downloads_have_places_too_and_idle_ones_are_given_away() -> None:
    desk = Desk()
    values = VALUES.copy()
    values.setflags(write=False)
    desk.downloads.publish(Snapshot("r-1", 3, values, "0" * 32))

    def pull(worker: str, *want: int, now_ms: int = 0) -> None:
        desk.downloads.pull(worker, Pull(term=1, what="snapshot", run="r-1", version=3, want=list(want)), now_ms)

    for number in range(DOWNLOADS_SERVED_MAX + 1):
        pull(f"w{number}", 0)
    served = [worker for worker, _ in desk.take()]
    assert served == [f"w{number}" for number in range(DOWNLOADS_SERVED_MAX)]
    pull("w0", 5)
    assert [(worker, message.index) for worker, message in desk.take()] == [
        ("w0", 5),
        (f"w{DOWNLOADS_SERVED_MAX}", 0),
    ]
    pull("w0", 0)
    assert desk.take() == []
    desk.downloads.tick(IDLE_MS + 1)
    assert [worker for worker, _ in desk.take()] == ["w0"]


def test_a_waiting_download_forgets_no_chunk_that_was_asked_for_and_is_told_to_wait() -> None:
    desk = Desk()
    values = VALUES.copy()
    values.setflags(write=False)
    desk.downloads.publish(Snapshot("r-1", 3, values, "0" * 32))
    for number in range(DOWNLOADS_SERVED_MAX):
        desk.downloads.pull(f"w{number}", Pull(term=1, what="snapshot", run="r-1", version=3, want=[0]), 0)
    for index in (0, 1, 2, 1):
        desk.downloads.pull("w99", Pull(term=1, what="snapshot", run="r-1", version=3, want=[index]), 0)
    desk.take()
    desk.downloads.tick(WAIT_MS)
    assert [(worker, message.t, message.ref, message.want) for worker, message in desk.take()] == [
        ("w99", "CREDIT", ref(99), [])
    ]
    desk.downloads.forget("w0", WAIT_MS)
    assert [(worker, message.index) for worker, message in desk.take()] == [("w99", 0), ("w99", 1), ("w99", 2)]
