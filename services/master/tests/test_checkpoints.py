"""Checkpoints: plain NumPy reads them, no damage goes unnoticed, the newest good one is found, old ones are pruned."""

import errno
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from services.common.errors import CheckpointError
from services.master.shell import checkpoints
from services.master.shell.checkpoints import Checkpoint


def a_checkpoint(round_number: int, n: int = 40) -> Checkpoint:
    parameters = np.arange(n, dtype=np.float32) + round_number
    return Checkpoint(parameters, {"momentum": parameters * 2}, {"round": round_number, "version": round_number})


def test_plain_numpy_opens_it(tmp_path: Path) -> None:
    path = checkpoints.write(tmp_path, a_checkpoint(3))
    with np.load(path, allow_pickle=False) as archive:
        assert archive["parameters"].tolist() == a_checkpoint(3).parameters.tolist()
        assert json.loads(archive["meta"].tobytes())["round"] == 3


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    found = checkpoints.read(checkpoints.write(tmp_path, a_checkpoint(3)))
    assert found.parameters.tobytes() == a_checkpoint(3).parameters.tobytes()
    assert found.outer["momentum"].tolist() == a_checkpoint(3).outer["momentum"].tolist()
    assert found.meta == a_checkpoint(3).meta
    assert not found.parameters.flags.writeable


def test_every_flipped_bit_and_every_cut_is_noticed(tmp_path: Path) -> None:
    path = checkpoints.write(tmp_path, a_checkpoint(1, n=4))
    whole = path.read_bytes()
    for at in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            assert not checkpoints.is_sealed(bytes(damaged)), f"bit {bit} of byte {at}"
        assert not checkpoints.is_sealed(whole[:at]), f"cut at byte {at}"
    assert checkpoints.is_sealed(whole)
    assert not checkpoints.is_sealed(whole + b"\0")


def test_a_bad_one_is_set_aside_and_named_and_the_one_before_is_used(tmp_path: Path) -> None:
    checkpoints.write(tmp_path, a_checkpoint(1))
    newest = checkpoints.write(tmp_path, a_checkpoint(2))
    newest.write_bytes(newest.read_bytes()[:-30])
    found, sentences = checkpoints.newest_good(tmp_path)
    assert found is not None
    assert found.meta["round"] == 1
    assert len(sentences) == 1
    assert "ckpt-2.npz is damaged" in sentences[0]
    assert (tmp_path / "ckpt-2.npz.bad").exists()


def test_all_bad_is_an_error_and_never_a_start_from_scratch(tmp_path: Path) -> None:
    path = checkpoints.write(tmp_path, a_checkpoint(1))
    path.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(CheckpointError, match="restore a backup"):
            checkpoints.newest_good(tmp_path)


def test_an_empty_folder_is_no_error(tmp_path: Path) -> None:
    assert checkpoints.newest_good(tmp_path) == (None, [])


def test_a_checkpoint_under_another_name_or_with_nan_is_refused(tmp_path: Path) -> None:
    path = checkpoints.write(tmp_path, a_checkpoint(1))
    renamed = path.rename(tmp_path / "ckpt-9.npz")
    with pytest.raises(CheckpointError, match="says that it is of round 1"):
        checkpoints.read(renamed)
    bad = a_checkpoint(2)
    bad.parameters[0] = np.nan
    with pytest.raises(CheckpointError, match="not finite"):
        checkpoints.read(checkpoints.write(tmp_path, bad))


def test_three_newest_and_the_kept_ones_stay(tmp_path: Path) -> None:
    for round_number in range(8):
        checkpoints.write(tmp_path, a_checkpoint(round_number))
    (tmp_path / ".ckpt-7.npz.99.tmp").write_bytes(b"half")
    checkpoints.prune(tmp_path, {2})
    assert checkpoints.rounds_in(tmp_path) == [2, 5, 6, 7]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"ckpt-{one}.npz" for one in (2, 5, 6, 7)]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failing_disk_leaves_the_old_checkpoint_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    checkpoints.write(tmp_path, a_checkpoint(1))

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if call == "fsync":
        monkeypatch.setattr(os, "fsync", fails)
    else:
        monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(CheckpointError, match="No space left on device"):
        checkpoints.write(tmp_path, a_checkpoint(2))
    assert [path.name for path in tmp_path.iterdir()] == ["ckpt-1.npz"]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE])
def test_one_that_cannot_be_read_now_is_neither_damaged_nor_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    for round_number in (1, 2):
        checkpoints.write(tmp_path, a_checkpoint(round_number))

    def fails(path: Path) -> bytes:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "read_bytes", fails)
    with pytest.raises(CheckpointError, match=r"ckpt-2.npz cannot be read .*; it may be whole"):
        checkpoints.newest_good(tmp_path)
    assert checkpoints.rounds_in(tmp_path) == [1, 2]


def test_one_on_a_bad_sector_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for round_number in (1, 2):
        checkpoints.write(tmp_path, a_checkpoint(round_number))
    shipped = Path.read_bytes

    def fails(path: Path) -> bytes:
        if path.name == "ckpt-2.npz":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return shipped(path)

    monkeypatch.setattr(Path, "read_bytes", fails)
    found, sentences = checkpoints.newest_good(tmp_path)
    assert found is not None
    assert found.meta["round"] == 1
    assert "Input/output error" in sentences[0]


def test_one_that_cannot_be_set_aside_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints.write(tmp_path, a_checkpoint(1)).write_bytes(b"")

    def fails(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(CheckpointError, match=r"ckpt-1.npz is damaged.*cannot be set aside \(Read-only file system\)"):
        checkpoints.newest_good(tmp_path)


def test_what_is_no_checkpoint_of_ours_is_set_aside_whatever_is_in_it(tmp_path: Path) -> None:
    checkpoints.write(tmp_path, a_checkpoint(1))
    rubbish = [b"", b"not a zip", np.arange(3).tobytes(), (tmp_path / "ckpt-1.npz").read_bytes()[:-64] + b"0" * 64]
    for number, raw in enumerate(rubbish, start=2):
        checkpoints.path_of(tmp_path, number).write_bytes(raw)
    checkpoints.path_of(tmp_path, 90).mkdir()
    checkpoints.path_of(tmp_path, 91).symlink_to(tmp_path / "nowhere")
    raw = b"sealed, but no archive" + checkpoints._SEAL
    digits = hashlib.sha256(raw + checkpoints._ZEROS).hexdigest().encode()
    checkpoints.path_of(tmp_path, 92).write_bytes(raw + digits)
    found, sentences = checkpoints.newest_good(tmp_path)
    assert found is not None
    assert found.meta["round"] == 1
    assert len(sentences) == len(rubbish) + 3
