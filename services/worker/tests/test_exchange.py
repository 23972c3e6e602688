"""What the trainer does around its steps: encode with what is owed, follow updates, leave no half of anything."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from services.common.host import failpoints
from services.common.learning.encodings import ENCODINGS, check, decode, encode
from services.common.learning.exchange import pack_residual, unpack_residual
from services.common.learning.outer import apply_update
from services.common.learning.parameters import Floats, bytes_digest, digest
from services.common.protocol.messages import Encoding, Task, TaskRef, down_encoding, encoded_bytes
from services.worker.tests.conftest import Job
from services.worker.tests.trainers import Here, TrainerProcess

LOSSY = [encoding for encoding in ENCODINGS if encoding != "fp32"]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrainerProcess]:
    """A trainer that is ready; the tests of this module share it, each with a run of its own."""
    one = TrainerProcess(tmp_path_factory.mktemp("trainer"))
    yield one
    one.child.stop()


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    """No failpoint outlives its test."""
    yield
    failpoints.arm("")


def job_of(run: str, job: Job, version: int, encoding: Encoding, *, fresh: bool = False, lease: str = "") -> Task:
    """A task on this version of the run, whose parameters are those of `job`."""
    ref = TaskRef(run=run, round=version, base_version=version, shard=0, lease=lease or f"{run}.{version}")
    return job.task(round_number=version).model_copy(update={"ref": ref, "encoding": encoding, "fresh": fresh})


def update_of(job: Job, number: int, encoding: Encoding) -> bytes:
    """An update by chance; it is applied to the parameters of `job` as all replicas do."""
    down = down_encoding(encoding)
    values = np.random.default_rng(number).normal(0, 0.01, len(job.anchor)).astype(np.float32)
    encoded = encode(down, values, None)
    job.anchor = job.anchor.copy()
    apply_update(job.anchor, decode(down, encoded, len(values)))
    return encoded.tobytes()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_over_three_tasks_deltas_and_residual_are_those_of_encode_by_hand(
    process: TrainerProcess, encoding: Encoding
) -> None:
    job, run, slot = Job(), f"run-{encoding}", process.slot
    residual: Floats = np.zeros_like(job.anchor)
    for version in range(3):
        void, task = (job_of(run, job, version, encoding, lease=f"{run}.{version}.{n}") for n in ("void", "good"))
        process.give(void, job.anchor_bytes)
        assert process.expect("done")["delta_bytes"] == encoded_bytes(encoding, len(job.anchor))
        slot.forget(void.ref.lease, counted=False)  # changes nothing of what is owed
        raw = process.floats(task)
        path = process.give(task, None)
        answer = process.expect("done")
        found = path.read_bytes()
        encoded = encode(encoding, raw, residual)
        assert found == encoded.tobytes()
        assert (answer["digest"], answer["delta_bytes"]) == (bytes_digest(encoded), len(found))
        left_over = slot.next_residual_path(task.ref.lease)
        if encoding == "fp32":
            assert not left_over.exists()
        else:
            assert np.any(residual)
            assert left_over.read_bytes() == b"".join(pack_residual(run, residual))
        slot.forget(task.ref.lease, counted=True)
        apply_update(job.anchor, decode(encoding, encoded, len(raw)))
    assert slot.residual_path.exists() or encoding == "fp32"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_unit_carries_nothing_over(process: TrainerProcess, encoding: Encoding) -> None:
    job, slot = Job(), process.slot
    task = job_of("run-units", job, 0, encoding, fresh=True)
    owed = b"".join(pack_residual("run-units", np.full_like(job.anchor, 0.5)))
    slot.residual_path.write_bytes(owed)
    slot.replica.anchor.write_bytes(job.anchor_bytes)
    raw = process.floats(task)
    assert process.delta(task) == encode(encoding, raw, None).tobytes()
    assert not slot.next_residual_path(task.ref.lease).exists()
    slot.forget(task.ref.lease, counted=True)
    assert slot.residual_path.read_bytes() == owed


@pytest.mark.parametrize("damage", ["none", "bit", "short", "empty", "run", "model", "before"])
def test_a_residual_that_is_damaged_or_of_another_run_or_of_before_it_went_back_is_nothing_owed(
    process: TrainerProcess, damage: str
) -> None:
    job, slot = Job(), process.slot
    task = job_of("run-d", job, 0, "int8", lease=f"run-d.{damage}")
    task = task.model_copy(update={"reverted": 3 if damage == "before" else 0})
    owed = np.full_like(job.anchor, 0.5)
    good = b"".join(pack_residual("run-d", owed))
    content = {
        "none": None,
        "bit": good[:99] + bytes([good[99] ^ 4]) + good[100:],
        "short": good[:-4],
        "empty": b"",
        "run": b"".join(pack_residual("run-c", owed)),
        "model": b"".join(pack_residual("run-d", owed[1:])),
        "before": good,
    }[damage]
    slot.residual_path.unlink(missing_ok=True)
    if content is not None:
        slot.residual_path.write_bytes(content)
    slot.replica.anchor.write_bytes(job.anchor_bytes)
    raw = process.floats(task)
    residual: Floats = np.zeros_like(raw)
    expected = encode("int8", raw, residual)
    assert process.delta(task) == expected.tobytes()
    assert slot.next_residual_path(task.ref.lease).read_bytes() == b"".join(pack_residual(task.lineage, residual))
    slot.residual_path.write_bytes(b"".join(pack_residual(task.lineage, owed)))
    assert process.delta(task) == encode("int8", raw, owed).tobytes() != expected.tobytes()


@pytest.mark.parametrize("encoding", LOSSY)
def test_a_delta_that_is_no_number_says_so_and_owes_nothing_but_numbers(tmp_path: Path, encoding: Encoding) -> None:
    here = Here(tmp_path, Job())
    anchor = here.job.anchor.copy()
    anchor[0] = np.inf
    assert here.train(anchor=anchor.tobytes(), encoding=encoding)["t"] == "done"
    assert check(encoding, np.fromfile(here.delta, np.uint8), len(anchor))
    left_over = unpack_residual("run-1", here.slot.next_residual_path("lease-0").read_bytes(), len(anchor))
    assert left_over is not None
    assert np.isfinite(left_over).all()


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("behind", [1, 3])
def test_updates_move_the_anchor_on_before_the_first_step(
    process: TrainerProcess, encoding: Encoding, behind: int
) -> None:
    job, slot = Job(), process.slot
    start, seed = job.anchor_bytes, 100 + 10 * ENCODINGS.index(encoding)  # so that no two tests lead to one version
    for version in range(1, behind + 1):
        slot.replica.update(version).write_bytes(update_of(job, seed + version, encoding))
    task = job_of(f"run-u-{encoding}", job, behind, encoding, fresh=True)
    path = process.give(task, start, tuple(range(1, behind + 1)))
    assert process.expect("anchored")["lease"] == task.ref.lease
    assert process.expect("done")["lease"] == task.ref.lease
    assert slot.replica.anchor.read_bytes() == job.anchor_bytes
    assert slot.replica.digest() == task.anchor_digest
    followed = path.read_bytes()
    assert process.delta(task, job.anchor_bytes) == followed
    whole = Here(slot.folder.parent / f"whole-{encoding}-{behind}", job)
    whole.train(encoding="fp32", ref=task.ref, anchor_digest=task.anchor_digest)
    raw = np.fromfile(whole.slot.delta_path(task.ref.lease), "<f4")
    np.testing.assert_allclose(process.floats(task), raw, rtol=1e-3, atol=1e-5)


DAMAGES = ["bit", "short", "long", "empty", "missing", "order", "few"]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("encoding", ["fp32", "int8"])
def test_updates_that_do_not_lead_to_the_version_leave_the_anchor_as_it_was(
    process: TrainerProcess, encoding: Encoding, damage: str
) -> None:
    job, files = Job(), process.slot.replica
    start = job.anchor_bytes
    seed = 10 * DAMAGES.index(damage)  # the trainer knows the version of its last task without the file
    first, second = update_of(job, seed + 1, encoding), update_of(job, seed + 2, encoding)
    damaged = {
        "bit": second[:50] + bytes([second[50] ^ 1]) + second[51:],
        "short": second[:-1],
        "long": second + b"\0",
        "empty": b"",
        "order": first,
    }.get(damage, second)
    files.update(1).write_bytes(second if damage == "order" else first)
    files.update(2).write_bytes(damaged)
    if damage == "missing":
        files.update(2).unlink()
    task = job_of(f"run-w-{encoding}-{damage}", job, 2, encoding)
    path = process.give(task, start, (1,) if damage == "few" else (1, 2))
    answer = process.expect("anchor_wrong")
    assert answer["lease"] == task.ref.lease
    assert task.anchor_digest in answer["reason"]
    assert files.anchor.read_bytes() == start
    assert not path.exists()
    files.update(1).write_bytes(first)
    files.update(2).write_bytes(second)
    process.give(task, None, (1, 2))
    assert process.expect("anchored")["lease"] == task.ref.lease
    assert process.expect("done")["lease"] == task.ref.lease


@pytest.mark.parametrize("anchor", [None, b"", b"x", b"\0" * 12])
def test_an_anchor_that_is_no_version_is_wrong_with_updates_and_a_failure_without(
    process: TrainerProcess, anchor: bytes | None
) -> None:
    job, files = Job(), process.slot.replica
    files.update(1).write_bytes(update_of(job, 4711, "int8"))
    task = job_of("run-n", job, 1, "int8")
    files.anchor.unlink(missing_ok=True)
    process.give(task, anchor, (1,))
    assert process.expect("anchor_wrong")["lease"] == task.ref.lease
    process.give(task, anchor)
    assert "the anchor in this slot is another one" in process.expect("failed")["reason"]


def test_a_task_that_is_cancelled_has_still_moved_the_anchor(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    here = Here(tmp_path, Job())
    here.slot.replica.anchor.write_bytes(here.job.anchor_bytes)
    here.slot.replica.update(1).write_bytes(update_of(here.job, 1, "int8"))
    here.orders.cancel("lease-0")
    assert here.train(updates=(1,), encoding="int8")["t"] == "stopped"
    assert capfd.readouterr().out.count('{"t": "anchored", "lease": "lease-0"}') == 1
    assert here.slot.replica.digest() == digest(here.job.anchor)
    assert not list(here.slot.folder.glob("delta-*"))


@pytest.mark.parametrize("point", ["anchor.before-write", "anchor.before-rename"])
def test_an_anchor_that_cannot_be_written_is_trouble_of_the_disk_and_the_old_one_stays(
    tmp_path: Path, point: str, capfd: pytest.CaptureFixture[str]
) -> None:
    here = Here(tmp_path, Job())
    start = here.job.anchor_bytes
    here.slot.replica.anchor.write_bytes(start)
    here.slot.replica.update(1).write_bytes(update_of(here.job, 1, "int8"))
    failpoints.arm(f"{point}=ENOSPC")
    answer = here.train(updates=(1,), encoding="int8")
    assert (answer["t"], answer["lease"]) == ("unwritten", "lease-0")
    assert "disk is full" in answer["text"]
    assert here.slot.replica.anchor.read_bytes() == start
    assert "anchored" not in capfd.readouterr().out
    assert not list(tmp_path.glob(".*"))
    failpoints.arm("")
    assert here.train(updates=(1,), encoding="int8")["t"] == "done"
    assert here.slot.replica.digest() == digest(here.job.anchor)


@pytest.mark.parametrize("point", ["residual.before-write", "delta.before-write", "delta.before-folder-fsync"])
def test_results_that_cannot_be_written_leave_neither_half(tmp_path: Path, point: str) -> None:
    here = Here(tmp_path, Job())
    failpoints.arm(f"{point}=ENOSPC")
    assert here.train(encoding="int8")["t"] == "unwritten"
    assert not list(tmp_path.glob("delta-*"))
    failpoints.arm("")
    assert here.train(encoding="int8")["t"] == "done"
    assert len(list(tmp_path.glob("delta-*"))) == 2


def test_a_write_that_failed_leaves_what_is_owed_as_it_was(tmp_path: Path) -> None:
    here = Here(tmp_path, Job())
    assert here.train(encoding="int4")["t"] == "done"
    here.slot.forget("lease-0", counted=True)
    failpoints.arm("delta.before-write=ENOSPC")
    assert here.train(encoding="int4")["t"] == "unwritten"
    failpoints.arm("")
    assert here.train(encoding="int4")["t"] == "done"
    kept = here.delta.read_bytes()
    assert Here(tmp_path, here.job).train(encoding="int4")["t"] == "done"
    assert here.delta.read_bytes() == kept, "what another trainer reads from the file"


def test_what_one_run_left_over_is_not_owed_in_the_next(tmp_path: Path) -> None:
    here = Here(tmp_path, Job())
    assert here.train(encoding="int4")["t"] == "done"
    here.slot.forget("lease-0", counted=True)
    ref = here.job.task().ref.model_copy(update={"run": "run-2"})
    assert here.train(encoding="int4", ref=ref)["t"] == "done"
    kept = here.slot.delta_path(ref.lease).read_bytes()
    assert Here(tmp_path, here.job).train(encoding="int4", ref=ref)["t"] == "done"
    assert here.slot.delta_path(ref.lease).read_bytes() == kept, "what a trainer makes that knows of no other run"
