"""The worker port under bad input: a code and a sentence for each, and a good request after it works.

Case numbers (J, F) are those of shared/research/reliability.md section 4.
"""

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq

from services.common.errors import CheckpointError
from services.common.learning import digest
from services.common.protocol.control import Command, CreateRun
from services.common.protocol.messages import (
    DeltaBegin,
    DeltaChunk,
    DeltaCommit,
    Enrol,
    Heartbeat,
    Pull,
    RunSpec,
    TaskAck,
)
from services.master.shell.store import Store
from services.master.tests.conftest import Peer, Running, console, enrolled, guest, hello, start_master

BAD_FRAMES = [
    ("J1 empty header", [b""], "HEADER_NOT_JSON"),
    ("J2 three frames", [b"{}", b"", b""], "FRAME_COUNT"),
    ("J3 not UTF-8", [b"\xff\xfe{}"], "HEADER_NOT_JSON"),
    ("J4 not JSON", [b"hello"], "HEADER_NOT_JSON"),
    ("J5 an array", [b"[]"], "BAD_FIELD"),
    ("J6 nested", [b"[" * 10_000 + b"]" * 10_000], "HEADER_NOT_JSON"),
    ("J8 NaN", [json.dumps({**json.loads(hello().model_dump_json()), "score": float("nan")}).encode()], "BAD_FIELD"),
    ("J23 cores -1", [json.dumps({**json.loads(hello().model_dump_json()), "cores": -1}).encode()], "BAD_FIELD"),
    ("J23 cores text", [json.dumps({**json.loads(hello().model_dump_json()), "cores": "8"}).encode()], "BAD_FIELD"),
    ("J23 cores true", [json.dumps({**json.loads(hello().model_dump_json()), "cores": True}).encode()], "BAD_FIELD"),
    ("F9 unknown type", [b'{"t": "EVAL", "code": "1+1"}'], "UNKNOWN_TYPE"),
    ("F5 header over the cap", [b" " * 70_000], "FRAME_TOO_LARGE"),
    ("a field name of 60,000 characters", [json.dumps({"t": "PROGRESS", "x" * 60_000: 1}).encode()], "BAD_FIELD"),
    ("a type of 60,000 characters", [json.dumps({"t": "x" * 60_000}).encode()], "UNKNOWN_TYPE"),
    ("F3 payload where none belongs", [hello().model_dump_json().encode(), b"x"], "FRAME_PAYLOAD"),
]


@pytest.fixture
def joined(master: Running) -> Iterator[Peer]:
    peer = enrolled(master)
    peer.send(hello())
    peer.term = peer.receive("WELCOME").term
    yield peer
    peer.close()


@pytest.mark.parametrize(("frames", "code"), [case[1:] for case in BAD_FRAMES], ids=[case[0] for case in BAD_FRAMES])
def test_bad_frames(joined: Peer, frames: list[bytes], code: str) -> None:
    joined.socket.send_multipart(frames)
    refused = joined.receive("ERROR")
    assert refused.code == code
    assert refused.text
    joined.send(Heartbeat(term=joined.term))
    joined.send(hello())
    assert joined.receive("WELCOME").worker.startswith("w-")


def test_under_a_join_key_only_enrol_is_taken(master: Running) -> None:
    peer = guest(master)
    peer.send(hello())
    assert peer.receive("REJECT").code == "ENROL_ONLY"
    peer.send(Enrol(name="ada", public_key="0" * 40, proto_min=1, proto_max=1, app_version="0.1.0"))
    assert peer.receive("REJECT").code == "AUTH_KEY"
    peer.close()


def test_two_versions_that_cannot_talk_say_both(master: Running) -> None:
    peer = enrolled(master)
    peer.send(hello(proto_min=7, proto_max=9, app_version="9.0"))
    refused = peer.receive("REJECT")
    assert refused.code == "PROTO_VERSION"
    assert "7 to 9" in refused.text
    assert refused.retry_after_ms is None
    peer.close()


