"""Every message between worker and master: frozen, validated, one class each.

Who sends it and why is in the class's docstring; the order of a conversation is in README.md beside this file.
ENROL, HELLO and REJECT are frozen for ever and ignore unknown fields, so that two versions can always tell each other
that they differ. Every other message refuses what it does not know.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from services.common.protocol.limits import (
    CHUNK_BYTES_MAX,
    PARAMETERS_MAX,
    RANGES_MAX,
    SENTENCE_MAX,
    WORKERS_MAX,
)
from services.common.protocol.spec import RunSpec, Spec

__all__ = ["RunSpec", "Spec"]


def _cut(text: object) -> object:
    return text[:SENTENCE_MAX] if isinstance(text, str) else text


WorkerId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
RunId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
PublicKey = Annotated[str, StringConstraints(min_length=40, max_length=40)]  # Z85
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]  # xxh3-128
LeaseId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9.-]{1,96}$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Sentence = Annotated[str, BeforeValidator(_cut)]  # longer ones are cut, never refused: they may quote what came in
Code = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{1,63}$")]
Count = Annotated[int, Field(ge=0, le=2**53)]
Ms = Annotated[int, Field(ge=0, le=2**53)]
Bytes = Annotated[int, Field(ge=0, le=PARAMETERS_MAX * 4)]
ChunkIndex = Annotated[int, Field(ge=0, le=2**20)]
Crc32 = Annotated[int, Field(ge=0, lt=2**32)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Range = tuple[Count, Count]


class Message(BaseModel):
    """What all messages share: `t` names the type; `payload` says whether a second frame comes with it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    payload: ClassVar[bool] = False


class TaskRef(Message):
    """Which piece of work a message is about. A duplicate has no effect, a late one is answered `stale`."""

    run: RunId
    round: Count
    base_version: Count
    shard: Count
    lease: LeaseId


class Held(Message):
    """A finished delta that the worker still holds, because no ROUND_CLOSED named it yet."""

    ref: TaskRef
    bytes: Bytes
    digest: Digest


class Enrol(Message):
    """W->M, the only message under a join key: the worker's own public key and the name its owner gave."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)
    t: Literal["ENROL"] = "ENROL"
    name: Name
    public_key: PublicKey
    proto_min: Count
    proto_max: Count
    app_version: Name


class Enrolled(Message):
    """M->W: the key is known from now on; reconnect with it."""

    t: Literal["ENROLLED"] = "ENROLLED"
    worker: WorkerId
    name: Name
    endpoints: list[str] = Field(max_length=16)
    beacon_key: PublicKey


class Hello(Message):
    """W->M: who I am, what I can do, what I still hold or work on. `score` is in samples/s of the micro-benchmark."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)
    t: Literal["HELLO"] = "HELLO"
    proto_min: Count
    proto_max: Count
    app_version: Name
    boot_id: Digest
    platform: Name
    cores: Annotated[int, Field(ge=1, le=4096)]
    threads: Annotated[int, Field(ge=1, le=4096)]
    memory_mib: Annotated[int, Field(ge=1, le=2**30)]
    score: Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
    holding: list[Held] = Field(default=[], max_length=8)
    working: TaskRef | None = None


class Welcome(Message):
    """M->W: joined. Timings and sizes for this session."""

    t: Literal["WELCOME"] = "WELCOME"
    term: Count
    proto: Count
    worker: WorkerId
    name: Name
    heartbeat_ms: Ms
    suspect_ms: Ms
    lost_ms: Ms
    chunk_bytes: Annotated[int, Field(ge=4096, le=CHUNK_BYTES_MAX)]
    window_chunks: Annotated[int, Field(ge=1, le=64)]


class Reject(Message):
    """M->W: not taken. `retry_after_ms` null means: do not come back without a person's doing."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)
    t: Literal["REJECT"] = "REJECT"
    code: Code
    text: Sentence
    retry_after_ms: Ms | None = None


Agent = Literal["idle", "pulling", "training", "uploading", "holding", "paused"]


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
    encoding: Literal["fp32"]
    fresh: bool = False  # the inner optimizer begins anew: nothing is carried over


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
    busy: bool = False


class Pull(Message):
    """W->M: the chunks of a snapshot that I want next. What is asked for is the credit."""

    t: Literal["PULL"] = "PULL"
    term: Count
    what: Literal["snapshot"] = "snapshot"
    run: RunId
    version: Count
    want: list[ChunkIndex] = Field(min_length=1, max_length=64)


class Chunk(Message):
    """M->W: one chunk of what was pulled. `digest` is of the whole, `crc32` of this payload."""

    payload: ClassVar[bool] = True
    t: Literal["CHUNK"] = "CHUNK"
    term: Count
    what: Literal["snapshot"] = "snapshot"
    run: RunId
    version: Count
    index: ChunkIndex
    count: ChunkIndex
    total_bytes: Bytes
    digest: Digest
    crc32: Crc32


class DeltaBegin(Message):
    """W->M: a delta is ready. Claimed `samples` are for the display; the weight is what was assigned."""

    t: Literal["DELTA_BEGIN"] = "DELTA_BEGIN"
    term: Count
    ref: TaskRef
    encoding: Literal["fp32"]
    bytes: Bytes
    chunks: Annotated[int, Field(ge=1, le=2**20)]
    chunk_bytes: Annotated[int, Field(ge=4096, le=CHUNK_BYTES_MAX)]
    digest: Digest
    samples: Count
    steps: Count
    correct: Count
    loss: Finite | None
    compute_ms: Ms


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
    """M->W: the round's checkpoint is durable; the accepted shards' deltas may be forgotten, the others are void."""

    t: Literal["ROUND_CLOSED"] = "ROUND_CLOSED"
    term: Count
    run: RunId
    round: Count
    version: Count
    digest: Digest
    accepted: list[Count] = Field(max_length=WORKERS_MAX)


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


class Bye(Message):
    """W->M: I leave, my work is handed back. M->W with code REMOVED: leave for good and stay parked."""

    t: Literal["BYE"] = "BYE"
    term: Count
    code: Code
    reason: Sentence


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
