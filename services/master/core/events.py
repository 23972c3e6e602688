"""What can happen to the coordinator. A message that only moves bytes (PULL, chunks, COMMIT) never gets here."""

from dataclasses import dataclass
from typing import Any

from services.common.protocol.messages import (
    Bye,
    DeltaBegin,
    Drain,
    Heartbeat,
    Hello,
    Mismatch,
    Progress,
    Reason,
    RunSpec,
    TaskAck,
    TaskRef,
    TaskRefuse,
)

WorkerMessage = Heartbeat | TaskAck | TaskRefuse | Progress | Mismatch | DeltaBegin | Drain | Bye


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True)
class WorkerJoined:
    """An enrolled worker said HELLO and its key and version were checked."""

    worker: str
    name: str
    hello: Hello


@dataclass(frozen=True)
class WorkerLeft:
    """The way to a worker is gone (no route). It may come back."""

    worker: str
    reason: Reason


@dataclass(frozen=True)
class WorkerHeard:
    """A frame of bulk data arrived: a sign of life and nothing else."""

    worker: str


@dataclass(frozen=True)
class WorkerSaid:
    """A control message of a joined worker."""

    worker: str
    message: WorkerMessage


@dataclass(frozen=True)
class DeltaStaged:
    """A delta arrived whole and was checked. `code` is empty when CRC, digest and length were right."""

    worker: str
    ref: TaskRef
    digest: str
    code: str
    text: str
    nonfinite: int = 0
    absmax: float = 0.0
    norm: float = 0.0


@dataclass(frozen=True)
class UploadStalled:
    """An admitted delta has a place, its worker is alive, and no byte of it came for a long time."""

    worker: str
    ref: TaskRef


@dataclass(frozen=True)
class CreateRun:
    """The operator asks for a run; the shell has checked the specification and made the id."""

    cmd_id: str
    run: str
    spec: RunSpec


@dataclass(frozen=True)
class PauseRun:
    """The operator asks to pause."""

    cmd_id: str
    run: str


@dataclass(frozen=True)
class ResumeRun:
    """The operator asks to go on."""

    cmd_id: str
    run: str


@dataclass(frozen=True)
class StopRun:
    """The operator asks to end the run for good."""

    cmd_id: str
    run: str


@dataclass(frozen=True)
class RemoveWorker:
    """The operator removes a worker: its key is revoked."""

    cmd_id: str
    worker: str


@dataclass(frozen=True)
class RunPrepared:
    """Data read, model built, version 0 durable."""

    run: str
    n_train: int
    n_parameters: int
    digest: str
    data: dict[str, Any]


@dataclass(frozen=True)
class RunUnusable:
    """Data or model cannot be used, or (`disk`) what the run begins with cannot be written."""

    run: str
    reason: str
    disk: bool = False


@dataclass(frozen=True)
class AssignmentSaved:
    """The assignment table of a round is durable."""

    run: str
    round: int
    attempt: int


@dataclass(frozen=True)
class AggregationDone:
    """The outer step is made; `digest` is of the new version, the update is what replicas make it with."""

    run: str
    round: int
    digest: str
    update_bytes: int
    update_digest: str


@dataclass(frozen=True)
class CheckpointDone:
    """The round's checkpoint is durable."""

    run: str
    round: int


@dataclass(frozen=True)
class Diverged:
    """The outer step would have made parameters that are not finite: there is no new version."""

    run: str
    round: int


@dataclass(frozen=True)
class Reverted:
    """The version with an earlier one's parameters is durable; its digest is that of the earlier one."""

    run: str
    round: int
    digest: str


@dataclass(frozen=True)
class WorkFailed:
    """Disk or aggregation failed; nothing durable was lost. `restored`: how often the run had been resumed by then."""

    run: str
    reason: str
    restored: int = 0


@dataclass(frozen=True)
class EvalDone:
    """The evaluator measured a version."""

    run: str
    version: int
    loss: float
    accuracy: float
    """0..1; where a number is learnt R^2, -1..1."""


@dataclass(frozen=True)
class EvalSkipped:
    """A newer version took this one's place before it was evaluated, or the evaluator failed, or found no number."""

    run: str
    version: int
    reason: str
    not_finite: bool = False  # it was evaluated, and its loss is infinite or not a number


@dataclass(frozen=True)
class ModelCopied:
    """A version is in the file `file` (in full) that the run's owner named; or it is not, for this reason."""

    run: str
    version: int
    file: str
    reason: str = ""


Event = (
    Tick
    | WorkerJoined
    | WorkerLeft
    | WorkerHeard
    | WorkerSaid
    | DeltaStaged
    | UploadStalled
    | CreateRun
    | PauseRun
    | ResumeRun
    | StopRun
    | RemoveWorker
    | RunPrepared
    | RunUnusable
    | AssignmentSaved
    | AggregationDone
    | CheckpointDone
    | Diverged
    | Reverted
    | WorkFailed
    | EvalDone
    | EvalSkipped
    | ModelCopied
)
