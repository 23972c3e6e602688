"""What the master tells, as the API describes it: the names that a program may rely on.

For the description only. Answers go out as the master gave them, whole and unchecked, so a master that tells more (or
is older) breaks no page; that they are as described here is shown against a real master (services/tests/contract).
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from services.common.protocol.spec import RunSpec

Phase = Literal["IDLE", "RUNNING", "WAITING", "PAUSED", "STOPPED", "FAILED"]
Millis = int
"""Wall clock in ms since the Unix epoch, for display only."""
NextCursor = Annotated[str | None, Field(description="`cursor` of the next page; null: this is the last one")]


class LinkFacts(BaseModel):
    """How fresh everything is that comes from the master."""

    state: Literal["live", "stale", "connecting"]
    since_ms: Millis
    reason: str = Field(description="Why it is not live; empty when it is")


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


class WaitingRun(BaseModel):
    """A run in the queue."""

    id: str
    name: str
    dataset: str
    rounds_total: int
    phase: Literal["QUEUED"]
    position: int = Field(description="1 is the next")
    reason: str = Field(description="What it waits for, as a sentence")
    created_at_ms: Millis


class RunEntry(BaseModel):
    """A run in the list of all runs."""

    id: str
    number: int
    spec: RunSpec
    phase: Phase | Literal["QUEUED"]
    position: int | None = Field(description="Its place in the queue, 1 is the next; null: it does not wait")
    reason: str
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


class WorkerFacts(BaseModel):
    """A PC that works, or could. `reason` says why it does not."""

    id: str
    name: str = Field(description="As its owner calls it: text to show, nothing to rely on")
    link: Literal["LINKED", "SUSPECT", "DETACHED", "LOST"]
    agent: Literal["idle", "pulling", "training", "waiting", "uploading", "holding", "paused"]
    owner: str = Field(description="What its owner's policy says")
    reason: str
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


class DatasetCard(BaseModel):
    """A data set, with values that work."""

    name: str = Field(description="Goes into a run's `dataset`")
    title: str
    description: str
    dimensions: int
    classes: int
    train: int = Field(description="Examples to train with")
    test: int = Field(description="Examples held out")
    recommended: dict[str, Any] = Field(description="Fields of a run's specification")


class DatasetList(BaseModel):
    """The catalog."""

    items: list[DatasetCard]
    next_cursor: NextCursor


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


class Health(BaseModel):
    """The process is alive."""

    status: Literal["alive"]


class FolderFacts(BaseModel):
    """What lies in a folder on the master's PC."""

    path: str
    parent: str | None = Field(description="Null where looking ends")
    folders: list[str] = Field(description="Names of the folders in it")
    models: list[str] = Field(description="Names of the models in it")
    more: bool = Field(description="Not all are shown")
    roots: list[str] = Field(description="Where looking may begin")


class LinkCheck(BaseModel):
    """Whether the master answers."""

    name: Literal["master_link"]
    ok: bool
    state: Literal["live", "stale", "connecting"]
    since_ms: Millis
    reason: str


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
