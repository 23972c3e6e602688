"""What the coordinator asks of the shell, as data. The shell has one function for each."""

from dataclasses import dataclass, field
from typing import Any

from services.common.protocol.messages import DeltaBegin, Encoding, Reason, RunSpec, TaskRef, ToWorker


@dataclass(frozen=True)
class Send:
    """Put a message into a worker's outbox."""

    worker: str
    message: ToWorker


@dataclass(frozen=True)
class PrepareRun:
    """Make it durable that the run has begun, read the data, build the model, write version 0.

    Answer RunPrepared or RunUnusable.
    """

    run: str
    spec: RunSpec


@dataclass(frozen=True)
class RestoreRun:
    """Read this version again: what was computed since the last durable one is void."""

    run: str
    spec: RunSpec
    version: int
    restored: int  # WorkFailed of before carries a lower number


@dataclass(frozen=True)
class SaveRun:
    """Make a run's phase durable."""

    run: str
    phase: str
    reason: Reason
    finished: bool


@dataclass(frozen=True)
class SaveAssignment:
    """Make a round's assignment table durable; answer AssignmentSaved."""

    run: str
    round: int
    attempt: int
    table: dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """Take this delta in when a place is free: CREDIT, chunks, COMMIT, check; answer DeltaStaged."""

    worker: str
    begin: DeltaBegin


@dataclass(frozen=True)
class Fold:
    """Add a staged delta to the round's sum, or keep it: weight as a fraction of the samples assigned, clip, bound B.

    A clip of None is known only when the round closes: `Aggregate` has it.

    The digest says which one was judged: a worker may have sent another since.
    """

    ref: TaskRef
    digest: str
    encoding: Encoding
    weight: float
    clip: float | None
    bound: float


@dataclass(frozen=True)
class DropStaged:
    """Forget this delta, which was staged and is not wanted."""

    ref: TaskRef
    digest: str


@dataclass(frozen=True)
class DropRound:
    """Forget the accumulator and all that is staged for a round."""

    run: str
    round: int


@dataclass(frozen=True)
class Aggregate:
    """Divide by the accepted weight and make the outer step; answer AggregationDone or Diverged.

    `clips`, by shard, are those that were not known before.
    """

    run: str
    round: int
    encoding: Encoding  # of the round's deltas
    weight: float
    clips: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class WriteCheckpoint:
    """Write the new version with this meta, durably; answer CheckpointDone."""

    run: str
    round: int
    meta: dict[str, Any]


@dataclass(frozen=True)
class Revert:
    """Write this version with the parameters of `to_version`, and nothing else of the past; answer Reverted.

    Outer optimizer and residual begin anew; the meta gets the digest. Workers pull the version whole.
    """

    run: str
    round: int
    to_version: int
    meta: dict[str, Any]


@dataclass(frozen=True)
class SaveRound:
    """The round's row, after its checkpoint is durable (a lost row is repaired from the checkpoint's meta)."""

    run: str
    row: dict[str, Any]


@dataclass(frozen=True)
class Evaluate:
    """Measure this version when the evaluator is free; answer EvalDone or EvalSkipped."""

    run: str
    version: int


@dataclass(frozen=True)
class MarkBest:
    """Keep this version's checkpoint: it is the best so far."""

    run: str
    version: int


@dataclass(frozen=True)
class CopyModel:
    """Copy this version's checkpoint to the path of the specification, when there is time; answer ModelCopied."""

    run: str
    version: int
    path: str


@dataclass(frozen=True)
class ForgetSession:
    """A worker is LOST: its uploads are void, and its next message is answered REJOIN."""

    worker: str


@dataclass(frozen=True)
class RevokeWorker:
    """Delete a worker's key and drop its session."""

    worker: str


@dataclass(frozen=True)
class Answer:
    """Reply to an operator's command."""

    cmd_id: str
    ok: bool
    code: str
    text: str
    result: dict[str, Any]


@dataclass(frozen=True)
class Report:
    """Something for the log, the page and the history. An empty text shows on the page only."""

    kind: str
    text: str
    data: dict[str, Any]


Command = (
    Send
    | PrepareRun
    | RestoreRun
    | SaveRun
    | SaveAssignment
    | Stage
    | Fold
    | DropStaged
    | DropRound
    | Aggregate
    | WriteCheckpoint
    | Revert
    | SaveRound
    | Evaluate
    | MarkBest
    | CopyModel
    | ForgetSession
    | RevokeWorker
    | Answer
    | Report
)
