"""What the fields of messages may hold, and what all messages share."""

from typing import Annotated, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from services.common.protocol.limits import PARAMETERS_MAX, SENTENCE_MAX


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
FineMs = Annotated[float, Field(ge=0, le=2**53, allow_inf_nan=False)]  # of what may take less than one
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
