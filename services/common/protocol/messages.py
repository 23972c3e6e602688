"""Every message between worker and master: frozen, validated, one class each.

Who sends it and why is in the class's docstring; the order of a conversation is in README.md beside this file. All but
ENROL, HELLO and REJECT (in `greetings`) refuse what they do not know.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from services.common.protocol.encodings import Encoding, down_encoding, encoded_bytes
from services.common.protocol.fields import (
    Bytes,
    ChunkIndex,
    Code,
    Count,
    Crc32,
    Digest,
    FineMs,
    Finite,
    LeaseId,
    Message,
    Ms,
    Name,
    Range,
    RunId,
    Sentence,
    TaskRef,
    WorkerId,
)
from services.common.protocol.greetings import Enrol, Enrolled, Held, Hello, Reject, Welcome
from services.common.protocol.limits import CHUNK_BYTES_MAX, PARAMETERS_MAX, RANGES_MAX, UNITS_MAX
from services.common.protocol.pacing import is_worth_hiding, steps_wanted
from services.common.protocol.reasons import Reason, because, heard, said, text_of, told
from services.common.protocol.spec import RunSpec, Spec

__all__ = [  # of other files of this floor; the cores see no other
    "Code",
    "Count",
    "Crc32",
    "Encoding",
    "Enrol",
    "Enrolled",
    "Held",
    "Hello",
    "Message",
    "Ms",
    "Name",
    "Reason",
    "Reject",
    "RunId",
    "RunSpec",
    "Sentence",
    "Spec",
    "TaskRef",
    "Welcome",
    "WorkerId",
    "because",
    "down_encoding",
    "encoded_bytes",
    "heard",
    "is_worth_hiding",
    "said",
    "steps_wanted",
    "text_of",
    "told",
]


Agent = Literal["idle", "pulling", "training", "waiting", "uploading", "holding", "paused"]


class Heartbeat(Message):
    """Both ways, every 2 s; any frame counts as one. Three lamps: link (this arrives), agent, progress (its age)."""

    t: Literal["HEARTBEAT"] = "HEARTBEAT"
    term: Count
    agent: Agent = "idle"
    owner: Sentence = ""
    step: Count = 0
    steps_total: Count = 0
    progress_age_ms: Ms = 0


class Task(Message):
    """M->W: one shard of one round. The data descriptor travels, not the data; `ranges` are stream positions."""

    t: Literal["TASK"] = "TASK"
    term: Count
    ref: TaskRef
    anchor_digest: Digest
    start_version: Count | None = None  # of which `anchor_digest` is; None: `base_version`. See `is_ahead`
    n_parameters: Annotated[int, Field(ge=1, le=PARAMETERS_MAX)]
    data: dict[str, Any]
    data_seed: Count
    model: dict[str, Any]
    inner: dict[str, Any]
    ranges: list[Range] = Field(min_length=1, max_length=RANGES_MAX)
    samples: Annotated[int, Field(ge=1, le=2**40)]
    k_steps: Annotated[int, Field(ge=1, le=1_000_000)]
    batch: Annotated[int, Field(ge=1, le=1_000_000)]
    delta_scale: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
    encoding: Encoding
    rounds: Annotated[int, Field(ge=1, le=1_000_000)]  # of the whole run, for the learning rate's schedule
    eager: bool = False  # there is a place for each delta of the round: the first window goes with DELTA_BEGIN
    fresh: bool = False  # the inner optimizer begins anew and there is no residual: nothing is carried over
    reverted: Count = 0  # the version with which the run went back: nothing from before it is carried over

    @property
    def lineage(self) -> str:
        """What residual and inner optimizer belong to: the run, and since it has gone back, what it is since then."""
        return f"{self.ref.run}@{self.reverted}" if self.reverted else self.ref.run

    @property
    def is_ahead(self) -> bool:
        """Overlapped: begin where the round before ended, or at `start_version`; ROUND_CLOSED tells the base later."""
        return self.start_version is not None and self.start_version < self.ref.base_version

    def based(self, digest: str) -> "Task":
        """The same task, now that its base is known by this digest."""
        return self.model_copy(update={"start_version": None, "anchor_digest": digest})


class TaskAck(Message):
    """W->M: taken, training starts."""

    t: Literal["TASK_ACK"] = "TASK_ACK"
    term: Count
    ref: TaskRef


class TaskRefuse(Message):
    """W->M: handed back, whole, with the reason. `busy`: not now (owner, other work); the work is not at fault."""

    t: Literal["TASK_REFUSE"] = "TASK_REFUSE"
    term: Count
    ref: TaskRef
    reason: Sentence
    reason_said: Reason | None = None
    busy: bool = False


What = Literal["snapshot", "update"]  # a version whole, or what makes it out of the version before


class Pull(Message):
    """W->M: the chunks of a version, or of an update to it, that I want next. What is asked for is the credit."""

    t: Literal["PULL"] = "PULL"
    term: Count
    what: What
    run: RunId
    version: Count
    want: list[ChunkIndex] = Field(min_length=1, max_length=64)


class Chunk(Message):
    """M->W: one chunk of what was pulled. `digest` is of the whole, `crc32` of this payload."""

    payload: ClassVar[bool] = True
    t: Literal["CHUNK"] = "CHUNK"
    term: Count
    what: What
    run: RunId
    version: Count
    index: ChunkIndex
    count: ChunkIndex
    total_bytes: Bytes
    digest: Digest
    crc32: Crc32


class DeltaBegin(Message):
    """W->M: a delta is ready. Claimed `samples` are for the display; the weight is what was assigned.

    The first `sent` chunks follow unasked; they count as credited.
    """

    t: Literal["DELTA_BEGIN"] = "DELTA_BEGIN"
    term: Count
    ref: TaskRef
    encoding: Encoding
    bytes: Bytes
    chunks: Annotated[int, Field(ge=1, le=2**20)]
    chunk_bytes: Annotated[int, Field(ge=4096, le=CHUNK_BYTES_MAX)]
    sent: Annotated[int, Field(ge=0, le=64)] = 0
    digest: Digest
    samples: Count
    steps: Count
    correct: Count
    loss: Finite | None
    compute_ms: FineMs  # of the local steps alone
    late_ms: FineMs | None = None  # of compute_ms: its last steps - steps // 2, which tell of a PC that got busy
    sync_ms: Ms | None = None  # from the end of the steps before to having the version that they went into


class Credit(Message):
    """M->W: send these chunks now. Empty `want` with `wait_ms`: all upload places are taken, keep the delta."""

    t: Literal["CREDIT"] = "CREDIT"
    term: Count
    ref: TaskRef
    want: list[ChunkIndex] = Field(max_length=64)
    wait_ms: Ms = 0


class DeltaChunk(Message):
    """W->M: one chunk of the delta, at offset index x chunk_bytes."""

    payload: ClassVar[bool] = True
    t: Literal["DELTA_CHUNK"] = "DELTA_CHUNK"
    term: Count
    ref: TaskRef
    index: ChunkIndex
    crc32: Crc32


class DeltaCommit(Message):
    """W->M: all chunks are sent; check the whole against this digest."""

    t: Literal["DELTA_COMMIT"] = "DELTA_COMMIT"
    term: Count
    ref: TaskRef
    digest: Digest


class Update(Message):
    """M->W: what makes `version` out of the version before can be pulled. It counts only from ROUND_CLOSED on.

    `pushed`: its first window follows unasked, as if it had been pulled.
    """

    t: Literal["UPDATE"] = "UPDATE"
    term: Count
    run: RunId
    version: Count
    bytes: Bytes
    digest: Digest
    pushed: bool = False


class Mismatch(Message):
    """W->M: with the updates my replica has another digest than the task says; I pull the whole version instead."""

    t: Literal["MISMATCH"] = "MISMATCH"
    term: Count
    ref: TaskRef
    reason: Sentence


AckStatus = Literal["accepted", "duplicate", "stale", "refused", "closed"]


class Ack(Message):
    """M->W: the verdict on a delta. Only `stale`, `refused` and `closed` let the worker forget it: not `accepted`."""

    t: Literal["ACK"] = "ACK"
    term: Count
    ref: TaskRef
    status: AckStatus
    code: Code
    text: Sentence


class Progress(Message):
    """W->M: how far the local steps are; droppable, at most one a second."""

    t: Literal["PROGRESS"] = "PROGRESS"
    term: Count
    ref: TaskRef
    step: Count
    steps_total: Count
    loss: Finite | None
    samples: Count


class RoundClosed(Message):
    """M->W: the round's checkpoint is durable. Deltas for it may be forgotten: those of `counted` leases are in it."""

    t: Literal["ROUND_CLOSED"] = "ROUND_CLOSED"
    term: Count
    run: RunId
    round: Count
    version: Count
    digest: Digest
    counted: list[LeaseId] = Field(max_length=UNITS_MAX)  # of this worker


