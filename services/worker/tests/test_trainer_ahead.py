"""A trainer process that is ahead: it goes on from its own parameters, and goes over to the base when that comes."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from services.common.learning import build_inner, datasets, run_local_steps
from services.common.learning.parameters import Floats, digest
from services.common.protocol.messages import Task, TaskRef
from services.worker.core.commands import Rebase, Train
from services.worker.shell.agent import paths_of
from services.worker.shell.trainer import local_task
from services.worker.tests.conftest import Job
from services.worker.tests.trainers import TrainerProcess

FIRST, SECOND = (TaskRef(run="run-1", round=at, base_version=at - 1, shard=0, lease=f"lease-{at}") for at in (1, 2))


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrainerProcess]:
    """A trainer that is ready."""
    one = TrainerProcess(tmp_path_factory.mktemp("ahead"))
    yield one
    one.child.stop()


def first_round(process: TrainerProcess, job: Job) -> Floats:
    """Round 1 is done; its local parameters, computed here."""
    task = job.task().model_copy(update={"ref": FIRST})
    process.give(task, job.anchor_bytes)
    process.expect("done")
    data = datasets.load(job.data)
    optimizer = build_inner(job.inner, job.model.n_parameters)
    return run_local_steps(job.model, optimizer, job.anchor, data, local_task(task), lambda step, loss: False).local


def go_on(process: TrainerProcess, job: Job, steps: int = 20) -> Task:
    """Round 2 begins ahead of its base."""
    task = job.task(steps=steps).model_copy(update={"ref": SECOND, "start_version": 0})
    line = {"t": "train", "lease": SECOND.lease, "files": paths_of(process.slot, Train(task)), "goes_on": True}
    process.child.send(line | {"task": task.model_dump_json()})
    return task


def rebase(process: TrainerProcess, task: Task, before: Floats, update: Floats) -> Floats:
    """Version 1 by an update of fp32, which lies in the slot; what the version is."""
    process.slot.replica.anchor.write_bytes(before.astype("<f4").tobytes())
    process.slot.replica.update(1).write_bytes(update.astype("<f4").tobytes())
    base = before - update
    command = Rebase(task.based(digest(base)), (1,))
    line = {"t": "rebase", "lease": task.ref.lease, "files": paths_of(process.slot, command)}
    process.child.send(line | {"task": command.task.model_dump_json()})
    return base


def test_it_goes_on_at_once_and_waits_with_its_delta_for_the_base(process: TrainerProcess) -> None:
    job = Job()
    local = first_round(process, job)
    task = go_on(process, job)
    process.expect("waits")
    time.sleep(0.3)
    base = rebase(process, task, job.anchor, np.linspace(-0.1, 0.1, len(job.anchor), dtype=np.float32))
    assert process.expect("anchored")["lease"] == SECOND.lease
    answer = process.expect("done")
    data, optimizer = datasets.load(job.data), build_inner(job.inner, len(local))
    expected = run_local_steps(job.model, optimizer, local, data, local_task(task), lambda step, loss: False)
    found = np.fromfile(process.slot.delta_path(SECOND.lease), "<f4")
    np.testing.assert_allclose(found, expected.delta, rtol=1e-3, atol=1e-5)
    assert process.slot.replica.digest() == digest(base)
    assert answer["sync_ms"] >= 300, "the exchange takes until the base is here"
    assert answer["late_ms"] <= answer["compute_ms"] < answer["sync_ms"], "waiting is no computing"


def test_the_base_takes_its_place_between_two_steps(process: TrainerProcess) -> None:
    job = Job()
    first_round(process, job)
    task = go_on(process, job, steps=10_000)
    process.expect_progress()
    rebase(process, task, job.anchor, np.full_like(job.anchor, 0.01))
    process.expect("anchored")
    assert process.expect("done")["steps"] == 10_000


def test_a_cancelled_one_does_not_wait_any_longer(process: TrainerProcess) -> None:
    job = Job()
    first_round(process, job)
    go_on(process, job)
    process.expect("waits")
    process.child.send({"t": "cancel", "lease": SECOND.lease})
    assert process.expect("stopped")["lease"] == SECOND.lease


def test_wrong_updates_end_the_attempt(process: TrainerProcess) -> None:
    job = Job()
    first_round(process, job)
    task = go_on(process, job)
    process.expect("waits")
    process.slot.replica.update(1).write_bytes(b"")
    command = Rebase(task.based("0" * 32), (1,))
    line = {"t": "rebase", "lease": task.ref.lease, "files": paths_of(process.slot, command)}
    process.child.send(line | {"task": command.task.model_dump_json()})
    assert "has not the digest" in process.expect("anchor_wrong")["reason"]


def test_one_that_knows_nothing_of_the_round_before_says_so(tmp_path: Path) -> None:
    process = TrainerProcess(tmp_path)
    try:
        go_on(process, Job())
        assert "knows nothing of the round before" in process.expect("failed")["reason"]
    finally:
        process.child.stop()
