"""Reading encoded vectors: the values, whole or by ranges; what they are like; and whether the bytes are well formed.

`encoded_layout.py` says where they lie, `encodings.py` writes them. What comes from outside goes through `check` once;
everything else takes bytes that have passed it. Nothing here needs a whole decoded vector but `decode`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from services.common.kernels import Stats, Threads, dequantise_q4, dequantise_q8, f32_from_bf16, stats
from services.common.learning.encoded_layout import HUGE, Bytes, Parts, block_scales, cut
from services.common.learning.parameters import Floats
from services.common.protocol.encodings import BLOCK, Encoding, encoded_bytes

RANGE = 1 << 16
"""Entries decoded at a time where no whole vector is wanted: 256 KiB of scratch, a multiple of BLOCK."""


def decode(
    encoding: Encoding, encoded: Bytes, n: int, out: Floats | None = None, threads: Threads | None = None
) -> Floats:
    """The vector float32[n] of a checked `encoded`: written into `out` if that is given, else a new array."""
    into = np.empty(n, dtype=np.float32) if out is None else out
    assert into.shape == (n,), f"a vector of {n} is needed, not {into.shape}"
    _decode(encoding, cut(encoding, encoded, n), 0, into, threads)
    return into


def decode_range(encoding: Encoding, encoded: Bytes, n: int, start: int, stop: int) -> Floats:
    """Entries start..stop of `decode`, bit for bit, as a new float32[stop - start]; `start` is a multiple of BLOCK."""
    assert start % BLOCK == 0 and 0 <= start <= stop <= n, f"{start} to {stop} of {n}: no range from a multiple of 1024"
    into = np.empty(stop - start, dtype=np.float32)
    _decode(encoding, cut(encoding, encoded, n), start, into, None)
    return into


def examine(encoding: Encoding, encoded: Bytes, n: int) -> Stats:
    """What kernel `stats` finds in the decoded vector, whole ranges of RANGE entries one after another.

    The order of the sum is fixed, so its bits are the same on every machine and whatever the encoding. `encoded` has
    passed `check`; without that, fp32 and bf16 may still be looked at. Scratch of one range, no decoded vector.
    """
    parts = cut(encoding, encoded, n)
    scratch = np.empty(min(n, RANGE), dtype=np.float32)
    nonfinite, absmax, sum_squares = 0, 0.0, 0.0
    for start in range(0, n, RANGE):
        if encoding == "fp32":
            found = stats(parts.codes[start : start + RANGE])
        else:
            piece = scratch[: n - start]
            _decode(encoding, parts, start, piece, None)
            found = stats(piece)
        nonfinite += found.nonfinite
        absmax = max(absmax, found.absmax)
        sum_squares += found.sum_squares
    return Stats(nonfinite, absmax, sum_squares)


def check(encoding: Encoding, encoded: Bytes, n: int) -> str:
    """Empty when `encoded` is well formed for `n` entries and all its values are finite; else what is wrong.

    Refused: another length; values (fp32, bf16) not finite or HUGE; scales not finite, negative or HUGE; places that do
    not ascend or are beyond n; the codes that `encode` never writes, -128 (int8, topk) and -8 (int4), and a last half
    byte that is not 8: a vector has one spelling, and its error stays within the scale.
    """
    expected = encoded_bytes(encoding, n)
    if encoded.size != expected:
        return f"{encoding} of {n} entries has {encoded.size} bytes; allowed: {expected}"
    if encoding in ("fp32", "bf16"):
        return _bad_values(examine(encoding, encoded, n))
    parts = cut(encoding, encoded, n)
    fault = _bad_scales(parts.scales) or _bad_places(parts.places, n)
    return fault or (_bad_halves(parts.codes, n) if encoding == "int4" else _bad_codes(parts.codes))


def kept_values(parts: Parts, start: int, stop: int) -> tuple[npt.NDArray[np.uint32], Floats]:
    """The kept entries start..stop of a topk vector: their places (a view) and their values (a new array)."""
    first = start - start % BLOCK  # blocks are decoded from their beginning
    values = np.empty(stop - first, dtype=np.float32)
    dequantise_q8(values, parts.codes[first:stop], block_scales(parts, first, stop), BLOCK)
    return parts.places[start:stop], values[start - first :]


def _decode(encoding: Encoding, parts: Parts, start: int, into: Floats, threads: Threads | None) -> None:
    """Writes entries start..start + len(into); `start` is a multiple of BLOCK."""
    stop = start + len(into)
    if encoding == "fp32":
        into[:] = parts.codes[start:stop]
    elif encoding == "bf16":
        f32_from_bf16(into, parts.codes[start:stop], threads=threads)
    elif encoding == "int8":
        dequantise_q8(into, parts.codes[start:stop], block_scales(parts, start, stop), BLOCK, threads=threads)
    elif encoding == "int4":
        codes = parts.codes[start // 2 : (stop + 1) // 2]
        dequantise_q4(into, codes, block_scales(parts, start, stop), BLOCK, threads=threads)
    else:
        first, last = np.searchsorted(parts.places, np.array([start, stop], dtype=np.uint32))
        places, values = kept_values(parts, int(first), int(last))
        into.fill(0)
        into[places - np.uint32(start)] = values


def _bad_values(found: Stats) -> str:
    if found.nonfinite:
        return f"{found.nonfinite} of the values are not finite; allowed: finite values below 2^120"
    if found.absmax >= HUGE:
        return f"the largest magnitude is {found.absmax:g}; allowed: below 2^120"
    return ""


def _bad_scales(scales: Floats) -> str:
    with np.errstate(invalid="ignore"):
        good = (scales >= 0) & (scales < HUGE)
    if good.all():
        return ""
    i = int(np.argmin(good))
    return (
        f"scale {i} is {scales[i]:g}; allowed: 0 or more and below 2^120 "
        "(NaN stands for a block with an entry that is not finite or too large)"
    )


def _bad_places(places: npt.NDArray[np.uint32], n: int) -> str:
    ascending = places[1:] > places[:-1]
    if not ascending.all():
        i = int(np.argmin(ascending)) + 1
        return f"place {i} is {places[i]}, after {places[i - 1]}; allowed: strictly ascending"
    if places.size and places[-1] >= n:
        return f"the last place is {places[-1]}; allowed: below {n}"
    return ""


def _bad_codes(codes: npt.NDArray[Any]) -> str:
    if codes.size and codes.min() < -127:
        return f"code {int(codes.argmin())} is -128; allowed: -127 to 127"
    return ""


def _bad_halves(codes: Bytes, n: int) -> str:
    for start in range(0, codes.size, RANGE):
        piece = codes[start : start + RANGE]
        bad = (piece & 15 == 0) | (piece < 16)
        if bad.any():
            i = int(np.argmax(bad))
            return f"byte {start + i} of the codes is {piece[i]:#04x}; allowed: halves of 1 to 15, codes -7 to 7"
    if n % 2 and codes[-1] >> 4 != 8:
        return f"the last half byte is {codes[-1] >> 4}; allowed: 8, since {n} is odd"
    return ""
