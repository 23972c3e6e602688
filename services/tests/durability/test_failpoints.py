"""Each failpoint is there and is reached; a disk that fails at any of them is a sentence, and nothing is lost.

With a failing disk in this process; by kill -9 in `test_kills.py`.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from services.common.errors import CheckpointError, SettingsError
from services.common.host import failpoints
from services.common.protocol.reasons import because, said
from services.master.shell import checkpoints
from services.master.shell.checkpoints import Vault
from services.master.shell.store import Store
from services.tests.durability.lives import removal_points, run_points, start_points, worker_points
from services.tests.durability.scenarios import LEASES, RUN, left_over, train, version
from services.worker.shell.slot import Parked, Slot, new_identity, take_slot
from services.worker.shell.task_files import TaskFiles

CHECKPOINT_POINTS = [f"checkpoint.{step}" for step in failpoints.FILE_STEPS]
ROW_POINTS = [point for point in failpoints.MASTER_POINTS if point.endswith("before-commit")]


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    failpoints.arm("")


def reached(point: str) -> int:
    return failpoints._armed[point].reached


def test_there_are_enough_of_them_and_they_are_off() -> None:
    assert len(failpoints.MASTER_POINTS) >= 20
    assert len(failpoints.WORKER_POINTS) + len(failpoints.TRAINER_POINTS) >= 20
    assert len(failpoints.POINTS) == sum(map(len, (failpoints.MASTER_POINTS, *_of_workers())))
    assert failpoints._armed == {}


def _of_workers() -> tuple[tuple[str, ...], ...]:
    return failpoints.WORKER_POINTS, failpoints.TRAINER_POINTS


@pytest.mark.parametrize("text", ["checkpoint.before-lunch=kill", "checkpoint.written=explode", "checkpoint.written"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no failpoint"):
        failpoints.arm(text)


def test_only_the_nth_time(tmp_path: Path) -> None:
    failpoints.arm("checkpoint.before-fsync=EIO@2")
    vault = Vault(tmp_path)
    vault.write(version(0))
    with pytest.raises(CheckpointError, match="Input/output error"):
        vault.write(version(1))
    vault.write(version(1))


def test_the_kill_is_one(tmp_path: Path) -> None:
    code = "from services.common.host.failpoints import failpoint; failpoint('note.written'); failpoint('note.written')"
    env = {failpoints.VARIABLE: "note.written=kill@2"}
    assert subprocess.run([sys.executable, "-c", code], env=env, timeout=20, check=False).returncode == -9


@pytest.mark.parametrize("point", CHECKPOINT_POINTS)
@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_a_checkpoint_on_a_failing_disk(tmp_path: Path, point: str, error: str) -> None:
    vault = Vault(tmp_path)
    vault.write(version(0))
    failpoints.arm(f"{point}={error}")
    with pytest.raises(CheckpointError, match="cannot be written"):
        vault.write(version(1))
    found, sentences = vault.newest_good(RUN)
    assert found is not None
    assert found.meta["version"] in (0, 1)
    assert sentences == []
    assert not list(tmp_path.rglob("*.tmp"))
    failpoints.arm("")
    vault.write(version(1))
    assert checkpoints.rounds_in(vault.run_folder(RUN)) == [0, 1]


@pytest.mark.parametrize("point", ROW_POINTS)
def test_a_transaction_on_a_failing_disk_is_as_if_it_had_never_been(tmp_path: Path, point: str) -> None:
    store = Store(tmp_path)
    for number, write in enumerate(_writes(store)):
        if number == ROW_NAMES.index(point.split(".")[1]):
            before = "\n".join(store._db.iterdump())
            failpoints.arm(f"{point}=ENOSPC")
            with pytest.raises(CheckpointError, match=r"cannot be written: No space left.*free the disk"):
                write()
            assert reached(point) == 1
            failpoints.arm("")
            assert "\n".join(store._db.iterdump()) == before
        write()
    store.close()


ROW_NAMES = ["term", "join", "enrol", "run-added", "run-saved", "assignment", "round", "events", "revoke"]


def _writes(store: Store) -> list[Callable[[], object]]:
    return [
        store.next_term,
        lambda: store.add_join("this PC", b"s" * 32, None, None),
        lambda: store.enrol("w-1", "ada", "k" * 40, 1),
        lambda: store.add_run(RUN, 1, {}, "WAITING", because("CREATED")),
        lambda: store.save_run(RUN, "RUNNING", said("round 1"), False),
        lambda: store.save_assignment(RUN, {"round": 1, "attempt": 1}),
        lambda: store.save_round(RUN, {"round": 1}),
        lambda: store.add_events([(1, "RUN", "text")]),
        lambda: store.revoke("w-1"),
    ]


@pytest.mark.system
@pytest.mark.parametrize(
    "point", ["keys.before-fsync", "store.term.before-commit", "control-file.before-rename", "join-file.before-write"]
)
def test_a_master_that_cannot_start_says_so_and_ends(tmp_path: Path, point: str) -> None:
    own = {"MAHE_MASTER_DATA": str(tmp_path), "MAHE_MASTER_PORT": "0", "MAHE_MASTER_CONTROL_PORT": "0"}
    env = {**os.environ, "MAHE_MASTER_BIND": "127.0.0.1", failpoints.VARIABLE: f"{point}=ENOSPC", **own}
    command = [sys.executable, "-m", "services.master"]
    done = subprocess.run(command, env=env, timeout=20, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "No space left on device" in said
    assert "Traceback" not in said


WORKER_FILE_POINTS = [f"{name}.{step}" for name in failpoints.WORKER_FILES for step in failpoints.FILE_STEPS]


@pytest.mark.parametrize("point", [*WORKER_FILE_POINTS, *failpoints.TRAINER_POINTS])
def test_a_slot_on_a_failing_disk(tmp_path: Path, point: str) -> None:
    warnings: list[str] = []
    slot = take_slot(tmp_path, warnings.append)
    failpoints.arm(f"{point}=ENOSPC")
    with pytest.raises((OSError, SettingsError), match="No space left on device"):
        _use(slot)
    assert reached(point) == 1
    failpoints.arm("")
    _use(slot)
    assert not warnings
    assert [one.ref.lease for one in slot.held()] == [LEASES[0]]
    assert slot.parked() is not None
    assert slot.replica.anchor.stat().st_size == 4 * 9
    assert slot.next_residual_path(LEASES[0]).read_bytes() == left_over(LEASES[0])
    assert not slot.residual_path.exists()
    assert not list(tmp_path.rglob("*.tmp"))
    slot.release()


def _use(slot: Slot) -> None:
    identity = slot.identity() or new_identity()
    slot.save_identity(identity)
    TaskFiles(slot.replica.anchor, (), slot.folder, None, None).write_anchor(np.arange(9, dtype=np.float32))
    slot.keep(train(slot, LEASES[0]))
    slot.park(Parked("removed", "mark"))


@pytest.mark.parametrize("point", [point for point in failpoints.WORKER_POINTS if point.startswith("forget.")])
def test_a_delta_that_counts_and_cannot_be_forgotten_is_forgotten_the_next_time(tmp_path: Path, point: str) -> None:
    warnings: list[str] = []
    slot = take_slot(tmp_path, warnings.append)
    slot.keep(train(slot, LEASES[0]))
    failpoints.arm(f"{point}=EIO")
    with pytest.raises(OSError, match="Input/output error"):
        slot.forget(LEASES[0], counted=True)
    assert reached(point) == 1
    failpoints.arm("")
    slot.forget(LEASES[0], counted=True)
    assert slot.residual_path.read_bytes() == left_over(LEASES[0])
    assert sorted(path.name for path in slot.folder.iterdir()) == ["lock", "residual.bin"]
    assert not warnings
    slot.release()


def test_real_processes_are_killed_at_every_one_of_them() -> None:
    played = [*start_points(), *run_points(), *worker_points(), *removal_points()]
    assert sorted(played) == sorted(failpoints.POINTS)
