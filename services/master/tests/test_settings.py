"""The master's settings: an empty variable (compose passes them) is none; what is advertised must be an address."""

import pytest

from services.common.errors import ProtocolError
from services.common.host.machine import home
from services.common.protocol.limits import PORT_WORKERS
from services.master.settings import MasterSettings


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


@pytest.mark.parametrize("named", ["a b", "lab:70000", "lab:0", "-x", "$(id)"])
def test_what_is_no_address_is_refused_by_name(named: str) -> None:
    with pytest.raises(ProtocolError, match="is not tcp://host:port"):
        MasterSettings(MAHE_ADVERTISE=named).endpoints(47820)
