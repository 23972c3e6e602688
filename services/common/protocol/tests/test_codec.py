"""The codec: what goes in comes out; what does not fit is refused with a code and a sentence, and nothing else."""

import json
from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.errors import ProtocolError
from services.common.protocol import control, messages
from services.common.protocol.codec import (
    crc32,
    decode_from_console,
    decode_from_worker,
    decode_to_console,
    decode_to_worker,
    encode,
)
from services.common.protocol.limits import CHUNK_BYTES_MAX, HEADER_BYTES_MAX, SENTENCE_MAX
from services.common.protocol.messages import Bye, Chunk, Drain, Heartbeat, Task, TaskRef, because

DECODERS: list[tuple[Callable[..., Any], Any]] = [
    (decode_from_worker, messages.FromWorker),
    (decode_to_worker, messages.ToWorker),
    (decode_from_console, control.FromConsole),
    (decode_to_console, control.ToConsole),
]
REF = TaskRef(run="digits-1", round=3, base_version=2, shard=0, lease="digits-1.3.0.0.1")


def a_task(**changed: Any) -> Task:
    values: dict[str, Any] = {
        "term": 1,
        "ref": REF,
        "anchor_digest": "0" * 32,
        "n_parameters": 10,
        "data": {"name": "digits"},
        "data_seed": 7,
        "model": {"family": "softmax"},
        "inner": {"name": "sgd", "lr": 0.1},
        "ranges": [(0, 5), (9, 10)],
        "samples": 6,
        "k_steps": 3,
        "batch": 2,
        "delta_scale": 1.0,
        "encoding": "fp32",
        "rounds": 5,
    }
    return Task(**{**values, **changed})


def a_chunk(payload: bytes) -> Chunk:
    whole: dict[str, Any] = {"run": "r-1", "version": 0, "index": 0, "count": 1, "total_bytes": 4, "digest": "0" * 32}
    return Chunk(term=1, what="update", crc32=crc32(payload), **whole)


def decoded_or_refused(decode: Callable[..., Any], frames: list[bytes]) -> None:
    """Nothing but ProtocolError may come out, with a sentence that fits a message."""
    refused: ProtocolError | None = None
    try:
        decode(frames)
    except ProtocolError as error:
        refused = error
    assert refused is None or (refused.code and 0 < len(refused.sentence) <= SENTENCE_MAX)


def test_what_goes_in_comes_out() -> None:
    assert decode_to_worker(encode(a_task())) == (a_task(), None)
    message, payload = decode_to_worker(encode(a_chunk(b"abcd"), b"abcd"))
    assert (message, payload) == (a_chunk(b"abcd"), b"abcd")


@pytest.mark.parametrize(("decode", "union"), DECODERS)
def test_each_type_has_its_own_name_on_each_way(decode: Callable[..., Any], union: Any) -> None:
    names = [kind.model_fields["t"].default for kind in get_args(union)]
    assert len(set(names)) == len(names)
    for name in names:
        with pytest.raises(ProtocolError) as refused:
            decode([json.dumps({"t": name}).encode()])
        assert refused.value.code in ("BAD_FIELD", "FRAME_PAYLOAD"), "the type is known, its fields are missing"


def test_a_sentence_names_field_value_and_what_is_allowed() -> None:
    header = json.loads(Heartbeat(term=1).model_dump_json()) | {"term": -3}
    with pytest.raises(ProtocolError) as refused:
        decode_from_worker([json.dumps(header).encode()])
    assert refused.value.code == "BAD_FIELD"
    assert all(part in refused.value.sentence for part in ("term", "-3", "greater than or equal to 0", "correct it"))


def test_unknown_fields_are_refused_but_not_in_the_messages_that_tell_versions_apart() -> None:
    with pytest.raises(ProtocolError, match="Extra inputs"):
        decode_from_worker([b'{"t": "BYE", "term": 1, "code": "STOPPING", "reason": "", "colour": 1}'])
    reject, _ = decode_to_worker([b'{"t": "REJECT", "code": "PROTO_VERSION", "text": "", "from_the_future": [1]}'])
    assert reject.code == "PROTO_VERSION"


def test_a_reason_travels_with_its_code_and_an_older_worker_sends_its_text_alone() -> None:
    reason = because("TRAINER_DIES", why=because("TRAINER_KILLED"), times=3)
    drain, _ = decode_from_worker(encode(Drain(term=1, reason=reason.text, reason_said=reason)))
    assert drain.reason_said == reason
    older, _ = decode_from_worker([b'{"t": "DRAIN", "term": 1, "reason": "paused"}'])
    assert (older.reason, older.reason_said) == ("paused", None)


@pytest.mark.parametrize(
    "said",
    [
        b"3",
        b'{"code": 1, "values": {}}',
        b'{"code": "A", "values": {"n": [1]}}',
        b"[" * 30_000,
        b'{"code": "LEFT", "values": {"why": ' * 1_500 + b"1" + b"}}" * 1_500,
    ],
)
def test_a_reason_that_is_none_is_refused(said: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_from_worker([b'{"t": "DRAIN", "term": 1, "reason": "", "reason_said": ' + said + b"}"])


def test_payloads_come_exactly_where_they_belong_and_are_checked() -> None:
    with pytest.raises(ProtocolError) as refused:
        encode(Heartbeat(term=1), b"x")
    assert refused.value.code == "FRAME_PAYLOAD"
    with pytest.raises(ProtocolError) as refused:
        decode_to_worker(encode(a_chunk(b"abcd"), b"abcd")[:1])
    assert refused.value.code == "FRAME_PAYLOAD"
    with pytest.raises(ProtocolError) as refused:
        decode_to_worker([encode(a_chunk(b"abcd"), b"")[0], b"abce"])
    assert refused.value.code == "FRAME_CRC"
    big = bytes(CHUNK_BYTES_MAX + 1)
    with pytest.raises(ProtocolError) as refused:
        decode_to_worker([encode(a_chunk(big), b"")[0], big])
    assert refused.value.code == "FRAME_TOO_LARGE"


def test_a_header_over_its_limit_is_neither_sent_nor_read() -> None:
    with pytest.raises(ProtocolError) as refused:
        encode(a_task(model={"family": "x" * HEADER_BYTES_MAX}))
    assert refused.value.code == "FRAME_TOO_LARGE"
    with pytest.raises(ProtocolError) as refused:
        decode_to_worker([b" " * (HEADER_BYTES_MAX + 1)])
    assert refused.value.code == "FRAME_TOO_LARGE"


def test_sentences_are_cut_and_never_refused() -> None:
    assert len(Bye(term=1, code="STOPPING", reason="no " * 5000).reason) == SENTENCE_MAX


@settings(max_examples=500, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=4), st.sampled_from([decode for decode, _ in DECODERS]))
def test_any_bytes_are_decoded_or_refused(frames: list[bytes], decode: Callable[..., Any]) -> None:
    decoded_or_refused(decode, frames)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
_NAMES = [kind.model_fields["t"].default for _, union in DECODERS for kind in get_args(union)]
_FIELDS = sorted({field for _, union in DECODERS for kind in get_args(union) for field in kind.model_fields})


@settings(max_examples=1000, deadline=None)
@given(
    st.sampled_from(_NAMES),
    st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=8),
    st.sampled_from([decode for decode, _ in DECODERS]),
)
def test_any_fields_under_a_known_name_are_decoded_or_refused(
    name: str, fields: dict[str, Any], decode: Callable[..., Any]
) -> None:
    decoded_or_refused(decode, [json.dumps({**fields, "t": name}).encode()])