class Cancel(Message):
    """M->W: stop this piece of work and forget it."""

    t: Literal["CANCEL"] = "CANCEL"
    term: Count
    ref: TaskRef
    reason: Sentence


class Rejoin(Message):
    """M->W: this master does not know your session (it restarted, or you were away). Say HELLO; keep what you hold."""

    t: Literal["REJOIN"] = "REJOIN"
    term: Count
    reason: Sentence


class Drain(Message):
    """W->M: send me no new work (owner's pause). M->W: I am stopping for a while; keep what you hold and reconnect."""

    t: Literal["DRAIN"] = "DRAIN"
    term: Count
    reason: Sentence
    reason_said: Reason | None = None


class Bye(Message):
    """W->M: I leave, my work is handed back. M->W with code REMOVED: leave for good and stay parked."""

    t: Literal["BYE"] = "BYE"
    term: Count
    code: Code
    reason: Sentence
    reason_said: Reason | None = None


class Error(Message):
    """Both ways: a message was refused; the sentence names field, value, allowed and next step."""

    t: Literal["ERROR"] = "ERROR"
    code: Code
    text: Sentence


FromWorker = (
    Enrol
    | Hello
    | Heartbeat
    | TaskAck
    | TaskRefuse
    | Pull
    | DeltaBegin
    | DeltaChunk
    | DeltaCommit
    | Progress
    | Mismatch
    | Drain
    | Bye
    | Error
)
ToWorker = (
    Enrolled
    | Welcome
    | Reject
    | Heartbeat
    | Task
    | Update
    | Chunk
    | Credit
    | Ack
    | RoundClosed
    | Cancel
    | Rejoin
    | Drain
    | Bye
    | Error
)
