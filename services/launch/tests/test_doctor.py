"""What the doctor finds, on this PC and on worse ones."""

import os
import socket
import sys
from pathlib import Path

import pytest

from services.common.errors import quoted
from services.launch import doctor
from services.launch.ports import port_free, port_owner


@pytest.mark.usefixtures("mahe_home")
def test_this_pc_is_fit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "kernels", lambda: doctor.Finding("OK", "built or not, elsewhere"))
    assert doctor.run_doctor() == 0
    output = capsys.readouterr().out
    assert "with CURVE" in output
    assert "47820" in output
    assert "FAIL" not in output


def test_an_old_python_fails() -> None:
    assert doctor.python((3, 10, 2)) == (
        "FAIL",
        "Python 3.10.2; MAHE needs 3.11 or newer: install one, then make setup PYTHON=python3.12",
    )


@pytest.mark.parametrize(
    ("library", "curve", "level"), [("4.3.3", "1", "FAIL"), ("4.3.4", "1", "OK"), ("4.3.5", "0", "FAIL")]
)
def test_libzmq(library: str, curve: str, level: str) -> None:
    assert doctor.zmq_finding(library, "26.2", curve).level == level


@pytest.mark.parametrize(("free_mib", "level"), [(100, "FAIL"), (1000, "WARN"), (5000, "OK")])
def test_free_space(free_mib: int, level: str) -> None:
    assert doctor.space(Path("/data"), free_mib).level == level


def test_a_folder_that_cannot_be_written_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    findings = list(doctor.data_folder(tmp_path / "file" / "home"))
    assert [finding.level for finding in findings] == ["FAIL"]
    assert "MAHE_HOME" in findings[0].sentence


def test_missing_kernels_say_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "kernel_impl", lambda: (False, "the library is missing: run `make kernels`"))
    assert doctor.kernels() == ("FAIL", "the library is missing: run `make kernels`")


def test_a_port_in_use_and_by_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
        monkeypatch.setenv("MAHE_MASTER_PORT", str(number))
        assert not port_free(number)
        assert port_owner(number) == f"{' '.join(sys.orig_argv)} (process {os.getpid()})"
        finding = doctor.port("MAHE_MASTER_PORT", 1)
    assert finding.level == "WARN"
    assert "set MAHE_MASTER_PORT to another port" in finding.sentence
    assert port_free(number)


@pytest.mark.parametrize("named", ["abc", "-1", "70000", " 5", "\u0665", "9" * 5000])
def test_a_port_that_is_none_fails_and_is_named(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("MAHE_MASTER_PORT", named)
    finding = doctor.port("MAHE_MASTER_PORT", 47820)
    assert finding.level == "FAIL"
    assert quoted(named) in finding.sentence


def test_no_network_is_only_a_warning() -> None:
    assert doctor.reach([]).level == "WARN"
    assert doctor.reach(["192.0.2.7"]).sentence.endswith("192.0.2.7")
