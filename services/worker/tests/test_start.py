"""What a worker meets before it talks to anybody: a join file as Windows writes it, a disk that knows no file locks."""

import errno
from pathlib import Path

import pytest

from services.common.errors import ProtocolError, SettingsError
from services.common.protocol.join_string import JoinString, format_join_string
from services.worker.shell.joining import read_join_file
from services.worker.shell.slot import take_slot

TEXT = format_join_string(JoinString(("tcp://a:1",), b"k" * 32, b"s" * 32))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_join_file_is_read_as_powershell_writes_it(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "join.txt"
    path.write_bytes(f"{TEXT}\r\n".encode(encoding))
    assert read_join_file(path) == TEXT


def test_a_join_file_that_is_not_there_or_empty_yet_holds_nothing(tmp_path: Path) -> None:
    assert read_join_file(tmp_path / "join.txt") == ""
    (tmp_path / "join.txt").write_bytes("\r\n".encode("utf-16"))
    assert read_join_file(tmp_path / "join.txt") == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"mahe1.\xe4", "the join string is damaged"),
        ("mahe1.ab".encode("utf-16-le"), "a join string begins with 'mahe1.'"),  # without a byte order mark
        (b"mahe1.ab", "the join string is damaged"),
        (b"hello", "a join string begins with 'mahe1.', this begins with 'hello'; copy it again"),
    ],
)
def test_another_file_is_refused_with_its_path(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "join.txt"
    path.write_bytes(content)
    with pytest.raises(ProtocolError) as refused:
        read_join_file(path)
    assert refused.value.sentence.startswith(f"{path}: {said}")
    assert refused.value.code == "JOIN_STRING"


def test_a_data_folder_without_file_locks_is_named_and_not_filled_with_slots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(SettingsError, match=r"not support file locks \(No locks available\): set MAHE_WORKER_DATA to"):
        take_slot(tmp_path, print)
    assert [path.name for path in tmp_path.iterdir()] == ["slot-0"]
