"""How vectors travel: deltas up, updates down, in fewer bytes than float32. `encoded_layout.py` says where they lie.

What an encoding loses is not lost: it stays in a *residual* and is added to the next vector (error feedback: Seide et
al., Interspeech 2014; Karimireddy et al., ICML 2019, algorithm 2). Whoever encodes owns the residual and keeps its old
copy until the vector counts. int8 and int4 blocks, and all bits, are those of `mahe_kernel.h`, equal on every machine.

An entry that is not finite, or whose magnitude is HUGE or more (bf16: once rounded), never stops `encode`: the vector
comes out such that `check` names it, and the residual is 0 there, so that the next round is sound again. With int8,
int4 and topk its whole block of 1024 is given up. Not for whether a vector is wanted: norms, bounds and quarantine are
the master's.
"""

import numpy as np

from services.common.kernels import (
    Threads,
    bf16_from_f32,
    f32_from_bf16,
    quantise_q4,
    quantise_q8,
    topk,
)
from services.common.learning.encoded_layout import HUGE, Bytes, Parts, block_scales, cut
from services.common.learning.encoded_reading import RANGE, check, decode, decode_range, examine
from services.common.learning.parameters import Floats
from services.common.protocol.encodings import BLOCK, ENCODINGS, Encoding, down_encoding, encoded_bytes

__all__ = [
    "BLOCK",
    "ENCODINGS",
    "HUGE",
    "RANGE",
    "Bytes",
    "check",
    "decode",
    "decode_range",
    "down_encoding",
    "encode",
    "encoded_bytes",
    "examine",
]

SCRATCH = 1 << 22
"""Entries quantised at a time where no residual is kept: 16 MiB of scratch."""


def encode(encoding: Encoding, values: Floats, residual: Floats | None, threads: Threads | None = None) -> Bytes:
    """The encoded a = values + residual, a new array; `residual` becomes what is left over, a - decoded, exactly.

    `values` and `residual` are float32[n] and apart; `values` is only read. fp32 leaves 0 over. topk leaves all that it
    does not keep. Without a residual what is left over is forgotten.
    """
    assert values.dtype == np.float32 and values.ndim == 1, f"float32[n] is needed, not {values.dtype}{values.shape}"
    n = len(values)
    encoded = np.empty(encoded_bytes(encoding, n), dtype=np.uint8)
    parts = cut(encoding, encoded, n)
    if residual is not None:
        assert residual.shape == values.shape and residual.dtype == np.float32, f"a residual of float32[{n}] is needed"
        assert not np.may_share_memory(values, residual), "values would be changed with the residual"
    if encoding in ("int8", "int4"):
        _encode_blocks(encoding, parts, values, residual, threads)
        return encoded
    with np.errstate(over="ignore", invalid="ignore"):
        a = values if residual is None else np.add(values, residual, out=residual)
        if encoding == "topk":
            _encode_topk(parts, a, residual, threads)
        elif encoding == "bf16":
            _encode_bf16(parts, a, residual, threads)
        else:
            parts.codes[:] = a
            if residual is not None:
                residual.fill(0)
    return encoded


def _encode_blocks(
    encoding: Encoding, parts: Parts, values: Floats, residual: Floats | None, threads: Threads | None
) -> None:
    quantise, per_byte = (quantise_q8, 1) if encoding == "int8" else (quantise_q4, 2)
    n = len(values)
    if residual is not None:
        quantise(parts.codes, parts.scales, residual, values, residual, BLOCK, threads=threads)
        return
    scratch = np.empty(min(n, SCRATCH), dtype=np.float32)
    for start in range(0, n, SCRATCH):
        piece = values[start : start + SCRATCH]
        codes = parts.codes[start // per_byte : (start + SCRATCH) // per_byte]
        scales = block_scales(parts, start, start + len(piece))
        quantise(codes, scales, scratch[: len(piece)], piece, None, BLOCK, threads=threads)


def _encode_bf16(parts: Parts, a: Floats, residual: Floats | None, threads: Threads | None) -> None:
    bf16_from_f32(parts.codes, a, threads=threads)
    if residual is None:
        return
    scratch = np.empty(min(len(a), RANGE), dtype=np.float32)
    for start in range(0, len(a), RANGE):
        left = residual[start : start + RANGE]  # a itself until here
        decoded = scratch[: len(left)]
        f32_from_bf16(decoded, parts.codes[start : start + RANGE])
        left -= decoded
        np.copyto(left, 0, where=~(np.abs(decoded) < HUGE))


def _encode_topk(parts: Parts, a: Floats, residual: Floats | None, threads: Threads | None) -> None:
    kept = np.empty(parts.places.size, dtype=np.float32)
    left = np.empty_like(kept)
    topk(a, kept.size, parts.places, kept)
    quantise_q8(parts.codes, parts.scales, left, kept, None, BLOCK, threads=threads)
    if residual is None:
        return
    residual[parts.places] = left
    if np.isnan(parts.scales).any():  # what is HUGE or not finite is kept first, but there may be more of it than k
        for start in range(0, len(residual), RANGE):
            piece = residual[start : start + RANGE]
            np.copyto(piece, 0, where=~(np.abs(piece) < HUGE))
