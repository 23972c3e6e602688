"""Frames <-> messages. Frame one is the JSON header, frame two (only where the type says so) one raw payload.

Refuses before it trusts: number of frames, sizes, type, every field, CRC. Knows bytes, not sockets.
"""

import json
import zlib
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from services.common.errors import ProtocolError, quoted
from services.common.protocol import control, messages
from services.common.protocol.limits import CHUNK_BYTES_MAX, HEADER_BYTES_MAX
from services.common.protocol.messages import Message

Buffer: TypeAlias = bytes | bytearray | memoryview

_FROM_WORKER: TypeAdapter[Any] = TypeAdapter(Annotated[messages.FromWorker, Field(discriminator="t")])
_TO_WORKER: TypeAdapter[Any] = TypeAdapter(Annotated[messages.ToWorker, Field(discriminator="t")])
_FROM_CONSOLE: TypeAdapter[Any] = TypeAdapter(Annotated[control.FromConsole, Field(discriminator="t")])
_TO_CONSOLE: TypeAdapter[Any] = TypeAdapter(Annotated[control.ToConsole, Field(discriminator="t")])

_COMMAND_ID: TypeAdapter[str] = TypeAdapter(control.CommandId)


def encode(message: Message, payload: Buffer | None = None) -> list[Buffer]:
    """One or two frames. The payload is not copied: it must be an immutable snapshot until it is sent.

    Raises ProtocolError when the header is over its limit or the payload does not fit the type.
    """
    header = message.model_dump_json().encode()
    if len(header) > HEADER_BYTES_MAX:
        raise ProtocolError(
            f"header of {type(message).__name__} is {len(header)} bytes, allowed are {HEADER_BYTES_MAX}; send parts",
            code="FRAME_TOO_LARGE",
        )
    if type(message).payload != (payload is not None):
        expected = "one payload" if type(message).payload else "no payload"
        raise ProtocolError(f"{type(message).__name__} takes {expected}", code="FRAME_PAYLOAD")
    return [header] if payload is None else [header, payload]


def crc32(payload: Buffer) -> int:
    """CRC-32 of one payload (zlib, RFC 1952 section 8)."""
    return zlib.crc32(payload)


def decode_from_worker(frames: Sequence[Buffer]) -> tuple[Any, Buffer | None]:
    """(message, payload) of a worker's frames at the master; raises ProtocolError."""
    return _decode(_FROM_WORKER, frames)


def decode_to_worker(frames: Sequence[Buffer]) -> tuple[Any, Buffer | None]:
    """(message, payload) of the master's frames at a worker; raises ProtocolError."""
    return _decode(_TO_WORKER, frames)


def decode_from_console(frames: Sequence[Buffer]) -> tuple[Any, Buffer | None]:
    """(message, payload) of a console's frames at the master; raises ProtocolError."""
    return _decode(_FROM_CONSOLE, frames)


def command_id_of(frames: Sequence[Buffer]) -> str | None:
    """The `cmd_id` in frames that were refused, so that whoever waits for that command hears of it; None: no such."""
    try:
        return _COMMAND_ID.validate_python(json.loads(bytes(frames[0])[:HEADER_BYTES_MAX])["cmd_id"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def decode_to_console(frames: Sequence[Buffer]) -> tuple[Any, Buffer | None]:
    """(message, payload) of the master's frames at the console; raises ProtocolError."""
    return _decode(_TO_CONSOLE, frames)


def _decode(adapter: TypeAdapter[Any], frames: Sequence[Buffer]) -> tuple[Any, Buffer | None]:
    if not 1 <= len(frames) <= 2:
        raise ProtocolError(f"message of {len(frames)} frames, allowed are 1 or 2", code="FRAME_COUNT")
    header = bytes(frames[0])
    if len(header) > HEADER_BYTES_MAX:
        raise ProtocolError(
            f"header of {len(header)} bytes, allowed are {HEADER_BYTES_MAX}; use a newer MAHE on both sides",
            code="FRAME_TOO_LARGE",
        )
    try:
        message = adapter.validate_json(header)
    except ValidationError as error:
        raise refusal(error) from None
    payload = frames[1] if len(frames) == 2 else None
    _check_payload(message, payload)
    return message, payload


def _check_payload(message: Any, payload: Buffer | None) -> None:
    if type(message).payload != (payload is not None):
        expected = "one payload frame" if type(message).payload else "no payload frame"
        raise ProtocolError(f"{message.t} must come with {expected}", code="FRAME_PAYLOAD")
    if payload is None:
        return
    if len(payload) > CHUNK_BYTES_MAX:
        raise ProtocolError(
            f"payload of {len(payload)} bytes in {message.t}, allowed are {CHUNK_BYTES_MAX}", code="FRAME_TOO_LARGE"
        )
    expected_crc = getattr(message, "crc32", None)
    if expected_crc is not None and crc32(payload) != expected_crc:
        raise ProtocolError(
            f"CRC of the payload of {message.t} is {crc32(payload):08x}, the header says {expected_crc:08x}; resend",
            code="FRAME_CRC",
        )


def refusal(error: ValidationError, *, code: str = "BAD_FIELD") -> ProtocolError:
    """The first fault of a validation as one sentence: field, value, what is allowed, next step."""
    first = error.errors(include_url=False)[0]
    path = [str(part) for part in first["loc"]]
    if first["type"] == "json_invalid":
        return ProtocolError(f"the header is not JSON: {first['msg']}; is the other side MAHE?", code="HEADER_NOT_JSON")
    if first["type"].startswith("union_tag"):
        return ProtocolError(
            f"unknown message type: {first['msg'][:200]}; use the same MAHE on both sides", code="UNKNOWN_TYPE"
        )
    field = ".".join(path)[:80] or "message"
    return ProtocolError(
        f"field {field} is {quoted(first['input'])}: {first['msg']}; correct it and send it again", code=code
    )
