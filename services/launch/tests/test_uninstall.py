"""Uninstalling, in a home and a checkout of its own."""

import errno
import io
from pathlib import Path

import pytest

from services.__main__ import main
from services.common.errors import SettingsError
from services.common.host.files import FolderLock
from services.launch import uninstall


@pytest.fixture
def checkout(tmp_path: Path, mahe_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in which everything was built, with a home in which a demo and a master have been."""
    root = tmp_path / "checkout"
    for name in ("build/stamps", "services/common/kernels/lib", ".venv/bin", "docs"):
        (root / name).mkdir(parents=True)
    (root / "pyproject.toml").touch()
    (root / "build" / "big").write_bytes(bytes(3000))
    (mahe_home / "demo" / "master").mkdir(parents=True)
    (mahe_home / "master").mkdir()
    (mahe_home / "master" / "keys").write_bytes(b"x")
    monkeypatch.setattr(uninstall, "ROOT", root)
    return root


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(text))


def test_yes_removes_what_was_listed_and_nothing_else(
    mahe_home: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert uninstall.run_uninstall(yes=True) == 0
    assert not mahe_home.exists()
    assert sorted(path.name for path in checkout.iterdir()) == ["docs", "pyproject.toml", "services"]
    output = capsys.readouterr().out
    assert f"{checkout / 'build'} (2.9 KiB)" in output
    assert f"removed {checkout / '.venv'}" in output


def test_a_file_of_the_users_in_the_home_stays(mahe_home: Path, checkout: Path) -> None:
    (mahe_home / "thesis.txt").write_text("mine")
    assert uninstall.run_uninstall(yes=True) == 0
    assert [path.name for path in mahe_home.iterdir()] == ["thesis.txt"]
    assert not (checkout / "build").exists()


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize("text", ["n\n", "\n", "maybe\n"])
def test_anything_but_yes_removes_nothing(mahe_home: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    answer(monkeypatch, text)
    assert uninstall.run_uninstall(yes=False) == 1
    assert (mahe_home / "master" / "keys").exists()


@pytest.mark.usefixtures("checkout")
def test_the_person_says_yes(mahe_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "y\n")
    assert uninstall.run_uninstall(yes=False) == 0
    assert not mahe_home.exists()


@pytest.mark.usefixtures("checkout")
def test_with_nobody_to_ask_it_names_the_flag(
    mahe_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert main(["uninstall"]) == 2
    assert "mahe uninstall --yes" in capsys.readouterr().err
    assert (mahe_home / "master" / "keys").exists()


@pytest.mark.usefixtures("checkout")
def test_not_under_a_running_master(mahe_home: Path) -> None:
    lock = FolderLock(mahe_home / "master")
    assert lock.acquire()
    try:
        with pytest.raises(SettingsError, match="is running"):
            uninstall.run_uninstall(yes=True)
    finally:
        lock.release()
    assert (mahe_home / "master" / "keys").exists()


@pytest.mark.usefixtures("checkout")
def test_a_folder_without_file_locks_can_be_removed(mahe_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    (mahe_home / "master" / "lock").touch()
    monkeypatch.setattr("fcntl.flock", no_locks)
    assert uninstall.run_uninstall(yes=True) == 0
    assert not mahe_home.exists()


@pytest.mark.usefixtures("mahe_home")
def test_nothing_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uninstall, "ROOT", tmp_path / "site-packages")
    assert uninstall.run_uninstall(yes=False) == 0


def test_a_link_is_removed_and_not_followed(tmp_path: Path, mahe_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uninstall, "ROOT", tmp_path / "site-packages")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").touch()
    mahe_home.mkdir()
    (mahe_home / "master").symlink_to(elsewhere)
    assert uninstall.run_uninstall(yes=True) == 0
    assert (elsewhere / "precious").exists()
    assert not mahe_home.exists()
