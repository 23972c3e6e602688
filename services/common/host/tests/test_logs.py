"""Log lines when the place they go to is full, closed or gone: the line is lost and the service goes on."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.common.host.logs import Format, Log

needs_full = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /dev/full")


def full() -> io.TextIOWrapper:
    return Path("/dev/full").open("w", encoding="utf-8")


def without_a_reader() -> io.TextIOWrapper:
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w", encoding="utf-8")


@pytest.fixture(params=[pytest.param(full, marks=needs_full), without_a_reader], ids=["full", "without a reader"])
def broken(request: pytest.FixtureRequest) -> Iterator[io.TextIOWrapper]:
    """A real stream that takes nothing. It holds nothing back either: closing it raises no error."""
    with request.param() as stream:
        yield stream


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_stream_that_takes_nothing_is_no_error(
    broken: io.TextIOWrapper, form: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", broken)
    for _ in range(20):
        Log("test", form)("KIND", "x" * 999)


def test_neither_is_a_closed_one_nor_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    closed = (tmp_path / "log").open("w")
    closed.close()
    for stream in (closed, None):
        monkeypatch.setattr(sys, "stderr", stream)
        Log("test")("KIND", "message")


def test_text_that_is_no_unicode_is_written_all_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    """A folder's name may hold any bytes; Python has those that are no UTF-8 as lone surrogates."""
    Log("test")("KIND", "/data/\udcff")
    Log("test", "json")("KIND", "/data/\udcff")
    text, line = capfd.readouterr().err.splitlines()
    assert text == r"[KIND] /data/\udcff"
    assert json.loads(line)["message"] == "/data/\udcff"


@needs_full
def test_a_process_on_a_full_disk_runs_to_its_end_and_ends_well() -> None:
    program = "from services.common.host.logs import Log\nfor _ in range(30): Log('test')('KIND', 'x' * 999)"
    with full() as output:
        command = [sys.executable, "-c", program]
        assert subprocess.run(command, stdout=output, stderr=output, check=False).returncode == 0
