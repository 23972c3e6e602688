"""Updates on their way down: the log, what it holds and when it is void; encoded steps, resumed to the last bit."""

import gc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.common.learning import apply_update, bytes_digest, digest
from services.common.learning.encodings import decode, encode
from services.common.protocol.encodings import ENCODINGS, Encoding, down_encoding
from services.common.protocol.messages import Pull, RunSpec, TaskRef
from services.master.core import commands as c
from services.master.core import events as e
from services.master.shell import uploads
from services.master.shell.checkpoints import Vault
from services.master.shell.desk import Desk, EncodedUpdate, Snapshot
from services.master.shell.downloads import Downloads
from services.master.shell.store import Store
from services.master.tests.conftest import offer

RUN, N, CHUNK = "r-1", 4096, 4096


class Served:
    """A download desk, and what it sends."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, bytes]] = []
        self.desk = Downloads(1, CHUNK, self._send, lambda *_: None)
        self.desk.publish(Snapshot(RUN, 0, np.zeros(N, np.float32), "0" * 32))

    def _send(self, worker: str, message: Any, payload: memoryview | None) -> None:
        self.sent.append((message, bytes(payload) if payload is not None else b""))

    def update(self, version: int, size: int = N, value: int = 0, run: str = RUN) -> None:
        encoded = np.full(size, value or version, np.uint8)
        self.desk.publish_update(EncodedUpdate(run, version, encoded, f"{version:032}"))

    def pull(self, version: int, *want: int) -> list[Any]:
        self.sent.clear()
        self.desk.pull("w-1", Pull(term=1, what="update", run=RUN, version=version, want=list(want or (0,))), 0)
        return [message for message, _ in self.sent]


def test_an_update_comes_in_chunks_of_its_own_digest() -> None:
    served = Served()
    served.update(1, size=2 * CHUNK + 5)
    chunks = served.pull(1, 0, 2)
    assert [(one.what, one.version, one.index, one.count, one.total_bytes) for one in chunks] == [
        ("update", 1, 0, 3, 2 * CHUNK + 5),
        ("update", 1, 2, 3, 2 * CHUNK + 5),
    ]
    assert {one.digest for one in chunks} == {f"{1:032}"}
    assert [len(payload) for _, payload in served.sent] == [CHUNK, 5]


def test_the_log_holds_the_last_updates_and_at_most_one_whole_version() -> None:
    served = Served()
    for version in range(1, 7):
        served.update(version)  # n bytes each, a version has 4 n
    assert [served.pull(version)[0].t for version in range(1, 7)] == [
        "ERROR",
        "ERROR",
        "CHUNK",
        "CHUNK",
        "CHUNK",
        "CHUNK",
    ]
    gone = served.pull(2)[0]
    assert gone.code == "UPDATE_GONE"
    assert "pull the whole version" in gone.text
    served.update(7, size=5 * N)
    assert [served.pull(version)[0].t for version in (6, 7)] == ["ERROR", "CHUNK"], "the newest is always there"


def test_no_update_leads_to_a_version_that_stands_alone_or_past_it() -> None:
    served = Served()
    for version in (1, 2):
        served.update(version)
    served.desk.publish(Snapshot(RUN, 3, np.zeros(N, np.float32), "0" * 32, alone=True))
    assert [served.pull(version)[0].t for version in (1, 2, 3)] == ["ERROR"] * 3
    served.update(4)
    assert served.pull(4)[0].t == "CHUNK"


def test_after_a_step_back_updates_beyond_it_are_void_and_those_of_another_run_too() -> None:
    served = Served()
    for version in (1, 2, 3):
        served.update(version)
    served.desk.publish(Snapshot(RUN, 2, np.zeros(N, np.float32), "0" * 32))
    assert [served.pull(version)[0].t for version in (1, 2, 3)] == ["CHUNK", "CHUNK", "ERROR"]
    served.update(3, value=77)
    served.pull(3)
    assert set(served.sent[0][1]) == {77}
    served.desk.publish(Snapshot("r-2", 0, np.zeros(N, np.float32), "0" * 32))
    assert served.pull(2)[0].code == "UPDATE_GONE"
    served.update(4)
    assert served.pull(4)[0].code == "UPDATE_GONE", "a late update of the run before"


class Run:
    """A desk with a run, jobs done at once; `events` and `published` are what came of them."""

    def __init__(self, folder: Path, spec: RunSpec) -> None:
        folder.mkdir(exist_ok=True)
        self.spec, self.folder = spec, folder
        self.events: list[Any] = []
        self.published: list[Any] = []
        self.vault = Vault(folder / "runs")
        self.desk = self.new_desk()
        self.desk.prepare(c.PrepareRun(RUN, spec))
        self.n = self.events[-1].n_parameters

    def new_desk(self) -> Desk:
        return Desk(Store(self.folder), self.vault, self.events.append, self.published.append, set)

    def delta(
        self, number: int, shard: int, delta: np.ndarray[Any, Any], weight: float, clip: float | None = 1.0
    ) -> None:
        ref = TaskRef(run=RUN, round=number, base_version=number - 1, shard=shard, lease=f"{RUN}.{number}.0.{shard}.1")
        encoded = encode(self.spec.encoding, delta, None)
        name = bytes_digest(encoded)
        self.desk.check("w-1", offer(ref, self.spec.encoding, encoded, name), encoded)
        assert self.events[-1].code == "", self.events[-1].text
        self.desk.fold(c.Fold(ref, name, self.spec.encoding, weight, clip, 1024.0))

    def close(self, number: int, clips: dict[int, float] | None = None) -> e.AggregationDone:
        self.desk.aggregate(c.Aggregate(RUN, number, self.spec.encoding, 1.0, clips or {}))
        done = self.events[-1]
        assert isinstance(done, e.AggregationDone)
        meta = {"run": RUN, "round": number, "version": number, "digest": done.digest}
        self.desk.write_checkpoint(c.WriteCheckpoint(RUN, number, meta))
        return done

    def round(self, number: int, order: tuple[int, ...] = (0, 1)) -> str:
        chance = np.random.default_rng(number)
        deltas = [chance.normal(0, 0.01, self.n).astype(np.float32) for _ in range(3)]
        for shard in order:
            self.delta(number, shard, deltas[shard], 1 / len(order))
        return self.close(number).digest


def spec(encoding: Encoding = "int8", **values: Any) -> RunSpec:
    return RunSpec(dataset="gauss3", model={"family": "mlp", "hidden": [40]}, encoding=encoding, **values)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_replica_that_applies_the_updates_is_the_master_s_to_the_last_bit(tmp_path: Path, encoding: Encoding) -> None:
    run = Run(tmp_path, spec(encoding))
    replica = run.vault.read(RUN, 0).parameters.copy()
    for number in range(1, 8):
        expected = run.round(number)
        update = next(one for one in reversed(run.published) if isinstance(one, EncodedUpdate))
        assert (update.version, update.digest) == (number, bytes_digest(update.encoded))
        apply_update(replica, decode(down_encoding(encoding), update.encoded, run.n))
        assert digest(replica) == expected == digest(run.vault.read(RUN, number).parameters)


@pytest.mark.parametrize("encoding", ["bf16", "int4", "topk"])
def test_what_an_update_left_over_is_in_the_checkpoint_and_a_restart_changes_no_bit(
    tmp_path: Path, encoding: Encoding
) -> None:
    whole = Run(tmp_path / "whole", spec(encoding, outer={"name": "nesterov", "lr": 0.7, "mu": 0.6}))
    expected = [whole.round(number) for number in range(1, 7)]
    broken = Run(tmp_path / "broken", spec(encoding, outer={"name": "nesterov", "lr": 0.7, "mu": 0.6}))
    found = [broken.round(number) for number in range(1, 4)]
    checkpoint = broken.vault.read(RUN, 3)
    assert checkpoint.residual is not None
    assert checkpoint.residual.any()
    broken.desk = broken.new_desk()
    broken.desk.restore(broken.spec, checkpoint, None)
    found += [broken.round(number) for number in range(4, 7)]
    assert found == expected


def test_nothing_is_left_over_with_fp32(tmp_path: Path) -> None:
    run = Run(tmp_path, spec("fp32"))
    run.round(1)
    assert run.vault.read(RUN, 1).residual is None


@pytest.mark.parametrize("aggregator", ["mean", "trimmed", "median"])
@pytest.mark.parametrize("encoding", ["fp32", "int4", "topk"])
def test_the_order_of_arrival_changes_no_bit(tmp_path: Path, aggregator: str, encoding: Encoding) -> None:
    made = [
        Run(tmp_path / str(at), spec(encoding, aggregator=aggregator, balance="equal")).round(1, order)
        for at, order in enumerate([(0, 1, 2), (2, 0, 1), (1, 2, 0)])
    ]
    assert len(set(made)) == 1


@pytest.mark.parametrize("aggregator", ["trimmed", "median"])
def test_one_delta_of_three_that_is_far_off_does_not_count(tmp_path: Path, aggregator: str) -> None:
    run = Run(tmp_path, spec("fp32", aggregator=aggregator, balance="equal"))
    before = run.vault.read(RUN, 0).parameters
    for shard, value in enumerate([0.5, 1e6, 0.5]):
        run.delta(1, shard, np.full(run.n, value, np.float32), 1 / 3)
    run.close(1)
    assert np.abs(before - np.float32(0.5) - run.vault.read(RUN, 1).parameters).max() < 1e-6


def test_a_round_without_a_limit_keeps_its_deltas_and_clips_them_when_it_closes(tmp_path: Path) -> None:
    run = Run(tmp_path, spec("fp32"))
    before = run.vault.read(RUN, 0).parameters
    for shard, value in [(1, 100.0), (0, 1.0)]:
        run.delta(1, shard, np.full(run.n, value, np.float32), 0.5, clip=None)
    run.close(1, {0: 1.0, 1: 0.01})
    assert np.abs(before - 1 - run.vault.read(RUN, 1).parameters).max() < 1e-5


def test_a_round_that_is_dropped_closes_its_file(tmp_path: Path) -> None:
    run = Run(tmp_path, spec("fp32"))
    run.delta(1, 0, np.ones(run.n, np.float32), 0.5, clip=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.desk.drop_round(c.DropRound(RUN, 1))
        gc.collect()
    run.delta(1, 0, np.ones(run.n, np.float32), 1.0, clip=None)
    run.close(1, {0: 1.0})


def test_a_clipped_delta_counts_for_its_part(tmp_path: Path) -> None:
    run = Run(tmp_path, spec("fp32"))
    before = run.vault.read(RUN, 0).parameters
    run.delta(1, 0, np.full(run.n, 1.0, np.float32), 0.5)
    run.delta(1, 1, np.full(run.n, 100.0, np.float32), 0.5, clip=0.01)
    run.close(1)
    assert np.abs(before - 1 - run.vault.read(RUN, 1).parameters).max() < 1e-5


@pytest.mark.parametrize("damage", ["length", "code", "scale"])
def test_a_delta_that_is_no_encoded_vector_is_refused_with_a_sentence(tmp_path: Path, damage: str) -> None:
    run = Run(tmp_path, spec("int8"))
    encoded = encode("int8", np.ones(run.n, np.float32), None)
    if damage == "length":
        encoded = encoded[:-1].copy()
    elif damage == "code":
        encoded[-1] = 0x80
    else:
        encoded[:4] = np.frombuffer(np.float32(np.nan).tobytes(), np.uint8)
    ref = TaskRef(run=RUN, round=1, base_version=0, shard=0, lease=f"{RUN}.1.0.0.1")
    run.desk.check("w-1", offer(ref, run.spec.encoding, encoded, bytes_digest(encoded)), encoded)
    refused = run.events[-1]
    assert refused.code == ("DELTA_NOT_FINITE" if damage == "scale" else "DELTA_MALFORMED")
    assert "allowed" in refused.text


def test_a_large_delta_waits_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "IN_MEMORY_MAX", 10)
    room = uploads.room_for(11)
    assert isinstance(room, np.memmap)
    room[:] = 7
    assert room.sum() == 77
    assert not isinstance(uploads.room_for(10), np.memmap)
