"""How a worker comes in: enrolled once under a join key, joined each time under its own. Part of `messages`.

ENROL, HELLO and REJECT are frozen for ever and ignore unknown fields, so that two versions can always tell each other
that they differ.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from services.common.protocol.fields import (
    Bytes,
    Code,
    Count,
    Digest,
    Message,
    Ms,
    Name,
    PublicKey,
    Sentence,
    TaskRef,
    WorkerId,
)
from services.common.protocol.limits import CHUNK_BYTES_MAX


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
    queued: TaskRef | None = None  # comes after that


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
