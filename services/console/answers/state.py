"""Everything at one moment: the master, the link to it, INIT, and what the other topics have."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from services.console.answers.fields import Millis, ReasonSaid
from services.console.answers.runs import RoundRow, RunState, WaitingRun
from services.console.answers.workers import WorkerFacts


class LinkFacts(BaseModel):
    """How fresh everything is that comes from the master."""

    state: Literal["live", "stale", "connecting"]
    since_ms: Millis
    reason: str = Field(description="Why it is not live; empty when it is")
    reason_said: ReasonSaid


class MasterFacts(BaseModel):
    """The master that answers."""

    version: str
    endpoints: list[str] = Field(description="Where workers find it")
    started_at_ms: Millis
    kernel: str = Field(description="The numeric kernels in use")


class RefusedFacts(BaseModel):
    """Who was not let in since the master started."""

    count: int
    last: str


class InitCheck(BaseModel):
    """What one check of INIT found."""

    code: str
    level: Literal["ok", "warn", "error"]
    values: dict[str, Any] = Field(description="By name, to say it in other words than `text`")
    text: str


class InitFacts(BaseModel):
    """INIT: the master's checks of itself, once in a term."""

    state: Literal["waiting", "running", "done"]
    checks: list[InitCheck] = Field(description="Those that are made")


class Snapshot(BaseModel):
    """Everything that the master tells, as of one event."""

    term: int
    master: MasterFacts
    init: InitFacts
    refused: RefusedFacts
    run: RunState | None
    queue: list[WaitingRun] = Field(description="Runs that wait, the next one first")
    workers: list[WorkerFacts]
    history: list[RoundRow]


class LogLine(BaseModel):
    """One line of the log."""

    id: str
    time_ms: Millis
    kind: str
    text: str


class State(BaseModel):
    """The state as of event `id`."""

    link: LinkFacts
    id: str | None = Field(description="`term:seq` of the newest event in it: go on with `/events?after=<id>`")
    term: int
    seq: int
    snapshot: Snapshot | None = Field(description="Null until the master has answered once")
    recent: list[LogLine]
