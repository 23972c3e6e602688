"""Whether the console lives, and everything is there that commands need."""

from typing import Literal

from pydantic import BaseModel

from services.console.answers.fields import Millis, ReasonSaid


class Health(BaseModel):
    """The process is alive."""

    status: Literal["alive"]


class LinkCheck(BaseModel):
    """Whether the master answers."""

    name: Literal["master_link"]
    ok: bool
    state: Literal["live", "stale", "connecting"]
    since_ms: Millis
    reason: str
    reason_said: ReasonSaid


class InitReadiness(BaseModel):
    """Whether INIT is done."""

    name: Literal["init"]
    ok: bool
    state: Literal["waiting", "running", "done"]
    reason: str


class Readiness(BaseModel):
    """Whether everything is there that commands need."""

    ready: bool
    checks: list[LinkCheck | InitReadiness]
