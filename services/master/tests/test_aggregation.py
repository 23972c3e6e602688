"""The thread that computes: what is judged is what is folded; a run goes on from its last durable version."""

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.common.errors import CheckpointError
from services.common.learning import bytes_digest
from services.common.protocol.messages import RunSpec, TaskRef
from services.master.core import commands as c
from services.master.core import events as e
from services.master.shell.aggregation import Aggregation
from services.master.shell.checkpoints import Vault
from services.master.shell.desk import Desk, EncodedUpdate, Snapshot
from services.master.shell.store import Store
from services.master.tests.conftest import offer

RUN = "gauss3-1"
SPEC = RunSpec(dataset="gauss3", model={"family": "softmax"}, encoding="fp32")
REF = TaskRef(run=RUN, round=1, base_version=0, shard=0, lease=f"{RUN}.1.0.0.1")


class Bench:
    """The thread with its letters; `take` is the next event."""

    def __init__(self, folder: Path, spec: RunSpec = SPEC) -> None:
        self.letters: queue.Queue[Any] = queue.Queue()
        self.published: list[Snapshot | EncodedUpdate] = []
        post = self.letters.put
        vault = Vault(folder / "runs")
        self.thread = Aggregation(lambda: Desk(Store(folder), vault, post, self.published.append, set), post)
        self.thread.start()
        self.thread.do(lambda desk: desk.prepare(c.PrepareRun(RUN, spec)))
        self.prepared = self.take(e.RunPrepared)

    @property
    def versions(self) -> list[Snapshot]:
        return [one for one in self.published if isinstance(one, Snapshot)]

    def take(self, kind: type) -> Any:
        letter = self.letters.get(timeout=20)
        assert isinstance(letter, kind), letter
        return letter

    def staged(self, value: float) -> str:
        delta = np.full(self.prepared.n_parameters, value, dtype=np.float32).view(np.uint8)
        name = bytes_digest(delta)
        self.thread.do(lambda desk: desk.check("w-1", offer(REF, "fp32", delta, name), delta))
        assert self.take(e.DeltaStaged).digest == name
        return name

    def step(self, name: str) -> Any:
        self.thread.do(lambda desk: desk.fold(c.Fold(REF, name, "fp32", 1.0, 1.0, 1024.0)))
        self.thread.do(lambda desk: desk.aggregate(c.Aggregate(RUN, 1, "fp32", 1.0)))
        return self.take(e.AggregationDone)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.thread.stop()


def test_the_delta_that_was_judged_is_folded_not_one_that_came_after(bench: Bench) -> None:
    good = bench.staged(0.001)
    bench.staged(8e6)
    done = bench.step(good)
    expected = bench.versions[0].parameters - np.float32(0.001)
    bench.thread.do(lambda desk: desk.write_checkpoint(c.WriteCheckpoint(RUN, 1, meta(done.digest))))
    bench.take(e.CheckpointDone)
    assert np.abs(bench.versions[-1].parameters - expected).max() < 1e-5


def test_one_that_was_refused_is_dropped_alone(bench: Bench) -> None:
    bad = bench.staged(8e6)
    good = bench.staged(0.5)
    bench.thread.do(lambda desk: desk.drop_staged(c.DropStaged(REF, bad)))
    bench.step(good)


def test_a_resumed_run_goes_on_as_if_the_failed_step_had_never_been_made(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = bench.step(bench.staged(0.5)).digest

    def full(*_: object) -> None:
        raise CheckpointError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("services.master.shell.checkpoints.write", full)
        bench.thread.do(lambda desk: desk.write_checkpoint(c.WriteCheckpoint(RUN, 1, meta(first))))
        assert bench.take(e.WorkFailed).reason == "the disk is full"
    bench.thread.do(lambda desk: desk.read_again(c.RestoreRun(RUN, SPEC, 0, 1)))
    assert bench.step(bench.staged(0.5)).digest == first


@pytest.mark.parametrize("name", ["momentum", "nesterov", "fedadam"])
def test_the_state_of_the_outer_optimizer_goes_back_too_even_to_version_0(tmp_path: Path, name: str) -> None:
    spec = SPEC.model_copy(update={"outer": {"name": name}})
    bench = Bench(tmp_path, spec)
    first = bench.step(bench.staged(0.5)).digest
    bench.thread.do(lambda desk: desk.read_again(c.RestoreRun(RUN, spec, 0, 1)))
    again = bench.step(bench.staged(0.5)).digest
    bench.thread.do(lambda desk: desk.write_checkpoint(c.WriteCheckpoint(RUN, 1, meta(again))))
    bench.take(e.CheckpointDone)
    second = bench.step(bench.staged(0.25)).digest
    bench.thread.do(lambda desk: desk.read_again(c.RestoreRun(RUN, spec, 1, 2)))
    assert (again, bench.step(bench.staged(0.25)).digest) == (first, second)
    bench.thread.stop()


def test_log_lines_that_cannot_be_written_do_not_fail_the_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise CheckpointError("the disk is full")

    monkeypatch.setattr(Store, "add_events", full)
    bench.thread.do(lambda desk: desk.save_events([(1, "RUN", "text")]))
    bench.staged(0.5)
    assert bench.letters.empty()


def meta(version_digest: str) -> dict[str, Any]:
    return {"run": RUN, "round": 1, "version": 1, "digest": version_digest}
