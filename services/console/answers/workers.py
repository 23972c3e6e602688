"""PCs that work, and the strings by which they join."""

from typing import Literal

from pydantic import BaseModel, Field

from services.console.answers.fields import Millis, NextCursor, ReasonSaid


class WorkerFacts(BaseModel):
    """A PC that works, or could. `reason` says why it does not."""

    id: str
    name: str = Field(description="As its owner calls it: text to show, nothing to rely on")
    link: Literal["LINKED", "SUSPECT", "DETACHED", "LOST"]
    agent: Literal["idle", "pulling", "training", "waiting", "uploading", "holding", "paused"]
    owner: str = Field(description="What its owner's policy says")
    reason: str
    reason_said: ReasonSaid
    quarantined: bool
    cores: int
    threads: int
    memory_mib: int
    platform: str
    samples_per_s: float
    measured: bool = Field(description="Measured in training; else by the micro-benchmark at joining")
    link_bytes_per_s: float | None
    share: float | None = Field(description="Its part of the newest open round's samples, 0 to 1")
    k_steps: int | None
    batch: int | None
    step: int
    steps_total: int
    progress_age_ms: int | None
    last_heard_ms_ago: int
    accepted_rounds: int
    samples_total: int
    clipped_rounds: int
    mismatches: int


class WorkerList(BaseModel):
    """All workers."""

    items: list[WorkerFacts]
    next_cursor: NextCursor


class WorkerName(BaseModel):
    """The worker that is meant."""

    worker: str


class WorkerNames(BaseModel):
    """The workers that are meant."""

    workers: list[str]


class JoinStringFacts(BaseModel):
    """A join string that stands, without its secret."""

    id: int
    label: str
    local: bool = Field(description="Made by the master for workers on its own PC")
    created_at_ms: Millis
    expires_at_ms: Millis | None
    uses_left: int | None
    state: Literal["valid", "expired", "used up"]


class JoinStringList(BaseModel):
    """All that stand."""

    items: list[JoinStringFacts]
    next_cursor: NextCursor


class JoinStringMade(BaseModel):
    """A new join string: shown whole this once."""

    id: int
    join_string: str
    endpoints: list[str]
    expires_at_ms: Millis
    uses: int


class JoinStringNumber(BaseModel):
    """The join string that is meant."""

    id: int
