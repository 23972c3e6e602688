"""The master's settings: an empty variable (compose passes them) is none; what is advertised must be an address."""

import errno
from pathlib import Path

import pytest

from services.common.errors import SettingsError
from services.common.host.machine import home
from services.common.protocol.limits import PORT_WORKERS
from services.master.settings import MasterSettings
from services.master.shell.startup import lock_data


def test_an_empty_variable_is_as_if_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAHE_MASTER_DATA", "")
    monkeypatch.setenv("MAHE_MASTER_PORT", "")
    monkeypatch.setenv("MAHE_ADVERTISE", "")
    settings = MasterSettings()
    assert settings.data == home() / "master"
    assert settings.port == PORT_WORKERS
    assert settings.endpoints(1) == []


def test_hosts_get_the_bound_port_and_may_name_another() -> None:
    settings = MasterSettings(MAHE_ADVERTISE="192.0.2.7, lab.example:9000,[2001:db8::1]:7,2001:db8::2,")
    assert settings.endpoints(47820) == [
        "tcp://192.0.2.7:47820",
        "tcp://lab.example:9000",
        "tcp://[2001:db8::1]:7",
        "tcp://[2001:db8::2]:47820",
    ]


@pytest.mark.parametrize("named", ["a b", "lab:70000", "lab:0", "-x", "$(id)", "a..b", "[:]", "\x1b[2J", "good,a b"])
def test_what_is_no_address_is_refused_by_name(named: str) -> None:
    with pytest.raises(SettingsError, match=r"^MAHE_ADVERTISE: endpoint .+ is not tcp://host:port") as caught:
        MasterSettings(MAHE_ADVERTISE=named).endpoints(47820)
    assert caught.value.sentence.endswith("; correct it")
    assert caught.value.code == "ENDPOINT"


def test_a_host_that_fits_into_no_join_string_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"^MAHE_ADVERTISE: endpoint .+ is 312 bytes long, allowed are 255; use a"):
        MasterSettings(MAHE_ADVERTISE="a" * 300).endpoints(47820)


def test_a_data_folder_without_file_locks_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(SettingsError, match=r"not support file locks \(No locks available\): set MAHE_MASTER_DATA to"):
        lock_data(tmp_path)
