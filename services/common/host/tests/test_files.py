"""Folders, durable files and kernel locks, with several processes and threads at once."""

import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.common.errors import SettingsError
from services.common.host.children import Child
from services.common.host.files import FolderLock, make_folder, write_durably


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


def test_a_child_ends_with_its_parent_s_pipe_and_its_end_is_told() -> None:
    lines: list[dict[str, object]] = []
    child = Child("services.master.shell.evaluator", {"PATH": "", "PYTHONPATH": str(Path.cwd())}, lines.append)
    assert child.send({"version": 1, "path": "/nowhere/ckpt-1.npz", "data": {"kind": "?"}, "model": {}})
    child.stop()
    assert [line["t"] for line in lines] == ["failed", "exit"]
    assert lines[-1]["code"] == 0