def test_workers_of_one_name_get_numbers(master: Running) -> None:
    names = []
    for wanted in ("pc", "pc", "pc-2", "pc"):
        newcomer = guest(master)
        public, _ = zmq.curve_keypair()
        newcomer.send(Enrol(name=wanted, public_key=public.decode(), proto_min=1, proto_max=1, app_version="0.1.0"))
        names.append(newcomer.receive("ENROLLED").name)
        newcomer.close()
    assert names == ["pc", "pc-2", "pc-2-2", "pc-3"]


def test_two_processes_with_one_key_do_not_put_each_other_out_for_ever(master: Running, joined: Peer) -> None:
    for number in range(1, 4):
        joined.send(hello(boot_id=f"{number:032x}"))
        joined.receive("WELCOME")
    joined.send(hello(boot_id=f"{4:032x}"))
    refused = joined.receive("REJECT")
    assert (refused.code, refused.retry_after_ms) == ("WORKER_TWICE", 60_000)
    assert "copied to a second PC" in refused.text
    joined.send(hello(boot_id=f"{3:032x}"))
    assert joined.receive("WELCOME"), "the one that has the session keeps it"


def test_hostile_names_are_cleaned(master: Running) -> None:
    peer = enrolled(master, name="ada\x1b[31m\u202e<b>\n")
    peer.send(hello())
    assert peer.receive("WELCOME").name == "ada[31m<b>"
    peer.close()


def test_an_unknown_session_and_an_old_term_are_asked_to_rejoin(joined: Peer, master: Running) -> None:
    stranger = enrolled(master, name="bob")
    stranger.send(Heartbeat(term=joined.term))
    assert stranger.receive("REJOIN").term == joined.term
    joined.send(Heartbeat(term=joined.term + 5))
    assert joined.receive("REJOIN").term == joined.term
    stranger.close()


def begin_run(master: Running, joined: Peer) -> Any:
    """Start a run of one round; the TASK that the worker gets."""
    operator = console(master)
    spec = RunSpec(
        dataset="gauss3",
        model={"family": "softmax"},
        rounds=1,
        k_steps=2,
        batch=8,
        encoding="fp32",
        aggregator="mean",
    )
    operator.send(Command(cmd_id="command-1", command=CreateRun(spec=spec)))
    task = joined.receive("TASK")
    operator.close()
    return task


def a_delta(joined: Peer, task: Any, delta: np.ndarray[Any, Any], **changed: Any) -> None:
    raw = delta.tobytes()
    begin: dict[str, Any] = {
        "term": joined.term,
        "ref": task.ref,
        "encoding": "fp32",
        "bytes": len(raw),
        "chunks": 1,
        "chunk_bytes": 65_536,
        "digest": digest(delta),
        "samples": 16,
        "steps": 2,
        "correct": 3,
        "loss": 1.0,
        "compute_ms": 5,
    }
    joined.send(DeltaBegin(**{**begin, **changed}))


def test_one_delta_from_pull_to_round_closed_and_the_bad_ones_before_it(master: Running, joined: Peer) -> None:
    task = begin_run(master, joined)
    joined.send(TaskAck(term=joined.term, ref=task.ref))

    joined.send(Pull(term=joined.term, what="snapshot", run=task.ref.run, version=0, want=[9]))
    assert joined.receive("ERROR").code == "BAD_FIELD"
    joined.send(Pull(term=joined.term, what="snapshot", run=task.ref.run, version=3, want=[0]))
    assert joined.receive("ERROR").code == "SNAPSHOT_GONE"
    joined.send(Pull(term=joined.term, what="snapshot", run=task.ref.run, version=0, want=[0]))
    chunk = joined.receive("CHUNK")
    assert joined.payload is not None
    anchor = np.frombuffer(joined.payload, dtype=np.float32)
    assert (chunk.digest, len(anchor)) == (digest(anchor), task.n_parameters)
    assert chunk.digest == task.anchor_digest

    delta = np.full(task.n_parameters, 0.25, dtype=np.float32)
    a_delta(joined, task, delta)
    assert joined.receive("CREDIT").want == [0]
    crc = zlib.crc32(delta.tobytes())
    joined.send(DeltaChunk(term=joined.term, ref=task.ref, index=0, crc32=crc ^ 1), delta.tobytes())
    assert joined.receive("ERROR").code == "FRAME_CRC"
    half = delta.tobytes()[:8]
    joined.send(DeltaChunk(term=joined.term, ref=task.ref, index=0, crc32=zlib.crc32(half)), half)
    assert joined.receive("ERROR").code == "DELTA_CHUNK"
    joined.send(DeltaCommit(term=joined.term, ref=task.ref, digest=digest(delta)))
    assert joined.receive("CREDIT").want == [0], "a commit before the last chunk is answered with what is missing"
    for _ in range(2):  # a duplicate chunk has no effect
        joined.send(DeltaChunk(term=joined.term, ref=task.ref, index=0, crc32=crc), delta.tobytes())
    joined.send(DeltaCommit(term=joined.term, ref=task.ref, digest=digest(delta)))
    assert joined.receive("ACK").status == "accepted"
    closed = joined.receive("ROUND_CLOSED")
    assert (closed.version, closed.counted) == (1, [task.ref.lease])
    assert closed.digest == digest(anchor - delta)

    a_delta(joined, task, delta)
    assert joined.receive("ACK").status == "closed", "the same delta again has no effect"


