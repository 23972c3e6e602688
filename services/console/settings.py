"""What the console can be told from outside: `MAHE_CONSOLE_*`, read once in `__main__`.

Not for what belongs to a run (its specification) nor for what the master decides.
"""

import ipaddress
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from services.common.errors import SettingsError, bad_setting
from services.common.host.logs import Format
from services.common.host.machine import home
from services.common.protocol.limits import PORT_CONSOLE

PREFIX = "MAHE_CONSOLE_"


class ConsoleSettings(BaseSettings):
    """Settings of one console process."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True)

    data: Path = Field(
        default_factory=lambda: home() / "console", description="Folder of the token and of console.json"
    )
    bind: str = Field(default="127.0.0.1", min_length=1, max_length=253, description="Address the page is served on")
    port: int = Field(
        default=PORT_CONSOLE, ge=0, le=65535, description="Port the page is served on; 0 takes any free one"
    )
    hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="Host values a browser may send, comma-separated; default: loopback with the port"
    )
    control_dir: Path = Field(
        default_factory=lambda: home() / "master" / "control", description="Folder where the master leaves control.json"
    )
    master: str = Field(
        default="", max_length=300, description="Endpoint of the master's control port; empty: the one in control.json"
    )
    control_wait_s: float = Field(
        default=120.0, ge=0, le=86_400, description="How long control.json is waited for before this is said aloud"
    )
    ui_wait_s: float = Field(
        default=20.0, ge=0, le=3600, description="How long INIT waits for an open page, seconds; 0: not at all"
    )
    log: Format = Field(default="text", description="Log lines: text for people, json for machines")

    @field_validator("hosts", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip().lower() for part in value.split(",") if part.strip())
        return value

    def hosts_allowed(self, port: int) -> frozenset[str]:
        """The exact Host values that are answered, once the port is known."""
        return frozenset(self.hosts or (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"))


def is_loopback(address: str) -> bool:
    """Whether only this PC can reach `address`; a name other than localhost counts as reachable by others."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def read_settings() -> ConsoleSettings:
    """The settings from the environment; raises SettingsError naming the variable, its value and what is allowed."""
    try:
        settings = ConsoleSettings()
    except ValidationError as error:
        raise bad_setting(PREFIX, error.errors()[0]) from None
    if not is_loopback(settings.bind) and not settings.hosts:
        raise SettingsError(
            f"{PREFIX}BIND is {settings.bind}, which other PCs may reach; name the addresses under which the page is "
            f"opened, for example {PREFIX}HOSTS=127.0.0.1:{settings.port},localhost:{settings.port}",
            code="BIND_NEEDS_HOSTS",
        )
    return settings
