"""What the owner of this PC may set; read once, in `__main__`, from `MAHE_WORKER_*` and `MAHE_JOIN`."""

import socket
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.common.host.machine import home

NAME_LENGTH_MAX = 64


def hostname() -> str:
    """This PC's name, as the master shows it."""
    return socket.gethostname()[:NAME_LENGTH_MAX] or "worker"


class WorkerSettings(BaseSettings):
    """Frozen; each field is documented in deploy/example.env and the user guide."""

    model_config = SettingsConfigDict(
        env_prefix="MAHE_WORKER_", frozen=True, extra="ignore", populate_by_name=True, env_ignore_empty=True
    )

    data: Path = Field(
        default_factory=lambda: home() / "worker", description="Folder of this PC's slots: keys, anchor, deltas"
    )
    join: SecretStr = Field(
        default=SecretStr(""),
        validation_alias=AliasChoices("MAHE_JOIN", "MAHE_WORKER_JOIN"),
        description="Join string from the master's page; needed once, then this PC has its own key",
    )
    join_file: Path | None = Field(default=None, description="File that holds a join string, if MAHE_JOIN is empty")
    join_wait_s: float = Field(default=120.0, ge=0.0, le=3600.0, description="How long to wait for JOIN_FILE, seconds")
    name: str = Field(
        default_factory=hostname, min_length=1, max_length=NAME_LENGTH_MAX, description="Name of this PC on the page"
    )
    threads: int = Field(default=0, ge=0, le=1024, description="Threads of the trainer; 0: all cores it may use")
    score: float = Field(
        default=0.0, ge=0.0, le=1e12, allow_inf_nan=False, description="Speed in samples/s to claim; 0: measure it"
    )
    log: Literal["text", "json"] = Field(default="text", description="Log lines for people or for machines")
