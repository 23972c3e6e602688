"""Folders, durable files and kernel locks, with several processes and threads at once."""

import errno
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.common.errors import SettingsError
from services.common.host.files import FolderLock, make_folder, remove, write_durably


def test_many_may_make_the_same_folder_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: make_folder(folder), range(2000)))
    assert set(made) == {folder}
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_a_file_is_refused_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    with pytest.raises(SettingsError, match=r"cannot be written .*MAHE_HOME"):
        make_folder(tmp_path / "data")


def test_a_durable_file_is_replaced_whole_and_a_private_one_is_private(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    write_durably(path, b"old", private=True)
    write_durably(path, b"new", private=True)
    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["secret"]
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_lock_is_held_once_and_free_again_after_release(tmp_path: Path) -> None:
    first, second = FolderLock(tmp_path), FolderLock(tmp_path)
    assert first.acquire()
    assert not second.acquire()
    first.release()
    first.release()
    assert second.acquire()
    second.release()


def locking_fails_with(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on NFS without its lock daemon, or on a FUSE file system without locks."""

    def fail(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", fail)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL])
def test_a_folder_without_file_locks_is_refused_with_the_next_step(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locking_fails_with(number, monkeypatch)
    with pytest.raises(SettingsError) as caught:
        FolderLock(tmp_path, "MAHE_MASTER_DATA").acquire()
    assert caught.value.code == "NO_FILE_LOCKS"
    assert caught.value.sentence == (
        f"the folder {tmp_path} does not support file locks ({os.strerror(number)}): set MAHE_MASTER_DATA to a folder "
        "on a local disk"
    )


@pytest.mark.parametrize("number", [errno.EWOULDBLOCK, errno.EACCES])
def test_a_lock_that_another_has_is_no_error(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locking_fails_with(number, monkeypatch)
    assert not FolderLock(tmp_path).acquire()


def test_a_lock_that_cannot_be_opened_is_refused_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()  # a file of another user looks the same, but not to root
    with pytest.raises(SettingsError, match=r"lock cannot be opened \(.+\); .* MAHE_HOME") as caught:
        FolderLock(tmp_path).acquire()
    assert caught.value.code == "DATA_DIR_UNUSABLE"


def test_removing_tells_whether_the_file_is_gone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert remove(tmp_path / "file")
    assert remove(tmp_path / "file"), "it is gone already"
    (tmp_path / "folder").mkdir()
    assert not remove(tmp_path / "folder"), "what cannot go stays, as on Windows a file that is open"
