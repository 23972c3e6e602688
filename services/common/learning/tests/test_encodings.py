"""Encodings: nothing is lost but what the residual holds, ranges are parts of the whole, and bad bytes are named."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from services.common.kernels import Threads, stats
from services.common.learning import encodings
from services.common.learning.encoded_layout import cut
from services.common.learning.encodings import BLOCK, ENCODINGS, HUGE, RANGE
from services.common.learning.parameters import Floats
from services.common.protocol.encodings import Encoding, topk_count

SIZES = [*range(71), *range(1023, 1027), 4097, 33 * 1024 + 1]
CODE_MAX = {"int8": 127, "int4": 7, "topk": 127}
SLACK = 0.5 + 2.0**-15  # of a scale: the header's bound for one entry
SUBNORMAL_MAX = 2.0**-126
BAD_ENTRIES = [np.inf, -np.inf, np.nan, HUGE, -(2.0**127)]


def normal(random: np.random.Generator, n: int) -> Floats:
    return random.normal(size=n).astype(np.float32)


def every_exponent(random: np.random.Generator, n: int) -> Floats:
    """Uniform in the exponent, far below HUGE; with zeros of both signs and subnormals."""
    values = (random.uniform(-1, 1, n) * np.exp2(random.integers(-148, 100, n))).astype(np.float32)
    values[random.random(n) < 0.1] = -0.0
    return values


def tied(random: np.random.Generator, n: int) -> Floats:
    return random.choice(np.array([-1, 1, 0.5, -0.5, 0, 127, 7, 3.5], np.float32), n)


DRAWS = [normal, every_exponent, tied]
Draw = Callable[[np.random.Generator, int], Floats]


def same(got: Floats, expected: Floats) -> bool:
    return np.array_equal(got.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_arrives_and_what_is_left_over_are_all_of_it(encoding: Encoding, draw: Draw) -> None:
    for n in SIZES:
        random = np.random.default_rng(n)
        values, residual = draw(random, n), draw(random, n) * np.float32(0.25)
        a, before = values + residual, values.copy()
        encoded = encodings.encode(encoding, values, residual)
        assert encoded.dtype == np.uint8 and encoded.size == encodings.encoded_bytes(encoding, n)
        assert encodings.check(encoding, encoded, n) == ""
        assert same(values, before)
        decoded = encodings.decode(encoding, encoded, n)
        # In float64 the sum of two float32 is exact wherever both matter; Fraction says it for the smaller vectors.
        assert np.array_equal(decoded.astype(np.float64) + residual, a.astype(np.float64))
        if n <= 70:
            for i in range(n):
                assert Fraction(float(decoded[i])) + Fraction(float(residual[i])) == Fraction(float(a[i]))
        assert same(encodings.decode(encoding, encodings.encode(encoding, a, None), n), decoded)


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_error_stays_within_its_bound(encoding: Encoding, draw: Draw) -> None:
    for n in SIZES[1:]:
        values = draw(np.random.default_rng(n + 1), n)
        encoded = encodings.encode(encoding, values, None)
        error = np.abs(encodings.decode(encoding, encoded, n).astype(np.float64) - values)
        magnitude = np.abs(values.astype(np.float64))
        if encoding == "fp32":
            assert not error.any()
        elif encoding == "bf16":
            assert (error <= np.maximum(magnitude * 2.0**-8, 2.0**-134)).all()
        else:
            parts = cut(encoding, encoded, n)
            places = parts.places if encoding == "topk" else np.arange(n)
            kept = magnitude[places]
            absmax = np.maximum.reduceat(kept, np.arange(0, kept.size, BLOCK))
            bound = np.where(absmax < 2.0**-100, absmax, absmax / CODE_MAX[encoding] * SLACK * (1 + 2.0**-23))
            assert (error[places] <= np.repeat(bound, BLOCK)[: kept.size]).all()
            assert encoding != "topk" or np.array_equal(np.delete(error, places), np.delete(magnitude, places))


def test_topk_keeps_the_largest() -> None:
    for n in SIZES[1:]:
        values = normal(np.random.default_rng(n), n)
        parts = cut("topk", encodings.encode("topk", values, None), n)
        assert parts.places.size == topk_count(n) == max(1, -(-n // 32))
        smallest = np.abs(values[parts.places]).min()
        assert np.delete(np.abs(values), parts.places).max(initial=0.0) <= smallest


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_residual_is_sent_in_the_end(encoding: Encoding) -> None:
    """After many rounds of one vector the sum of what arrived is the sum of what was sent, up to one residual."""
    values, residual, arrived = normal(np.random.default_rng(1), 2000), np.zeros(2000, np.float32), np.zeros(2000)
    for _ in range(200):
        arrived += encodings.decode(encoding, encodings.encode(encoding, values, residual), 2000)
    np.testing.assert_allclose(arrived + residual, 200 * values.astype(np.float64), rtol=1e-4, atol=1e-4)
    assert np.abs(residual).max() < 60 * np.abs(values).max()
    if encoding != "fp32":
        forgotten = encodings.decode(encoding, encodings.encode(encoding, values, None), 2000) * 200.0
        assert np.abs(forgotten - 200.0 * values).sum() > np.abs(residual).sum()


@pytest.mark.parametrize("bad", BAD_ENTRIES)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_bad_entry_is_named_and_never_stays(encoding: Encoding, bad: float) -> None:
    for n, count in ((1, 1), (70, 1), (2500, 1), (2500, 200), (2500, 2500)):
        random = np.random.default_rng(n + count)
        values, residual = normal(random, n), normal(random, n)
        places = random.choice(n, count, replace=False)
        values[places] = bad
        plain = encodings.encode(encoding, values, None)
        encoded = encodings.encode(encoding, values, residual)
        for sent in (plain, encoded):
            assert encodings.check(encoding, sent, n)
        assert (np.abs(residual) < HUGE).all()
        assert not residual[places].any()
        after = encodings.encode(encoding, normal(random, n), residual)
        assert encodings.check(encoding, after, n) == ""


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_poisoned_residual_heals(encoding: Encoding) -> None:
    values, residual = normal(np.random.default_rng(2), 2500), np.zeros(2500, np.float32)
    residual[[3, 2000]] = np.nan, np.inf
    assert encodings.check(encoding, encodings.encode(encoding, values, residual), 2500)
    assert np.isfinite(residual).all()
    assert encodings.check(encoding, encodings.encode(encoding, values, residual), 2500) == ""


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_just_below_huge_is_taken(encoding: Encoding) -> None:
    values = np.array([-(2.0**119), 2.0**119, 1, 0], np.float32)
    encoded = encodings.encode(encoding, values, None)
    assert encodings.check(encoding, encoded, 4) == ""
    assert encodings.examine(encoding, encoded, 4).absmax == pytest.approx(2.0**119)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_ranges_are_parts_of_the_whole(encoding: Encoding) -> None:
    for n in (0, 1, 1024, 1025, 4097, 2 * RANGE + 1025):
        encoded = encodings.encode(encoding, normal(np.random.default_rng(n), n), None)
        whole = np.full(n, np.nan, np.float32)
        assert encodings.decode(encoding, encoded, n, whole) is whole
        for start in {0, *range(0, n, 7 * BLOCK), n // BLOCK * BLOCK}:
            for stop in {start, min(n, start + 1), min(n, start + 1500), n}:
                assert same(encodings.decode_range(encoding, encoded, n, start, stop), whole[start:stop])
        found = encodings.examine(encoding, encoded, n)
        assert found == encodings.examine("fp32", whole.view(np.uint8), n)
        assert found.absmax == stats(whole).absmax
        assert found.sum_squares == pytest.approx(float(np.sum(whole.astype(np.float64) ** 2)))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_bytes_of_a_message_are_read_where_they_lie(encoding: Encoding) -> None:
    """Read-only, and at an odd address."""
    encoded = encodings.encode(encoding, normal(np.random.default_rng(3), 1025), None)
    shifted = np.frombuffer(b"x" + encoded.tobytes(), np.uint8)[1:]
    assert encodings.check(encoding, shifted, 1025) == ""
    assert same(encodings.decode(encoding, shifted, 1025), encodings.decode(encoding, encoded, 1025))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_several_threads_give_the_same_bytes(encoding: Encoding) -> None:
    n, threads = 2**20 + 1027, Threads(3)
    values = normal(np.random.default_rng(4), n)
    left, left_threaded = np.full(n, 0.1, np.float32), np.full(n, 0.1, np.float32)
    encoded = encodings.encode(encoding, values, left)
    assert np.array_equal(encodings.encode(encoding, values, left_threaded, threads), encoded)
    assert same(left, left_threaded)
    decoded = encodings.decode(encoding, encoded, n, threads=threads)
    threads.close()
    assert same(decoded, encodings.decode(encoding, encoded, n))


@pytest.mark.parametrize("encoding", ["int8", "int4"])
def test_without_a_residual_the_pieces_are_one_vector(encoding: Encoding) -> None:
    n = encodings.SCRATCH + 2051
    values = np.resize(normal(np.random.default_rng(5), 10_007), n)
    assert np.array_equal(
        encodings.encode(encoding, values, None), encodings.encode(encoding, values, np.zeros(n, np.float32))
    )


def spoilt(encoding: Encoding, n: int, part: str, at: int, value: float) -> str:
    """What `check` says after one element of a part of a good vector is changed."""
    encoded = encodings.encode(encoding, normal(np.random.default_rng(n), n), None)
    getattr(cut(encoding, encoded, n), part)[at] = value
    return encodings.check(encoding, encoded, n)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_another_length_is_named(encoding: Encoding) -> None:
    encoded = encodings.encode(encoding, np.ones(1025, np.float32), None)
    for wrong in (encoded[:-1], np.append(encoded, np.uint8(0)), encoded[:0]):
        assert f"has {wrong.size} bytes; allowed: {encoded.size}" in encodings.check(encoding, wrong, 1025)


@pytest.mark.parametrize("encoding", ["int8", "int4", "topk"])
def test_a_bad_scale_is_named(encoding: Encoding) -> None:
    for bad in (np.nan, np.inf, -np.inf, -1.0, HUGE):
        assert "scale 0 is" in spoilt(encoding, 2500, "scales", 0, bad)
        assert "scale 2 is" in spoilt(encoding, 2500 * 32, "scales", 2, bad)
    for good in (0.0, 1e-45, HUGE / 2):
        assert spoilt(encoding, 2500, "scales", 0, good) == ""
    encoded = encodings.encode(encoding, np.full(2500, 1, np.float32), None)
    cut(encoding, encoded, 2500).scales[:] = np.nextafter(np.float32(HUGE), np.float32(0))
    assert encodings.check(encoding, encoded, 2500) == ""
    assert np.isfinite(encodings.decode(encoding, encoded, 2500)).all()


def test_bad_places_are_named() -> None:
    n = 2500
    places = cut("topk", encodings.encode("topk", normal(np.random.default_rng(n), n), None), n).places
    for at in (1, 40, places.size - 1):
        expected = f"place {at} is {places[at - 1]}, after {places[at - 1]}; allowed: strictly ascending"
        assert spoilt("topk", n, "places", at, places[at - 1]) == expected
    assert "place 1 is" in spoilt("topk", n, "places", 0, n - 1)
    assert spoilt("topk", n, "places", -1, n) == f"the last place is {n}; allowed: below {n}"
    assert "the last place is 4294967295" in spoilt("topk", n, "places", -1, 2**32 - 1)
    assert spoilt("topk", n, "places", -1, n - 1) == ""


def test_codes_that_encode_never_writes_are_named() -> None:
    for encoding in ("int8", "topk"):
        assert spoilt(encoding, 2500, "codes", 70, -128) == "code 70 is -128; allowed: -127 to 127"
        assert spoilt(encoding, 2500, "codes", 70, -127) == ""
    for bad in (0x08, 0x80, 0x00):
        assert "byte 70 of the codes is 0x" in spoilt("int4", 2500, "codes", 70, bad)
        assert f"byte {RANGE + 3} of" in spoilt("int4", 2 * RANGE + 7, "codes", RANGE + 3, bad)
    assert spoilt("int4", 2500, "codes", 70, 0x1F) == ""
    assert spoilt("int4", 2501, "codes", -1, 0x98) == "the last half byte is 9; allowed: 8, since 2501 is odd"
    assert spoilt("int4", 2500, "codes", -1, 0x98) == ""


def test_bad_values_are_named() -> None:
    assert "1 of the values are not finite" in spoilt("fp32", 70_000, "codes", 69_999, np.nan)
    assert "the largest magnitude is" in spoilt("fp32", 70_000, "codes", 69_999, -HUGE)
    assert "1 of the values are not finite" in spoilt("bf16", 70_000, "codes", 69_999, 0xFF80)
    assert "the largest magnitude is" in spoilt("bf16", 70_000, "codes", 69_999, 0x7B80)
    assert spoilt("bf16", 70_000, "codes", 69_999, 0x7B7F) == ""


def test_sizes_and_directions() -> None:
    expected = {"fp32": 10_000, "bf16": 5000, "int8": 2512, "int4": 1262, "topk": 79 * 5 + 4}
    assert {encoding: encodings.encoded_bytes(encoding, 2500) for encoding in ENCODINGS} == expected
    assert [encodings.down_encoding(encoding) for encoding in ENCODINGS] == ["fp32", "bf16", "int8", "int4", "int8"]
    assert encodings.encoded_bytes("fp32", 10**6) / encodings.encoded_bytes("int8", 10**6) > 3.9
    assert encodings.encoded_bytes("fp32", 10**6) / encodings.encoded_bytes("int4", 10**6) > 7.8


def test_misuse_is_an_assertion() -> None:
    values = np.ones(40, np.float32)
    encoded = encodings.encode("int8", values, None)
    for wrong in (
        lambda: cut("fp64", encoded, 3),  # type: ignore[arg-type]
        lambda: encodings.encode("int8", values.astype(np.float64), None),
        lambda: encodings.encode("int8", values.reshape(4, 10), None),
        lambda: encodings.encode("fp32", values, values),
        lambda: encodings.encode("fp32", values, values[:20].copy()),
        lambda: encodings.decode("int8", encoded, 41),
        lambda: encodings.decode("int8", encoded, 40, np.ones(41, np.float32)),
        lambda: encodings.decode_range("int8", encoded, 40, 3, 9),
        lambda: encodings.decode_range("int8", encoded, 40, 0, 41),
    ):
        with pytest.raises(AssertionError):
            wrong()