@pytest.mark.parametrize(
    ("value", "changed", "code"),
    [
        (np.nan, {}, "DELTA_NOT_FINITE"),
        (-np.inf, {}, "DELTA_NOT_FINITE"),
        (1e30, {}, "DELTA_NORM"),
        (0.5, {"bytes": 4}, "DELTA_SHAPE"),
        (0.5, {"digest": "0" * 32}, "DELTA_DIGEST"),
    ],
)
def test_a_bad_delta_is_refused_and_the_work_comes_again(
    master: Running, joined: Peer, value: float, changed: dict[str, Any], code: str
) -> None:
    task = begin_run(master, joined)
    delta = np.full(task.n_parameters, value, dtype=np.float32)
    a_delta(joined, task, delta, **changed)
    if "bytes" not in changed:
        joined.receive("CREDIT")
        crc = zlib.crc32(delta.tobytes())
        joined.send(DeltaChunk(term=joined.term, ref=task.ref, index=0, crc32=crc), delta.tobytes())
        joined.send(DeltaCommit(term=joined.term, ref=task.ref, digest=digest(delta)))
    refused = joined.receive("ACK")
    assert (refused.status, refused.code) == ("refused", code)
    again = joined.receive("TASK")
    assert (again.ref.round, again.ranges) == (task.ref.round, task.ranges)
    assert again.ref.lease != task.ref.lease


def test_an_endless_reason_is_cut_and_the_loop_goes_on(master: Running, joined: Peer) -> None:
    task = begin_run(master, joined)
    body = {"t": "TASK_REFUSE", "term": joined.term, "ref": task.ref.model_dump(), "reason": "no " * 20_000}
    joined.socket.send_multipart([json.dumps(body).encode()])
    again = joined.receive("TASK")
    assert again.ref.lease != task.ref.lease


def test_a_store_that_cannot_be_written_refuses_a_join_for_now_and_nothing_else(
    master: Running, joined: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise CheckpointError("the store cannot be written: database or disk is full; free the disk")

    monkeypatch.setattr(Store, "enrol", full)
    peer = guest(master)
    public, _ = zmq.curve_keypair()
    peer.send(Enrol(name="bob", public_key=public.decode(), proto_min=1, proto_max=1, app_version="0.1.0"))
    refused = peer.receive("REJECT")
    assert "free the disk" in refused.text
    assert refused.retry_after_ms == 60_000, "it may come back by itself"
    peer.close()
    joined.send(hello())
    assert joined.receive("WELCOME")


def test_a_bug_in_the_aggregation_thread_ends_the_master_loudly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Store, "begin_run", broken)
    running = start_master(tmp_path)
    operator = console(running)
    operator.send(Command(cmd_id="command-1", command=CreateRun(spec=RunSpec(dataset="gauss3"))))
    running.thread.join(10)
    operator.close()
    with pytest.raises(RuntimeError, match="a bug"):
        running.stop()
