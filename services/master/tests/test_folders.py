"""Looking for a folder: only below what is allowed, whatever names and links lie there."""

import os
from pathlib import Path

import pytest

from services.common.errors import ProtocolError
from services.master.shell import folders
from services.master.shell.folders import Folders
from services.master.shell.model_copies import Places


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    made = tmp_path / "volume"
    (made / "models" / "old").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    return made


def test_folders_and_models_are_told_with_the_way_back(volume: Path) -> None:
    for name in ("b.npz", "a.npz", "notes.txt", ".hidden.npz"):
        (volume / "models" / name).write_bytes(b"")
    found = Folders(Places(volume, volume)).look("models")
    assert (found["folders"], found["models"], found["more"]) == (["old"], ["a.npz", "b.npz"], False)
    assert (found["path"], found["parent"], found["roots"]) == (str(volume / "models"), str(volume), [str(volume)])
    assert Folders(Places(volume, volume)).look("")["parent"] is None


def test_nothing_outside_is_shown_also_not_through_links(volume: Path, tmp_path: Path) -> None:
    (volume / "out").symlink_to(tmp_path / "outside")
    (volume / "in").symlink_to(volume / "models")
    (volume / "loop").symlink_to(volume / "loop")
    looked = Folders(Places(volume, volume))
    assert looked.look("")["folders"] == ["in", "models"]
    for path in ("out", "..", "/", "/etc", "models/../../outside", str(tmp_path)):
        with pytest.raises(ProtocolError, match="allowed is what lies below") as refused:
            looked.look(path)
        assert refused.value.code == "FOLDER_NOT_ALLOWED"


@pytest.mark.parametrize("path", ["nothing", "file", "a\0b", "x" * 300, "~nobody-of-that-name", "loop"])
def test_what_is_no_folder_is_refused_by_name(volume: Path, path: str) -> None:
    (volume / "file").write_bytes(b"")
    (volume / "loop").symlink_to(volume / "loop")
    with pytest.raises(ProtocolError, match="field path is") as refused:
        Folders(Places(volume, volume)).look(path)
    assert refused.value.code == "FOLDER_UNKNOWN"


def test_names_that_nobody_can_type_are_left_out(volume: Path) -> None:
    for name in (b"a\nb", b"\xff\xfe", b"\x1b[31m", "模型".encode(), b"<b>"):
        (volume / os.fsdecode(name)).mkdir()
    found = Folders(Places(volume, volume)).look("")
    assert found["folders"] == ["<b>", "models", "模型"]
    assert str(found).encode(), "it can be told"


def test_a_folder_of_very_many_is_cut_and_says_so(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (volume / "models" / f"{number:02}").mkdir()
    looked = Folders(Places(volume, volume))
    assert not looked.look("models")["more"]
    for name, value in (("SHOWN_MAX", 5), ("LOOKED_AT_MAX", 7)):
        monkeypatch.setattr(folders, name, value)
        found = looked.look("models")
        assert (len(found["folders"]) <= 5, found["more"]) == (True, True)


def test_on_a_pc_of_somebodys_own_home_and_data_are_where_looking_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home" / "papers").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    looked = Folders(Places(tmp_path / "data"))
    assert looked.roots()[:2] == [tmp_path / "data", tmp_path / "home"]
    assert looked.look("~")["folders"] == ["papers"]
    with pytest.raises(ProtocolError, match="allowed is what lies below"):
        looked.look(str(tmp_path))
