"""The wire is as golden_encodings.json has it: for our code, and for a reader written from the README alone."""

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from services.common.kernels import kernel_impl
from services.common.kernels.library import library, set_tier, usable_tiers
from services.common.learning import encodings
from services.common.learning.encodings import ENCODINGS
from services.common.learning.tests import golden
from services.common.protocol.encodings import Encoding

FILE = golden.read()
CASES = [pytest.param(case, id=f"{case['kind']} {case['n']}") for case in FILE["cases"]]
FILE_BYTES_MAX = 60_000


@pytest.fixture(params=["scalar", "auto"])
def tier(request: pytest.FixtureRequest) -> Iterator[str]:
    """Plain C, then the best tier of this CPU."""
    before = kernel_impl()
    set_tier(library(), request.param)
    yield request.param
    set_tier(library(), before)


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize("case", CASES)
def test_encode_and_decode_give_the_golden_bytes(case: dict[str, Any]) -> None:
    assert golden.case(case["kind"], case["n"]) == case


def test_the_file_has_every_case_and_stays_small() -> None:
    assert [(case["kind"], case["n"]) for case in FILE["cases"]] == [(k, n) for k in golden.KINDS for n in golden.SIZES]
    assert FILE["about"] == golden.ABOUT
    assert golden.FILE.stat().st_size < FILE_BYTES_MAX


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_is_left_over_goes_into_the_next_vector(encoding: Encoding) -> None:
    assert golden.chain(encoding) == FILE["chain"][encoding]


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_sum_of_squares_has_the_golden_bits(encoding: Encoding) -> None:
    assert golden.found(encoding) == FILE["stats"][encoding]


def read_values(encoding: Encoding, raw: bytes, n: int) -> bytes:
    """A reader after services/common/protocol/README.md, in plain Python: the values as little-endian float32.

    A code of 8 bits times a float32 is exact in Python's float64, so `struct` rounds the product once.
    """
    if encoding == "fp32":
        return raw
    if encoding == "bf16":
        return b"".join(b"\0\0" + raw[2 * i : 2 * i + 2] for i in range(n))
    kept = (n + 31) // 32 if encoding == "topk" else n
    blocks = (kept + 1023) // 1024
    places: tuple[int, ...] = tuple(range(n))
    if encoding == "topk":
        places, raw = struct.unpack_from(f"<{kept}I", raw), raw[4 * kept :]
    scales, raw = struct.unpack_from(f"<{blocks}f", raw), raw[4 * blocks :]
    if encoding == "int4":
        codes = tuple((raw[i // 2] >> 4 * (i % 2) & 15) - 8 for i in range(n))
    else:
        codes = struct.unpack(f"<{kept}b", raw)
    values = [0.0] * n
    for i, (place, code) in enumerate(zip(places, codes, strict=True)):
        values[place] = code * scales[i // 1024]
    return struct.pack(f"<{n}f", *values)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("case", CASES)
def test_another_reader_gets_the_golden_values(encoding: Encoding, case: dict[str, Any]) -> None:
    n = case["n"]
    encoded, decoded, _ = case[encoding]
    whole = case.get(f"whole {encoding}", encoded)
    if whole.startswith("xxh3:"):  # the file has only the digest: our bytes, whose digest that is
        residual = np.zeros(n, np.float32)  # not None: -0 + 0 is 0
        whole = encodings.encode(encoding, golden.values_of(case["kind"], n), residual).tobytes().hex()
    raw = bytes.fromhex(whole)
    assert golden.shown(raw) == encoded
    values = np.frombuffer(read_values(encoding, raw, n), np.float32)
    assert golden.shown(golden.bytes_of(values)) == decoded


def test_another_reader_would_notice() -> None:
    """The same bytes, one of them changed: other values."""
    for encoding in ENCODINGS:
        encoded = encodings.encode(encoding, golden.values_of("normal", 1025), None)
        before = read_values(encoding, encoded.tobytes(), 1025)
        encoded[-1] ^= 1
        assert read_values(encoding, encoded.tobytes(), 1025) != before


@pytest.mark.parametrize("encoding", golden.DOWN)
def test_replicas_are_equal_after_fifty_updates(encoding: Encoding) -> None:
    """On every tier of this CPU, whichever tier the master encoded with; `make emulated` does it on another CPU."""
    tiers, before = usable_tiers(library()), kernel_impl()
    digests, sent = set(), {}
    try:
        for tier in tiers:
            set_tier(library(), tier)
            sent[tier] = golden.sent_updates(encoding)
        for tier in tiers:
            set_tier(library(), tier)
            digests |= {golden.replica_digest(encoding, updates) for updates in sent.values()}
    finally:
        set_tier(library(), before)
    assert digests == {FILE["replicas"][encoding]}


def test_a_replica_that_misses_one_bit_has_another_digest() -> None:
    sent = golden.sent_updates("int8")
    sent[20][-1] ^= 1
    assert golden.replica_digest("int8", sent) != FILE["replicas"]["int8"]
