"""Back to the best: what the desk writes, under a disk that fails, and that what is gone back to is still there."""

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.common.host import failpoints
from services.common.learning import bytes_digest
from services.common.learning.encodings import encode
from services.common.protocol.messages import RunSpec, TaskRef
from services.common.protocol.reasons import said
from services.master.core import commands as c
from services.master.core import events as e
from services.master.core.recovery import version_meta
from services.master.core.state import Run, RunPhase
from services.master.shell.checkpoints import Vault, rounds_in
from services.master.shell.desk import Desk, EncodedUpdate, Snapshot
from services.master.shell.store import Store
from services.master.tests.conftest import offer
from services.tests.story import Story

RUN = "gauss3-1"
SPEC = RunSpec(dataset="gauss3", model={"family": "softmax"}, outer={"name": "nesterov"}, encoding="int4")


class Bench:
    """A desk in this thread, and what it posted last."""

    def __init__(self, folder: Path) -> None:
        self.letters: queue.SimpleQueue[e.Event] = queue.SimpleQueue()
        self.published: list[Snapshot | EncodedUpdate] = []
        self.vault = Vault(folder / "runs")
        self.store = Store(folder)
        self.store.add_run(RUN, 1, SPEC.model_dump(mode="json"), "RUNNING", said(""))
        self.desk = Desk(self.store, self.vault, self.letters.put, self.published.append, set)
        self.do(lambda desk: desk.prepare(c.PrepareRun(RUN, SPEC)))
        self.n = self.take(e.RunPrepared).n_parameters

    def do(self, job: Any) -> None:
        self.desk.run_job(job)

    def take(self, kind: type) -> Any:
        letter = self.letters.get(timeout=1)
        assert isinstance(letter, kind), letter
        return letter

    def close_round(self, number: int, value: float = 0.25) -> str:
        """A round with one delta; the digest of its version."""
        ref = TaskRef(run=RUN, round=number, base_version=number - 1, shard=0, lease=f"{RUN}.{number}.0.0.1")
        delta = encode(SPEC.encoding, np.linspace(-value, value / 3, self.n, dtype=np.float32), None)
        begin = offer(ref, SPEC.encoding, delta, bytes_digest(delta))
        self.do(lambda desk: desk.check("w-1", begin, delta))
        self.take(e.DeltaStaged)
        self.do(lambda desk: desk.fold(c.Fold(ref, bytes_digest(delta), SPEC.encoding, 1.0, 1.0, 1024.0)))
        self.do(lambda desk: desk.aggregate(c.Aggregate(RUN, number, SPEC.encoding, 1.0)))
        done = self.take(e.AggregationDone)
        meta = {"run": RUN, "round": number, "version": number, "digest": done.digest}
        self.do(lambda desk: desk.write_checkpoint(c.WriteCheckpoint(RUN, number, meta)))
        self.take(e.CheckpointDone)
        self.do(lambda desk: desk.save_run(c.SaveRun(RUN, "RUNNING", said(""), False)))  # prunes
        return str(done.digest)

    def revert(self, number: int, to_version: int) -> None:
        meta = {"run": RUN, "round": number, "version": number, "digest": "", "reverted": number}
        self.do(lambda desk: desk.revert(c.Revert(RUN, number, to_version, meta)))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    failpoints.arm("")
    bench.desk.close()


def test_the_next_version_is_the_best_again_and_carries_nothing_over(bench: Bench) -> None:
    wanted = bench.close_round(1)
    bench.do(lambda desk: desk.mark_best(RUN, 1))
    first = bench.vault.read(RUN, 1)
    for number in range(2, 7):
        bench.close_round(number, 0.1)
    worse = bench.vault.read(RUN, 6)
    assert np.any(worse.outer["momentum"])
    assert worse.residual is not None
    assert np.any(worse.residual)
    bench.revert(7, 1)
    assert bench.take(e.Reverted) == e.Reverted(RUN, 7, wanted)
    found = bench.vault.read(RUN, 7)
    assert found.parameters.tobytes() == first.parameters.tobytes()
    assert found.meta["digest"] == wanted
    assert found.residual is not None
    assert not np.any(found.residual)
    assert not np.any(found.outer["momentum"])
    published = bench.published[-1]
    assert isinstance(published, Snapshot)
    assert (published.version, published.digest, published.alone) == (7, wanted, True)
    assert bench.vault.read(RUN, 6).parameters.tobytes() == worse.parameters.tobytes(), "nothing is deleted"
    bench.close_round(8)
    assert rounds_in(bench.vault.run_folder(RUN)) == [1, 6, 7, 8], "and the best stays"


def test_while_none_is_evaluated_version_0_stays(bench: Bench) -> None:
    for number in range(1, 7):
        bench.close_round(number)
    assert rounds_in(bench.vault.run_folder(RUN)) == [0, 4, 5, 6]
    bench.do(lambda desk: desk.mark_best(RUN, 5))
    for number in range(7, 11):
        bench.close_round(number)
    assert rounds_in(bench.vault.run_folder(RUN)) == [5, 8, 9, 10]


@pytest.mark.parametrize("step", failpoints.FILE_STEPS)
def test_a_disk_that_fails_leaves_the_old_version_or_the_new_one(bench: Bench, step: str) -> None:
    old = bench.close_round(1)
    new = bench.vault.read(RUN, 0).meta["digest"]
    failpoints.arm(f"checkpoint.{step}=ENOSPC")
    bench.revert(2, 0)
    failed = bench.take(e.WorkFailed)
    assert "cannot be written" in failed.reason
    failpoints.arm("")
    found, sentences = bench.vault.newest_good(RUN)
    assert found is not None
    assert not sentences
    assert (found.meta["version"], found.meta["digest"]) in ((1, old), (2, new))
    bench.do(lambda desk: desk.read_again(c.RestoreRun(RUN, SPEC, 1, 1)))
    bench.revert(2, 0)
    assert bench.take(e.Reverted).digest == new


def test_a_best_that_is_damaged_fails_with_its_name_and_the_run_stays_where_it_was(bench: Bench) -> None:
    bench.close_round(1)
    bench.close_round(2)
    bench.vault.path_of(RUN, 1).write_bytes(b"damaged")
    bench.revert(3, 1)
    assert "ckpt-1.npz is damaged" in bench.take(e.WorkFailed).reason
    assert rounds_in(bench.vault.run_folder(RUN)) == [0, 1, 2]


def test_an_outer_step_that_makes_no_numbers_is_told_and_makes_nothing(bench: Bench) -> None:
    bench.close_round(1)
    assert bench.desk._current is not None
    bench.desk._current.parameters = np.full(bench.n, np.inf, dtype=np.float32)
    with pytest.raises(AssertionError, match=r"Diverged.*round=2"):
        bench.close_round(2)
    assert rounds_in(bench.vault.run_folder(RUN)) == [0, 1]


def test_every_checkpoint_says_the_same_things_of_itself() -> None:
    story = Story()
    story.play("@1000 join ada\n@2000 create k_steps=10 batch=50 rounds=9\n@3000 delta ada")
    of_a_round = story.disk.meta
    story.play("@3100 diverge\n@3200 delta ada")
    of_going_back = story.disk.meta
    assert of_going_back["reverted"] == 2
    assert of_going_back.keys() == of_a_round.keys()
    assert of_going_back["row"].keys() == of_a_round["row"].keys()
    assert version_meta(Run(RUN, SPEC, RunPhase.WAITING, said("")), 0).keys() == of_a_round.keys()
