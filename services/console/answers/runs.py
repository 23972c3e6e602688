"""Runs, their rounds and checkpoints."""

from typing import Literal

from pydantic import BaseModel, Field

from services.common.protocol.spec import RunSpec
from services.console.answers.fields import Millis, NextCursor, ReasonSaid

Phase = Literal["IDLE", "RUNNING", "WAITING", "PAUSED", "STOPPED", "FAILED"]


class Evaluation(BaseModel):
    """A version measured on data held out."""

    version: int
    loss: float
    accuracy: float


class LeaseFacts(BaseModel):
    """One shard of an open round and who works on it."""

    worker: str
    shard: int
    samples: int
    k_steps: int
    batch: int
    state: str
    reason: str


class OpenRound(BaseModel):
    """A round that is not closed yet."""

    round: int
    phase: str
    reason: str = Field(description="What it waits for, as a sentence")
    reason_said: ReasonSaid
    accepted: int = Field(description="Deltas that are in")
    leases: list[LeaseFacts] = Field(description="Not all when there are very many")
    leases_total: int


class RunState(BaseModel):
    """The current run as it is now, or the last one."""

    id: str
    name: str
    spec: RunSpec
    phase: Phase
    reason: str
    reason_said: ReasonSaid
    finished: bool = Field(description="It ended by itself, not by the operator")
    version: int = Field(description="Rounds that are closed")
    reverted: int = Field(description="The version with which it went back to its best one; 0: it never diverged")
    lr_scale: float = Field(description="What learning rates are multiplied by since then")
    rounds_total: int
    created_at_ms: Millis
    n_parameters: int
    n_train: int = Field(description="Examples that it trains with")
    k_steps: int = Field(description="Local steps a round, as they are now")
    encoding: str
    rounds_in_flight: int
    rounds_per_minute: float | None
    sync_ms: float | None = Field(description="Median time of an exchange; null until it is measured")
    step_ms: float | None = Field(description="Median time of a local step; null until it is measured")
    rounds_open: list[OpenRound]
    last_eval: Evaluation | None
    best_eval: Evaluation | None
    model_path: str = Field(description="Where the best version is copied to, as it was asked for")
    model_file: str = Field(description="Where the copy lies, in full; empty while there is none")
    model_version: int | None = Field(description="The version that is in it")
    model_reason: str = Field(description="Why the last copy failed; empty when it did not")
    model_reason_said: ReasonSaid


class WaitingRun(BaseModel):
    """A run in the queue."""

    id: str
    name: str
    dataset: str
    rounds_total: int
    phase: Literal["QUEUED"]
    position: int = Field(description="1 is the next")
    reason: str = Field(description="What it waits for, as a sentence")
    reason_said: ReasonSaid
    created_at_ms: Millis


class RunEntry(BaseModel):
    """A run in the list of all runs."""

    id: str
    number: int
    spec: RunSpec
    phase: Phase | Literal["QUEUED"]
    position: int | None = Field(description="Its place in the queue, 1 is the next; null: it does not wait")
    reason: str
    reason_said: ReasonSaid
    finished: bool
    created_at_ms: Millis


class RunList(BaseModel):
    """Runs, newest first."""

    items: list[RunEntry]
    next_cursor: NextCursor


class RunName(BaseModel):
    """The run that is meant."""

    run: str


class RoundRow(BaseModel):
    """A closed round."""

    round: int
    workers: int = Field(description="Workers whose delta counts")
    train_loss: float | None
    eval_loss: float | None = Field(description="Null until, or when not, evaluated")
    eval_accuracy: float | None
    samples: int
    bytes: int = Field(description="Deltas, from workers to master")
    seconds: float


class RoundList(BaseModel):
    """Closed rounds in order."""

    items: list[RoundRow]
    next_cursor: NextCursor


class CheckpointFacts(BaseModel):
    """A version on the master's disk."""

    round: int
    best: bool = Field(description="It has the lowest evaluation loss")
    bytes: int
    sha256: str
    path: str = Field(description="Where it lies, on the master's machine")


class CheckpointList(BaseModel):
    """The newest checkpoints, and the best."""

    items: list[CheckpointFacts]
    next_cursor: NextCursor
