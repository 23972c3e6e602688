"""What the person who starts the master may set; read once, in `__main__`, from `MAHE_MASTER_*`."""

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.common.errors import ProtocolError, SettingsError
from services.common.host.machine import home
from services.common.protocol.join_string import check_endpoint
from services.common.protocol.limits import ENDPOINTS_MAX, PORT_CONTROL, PORT_WORKERS


class MasterSettings(BaseSettings):
    """Frozen; each field is documented in deploy/example.env and the user guide."""

    model_config = SettingsConfigDict(env_prefix="MAHE_MASTER_", frozen=True, extra="ignore", env_ignore_empty=True)

    data: Path = Field(default_factory=lambda: home() / "master", description="Folder of keys, runs and checkpoints")
    bind: str = Field(
        default="0.0.0.0",  # noqa: S104 - other PCs must reach it; CURVE and ZAP guard it
        description="Address that workers connect to on this PC",
    )
    port: int = Field(default=PORT_WORKERS, ge=0, le=65535, description="TCP port for workers; 0 takes a free one")
    control_bind: str = Field(default="127.0.0.1", description="Address that the console connects to")
    control_port: int = Field(default=PORT_CONTROL, ge=0, le=65535, description="TCP port for the console; 0: any")
    advertise: str = Field(
        default="",
        validation_alias="MAHE_ADVERTISE",
        description="Hosts or host:port, by commas, under which other PCs reach this one; goes into join strings",
    )
    local_host: str = Field(
        default="127.0.0.1", description="Host under which workers of this PC reach this master; for their join file"
    )
    models_below: Path | None = Field(
        default=None, description="Folder below which a run's model_path must lie; empty: anywhere on this PC"
    )
    journal: Path | None = Field(
        default=None, description="File for all that the coordinator is told, for `mahe replay`; empty: none"
    )
    log: Literal["text", "json"] = Field(default="text", description="Log lines for people or for machines")

    def endpoints(self, port: int) -> list[str]:
        """The advertised endpoints for the port really bound. Raises SettingsError for one that is none or too many."""
        named = [one.strip() for one in self.advertise.split(",") if one.strip()]
        given = [f"tcp://{one}" if _has_port(one) else f"tcp://{_bracketed(one)}:{port}" for one in named]
        if len(given) > ENDPOINTS_MAX:
            raise SettingsError(f"MAHE_ADVERTISE names {len(given)} addresses, allowed are {ENDPOINTS_MAX}; name fewer")
        try:
            return [check_endpoint(one) for one in given]
        except ProtocolError as error:
            raise SettingsError(f"MAHE_ADVERTISE: {error.sentence}", code=error.code) from None


def _has_port(host: str) -> bool:
    return "]:" in host or (host.count(":") == 1)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
