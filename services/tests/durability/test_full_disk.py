"""A real file system of 1 MB that is full: services say it, keep what they have, and go on when there is space."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from services.common.errors import CheckpointError, SettingsError
from services.common.protocol.reasons import said
from services.master.shell.checkpoints import Checkpoint, Vault, rounds_in
from services.master.shell.store import Store
from services.tests.durability.scenarios import LEASES, RUN, train
from services.worker.core.events import Anchor
from services.worker.shell.slot import new_identity, take_slot
from services.worker.shell.task_files import TaskFiles

pytestmark = pytest.mark.system
DISK_BYTES = 1 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mounted by root; elsewhere Linux lets a user do it in a namespace of its own, but not this process."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a file system needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("this container may not mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, leave_bytes: int) -> Path:
    """Take all of the disk but this."""
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(max(shutil.disk_usage(disk).free - leave_bytes, 0)))
    return ballast


def a_version(number: int) -> Checkpoint:
    parameters = np.full(20_000, number, np.float32)  # 80 KB
    return Checkpoint(parameters, {}, {"run": RUN, "round": number, "version": number})


@pytest.mark.parametrize("leave_bytes", [0, 4096, 40_960, 77_824])
def test_a_checkpoint_that_does_not_fit(disk: Path, leave_bytes: int) -> None:
    vault = Vault(disk / "runs")
    vault.write(a_version(0))
    ballast = fill(disk, leave_bytes)
    with pytest.raises(CheckpointError, match=r"No space left on device\); free the disk, then resume the run"):
        vault.write(a_version(1))
    found, sentences = vault.newest_good(RUN)
    assert (found and found.meta["version"], sentences) == (0, [])
    assert not list(disk.rglob("*.tmp"))
    ballast.unlink()
    vault.write(a_version(1))
    assert rounds_in(vault.run_folder(RUN)) == [0, 1]


def test_the_store_says_it_and_goes_on_when_there_is_space(disk: Path) -> None:
    store = Store(disk)
    store.add_run(RUN, 1, {}, "RUNNING", said("round 1"))
    ballast = fill(disk, 0)
    kept = 0
    with pytest.raises(CheckpointError, match=r"cannot be written: .*free the disk"):  # noqa: PT012 - until it is full
        for number in range(1, 1000):
            store.save_round(RUN, {"round": number, "text": "x" * 1000})
            kept = number
    assert [row["round"] for row in store.rounds(RUN, 0, 1000)] == list(range(1, kept + 1))
    ballast.unlink()
    store.save_round(RUN, {"round": kept + 1})
    store.close()
    again = Store(disk)
    assert len(again.rounds(RUN, 0, 1000)) == kept + 1
    again.close()


def test_a_worker_keeps_its_identity_and_what_it_holds(disk: Path) -> None:
    warnings: list[str] = []
    slot = take_slot(disk, warnings.append)
    identity = new_identity()
    slot.save_identity(identity)
    anchor = TaskFiles(slot.replica.anchor, (), slot.folder, None, None)
    anchor.write_anchor(np.zeros(10_000, np.float32))
    first = train(slot, LEASES[0], 10_000)
    slot.keep(first)
    ballast = fill(disk, 0)
    with pytest.raises(SettingsError, match="disk is full"):
        slot.save_identity(identity)
    with pytest.raises(OSError, match="No space left"):
        anchor.write_anchor(np.ones(10_000, np.float32))
    with pytest.raises(OSError, match="No space left"):
        train(slot, LEASES[1], 10_000)
    with pytest.raises(OSError, match="No space left"):
        slot.keep(first)
    slot.replica.note(Anchor("run-1", 1, "0" * 32))
    assert [warning for warning in warnings if "anchor.json cannot be written" not in warning] == []
    warnings.clear()
    assert slot.identity() == identity
    assert [one.ref.lease for one in slot.held()] == [LEASES[0]]
    assert not anchor.read_anchor().any()
    assert not list(disk.rglob("*.tmp"))
    assert not warnings
    ballast.unlink()
    slot.keep(first)
    slot.forget(LEASES[0], counted=True)
    assert slot.residual_path.stat().st_size == 16 + 40_000
    slot.release()
