"""Block quantisation: `block` float32 share one scale; each becomes a code of 8 bits (q8) or 4 (q4), two to a byte.

`codes` is int8 with one entry for each element (q8), or uint8 with `q4_codes_size(n)` entries (q4); `scales` is float32
with `scales_size(n, block)` entries. Blocks run through an array in C order; the last one may be shorter.
"""

from typing import Any, NamedTuple

import numpy as np

from services.common.kernels.arguments import (
    FLOAT32,
    INT8,
    INT64,
    UINT8,
    Float32Array,
    Int8Array,
    Int64Array,
    Named,
    Uint8Array,
    block_length,
    check_array,
    check_shape,
    check_size,
    float32_number,
    number,
)
from services.common.kernels.calls import call
from services.common.kernels.threads import PIECE_STEP, Threads

Codes = Int8Array | Uint8Array


class _Format(NamedTuple):
    """How codes are kept."""

    dtype: np.dtype[Any]
    per_byte: int


_Q8 = _Format(INT8, 1)
_Q4 = _Format(UINT8, 2)


def scales_size(n: int, block: int) -> int:
    """Scales for `n` elements."""
    return -(-n // block)


def q4_codes_size(n: int) -> int:
    """Bytes for `n` codes of 4 bits."""
    return -(-n // 2)


def quantise_q8(
    codes: Int8Array,
    scales: Float32Array,
    new_residual: Float32Array,
    x: Float32Array,
    residual: Float32Array | None,
    block: int,
    *,
    threads: Threads | None = None,
) -> None:
    """Writes codes and scales of `x + residual`, and what they leave over into `new_residual`.

    Codes lie in -127..127. `residual` None is none, all zeros; `new_residual is residual` is allowed. A block with an
    entry that is not finite gets the scale NaN, codes 0 and a residual of 0; the header says it to the last bit.
    """
    _quantise("mahe_quantise_q8_f32", _Q8, codes, scales, new_residual, x, residual, block, threads)


def quantise_q4(
    codes: Uint8Array,
    scales: Float32Array,
    new_residual: Float32Array,
    x: Float32Array,
    residual: Float32Array | None,
    block: int,
    *,
    threads: Threads | None = None,
) -> None:
    """As `quantise_q8`, with codes -7..7 kept as code + 8, element 2 i in the low half of a byte."""
    _quantise("mahe_quantise_q4_f32", _Q4, codes, scales, new_residual, x, residual, block, threads)


def _quantise(
    op: str,
    form: _Format,
    codes: Codes,
    scales: Float32Array,
    new_residual: Float32Array,
    x: Float32Array,
    residual: Float32Array | None,
    block: int,
    threads: Threads | None,
) -> None:
    check_array("x", x, FLOAT32)
    block = block_length(block)
    _check_codes(form, codes, scales, ("x", x), block, writable=True)
    check_array("new_residual", new_residual, FLOAT32, writable=True)
    check_shape("new_residual", new_residual, "x", x)
    if residual is not None:
        check_array("residual", residual, FLOAT32)
        check_shape("residual", residual, "x", x)
    call(
        op,
        {"codes": codes, "scales": scales, "new_residual": new_residual, "x": x, "residual": residual},
        (block,),
        x.size,
        written=3,
        twins=(("new_residual", "residual"),),
        threads=threads,
        per=(form.per_byte, block, 1, 1, 1),
        step=_step(block),
    )


def dequantise_q8(
    x: Float32Array, codes: Int8Array, scales: Float32Array, block: int, *, threads: Threads | None = None
) -> None:
    """`x = float32(code) * scale` of its block; any codes (-128, too) and any scales are taken."""
    _decode("mahe_dequantise_q8_f32", _Q8, ("x", x), codes, scales, (), block, threads)


def dequantise_q4(
    x: Float32Array, codes: Uint8Array, scales: Float32Array, block: int, *, threads: Threads | None = None
) -> None:
    """`x = float32(code) * scale` of its block; any codes (-8, too) and any scales are taken."""
    _decode("mahe_dequantise_q4_f32", _Q4, ("x", x), codes, scales, (), block, threads)


def dequantise_add_q8(
    dst: Float32Array,
    codes: Int8Array,
    scales: Float32Array,
    weight: float,
    block: int,
    *,
    threads: Threads | None = None,
) -> None:
    """`dst += float32(weight) * (float32(code) * scale)`: the bits of `dequantise_q8`, then `reduce_add`."""
    factors = (float32_number("weight", weight),)
    _decode("mahe_dequantise_add_q8_f32", _Q8, ("dst", dst), codes, scales, factors, block, threads)


def dequantise_add_q4(
    dst: Float32Array,
    codes: Uint8Array,
    scales: Float32Array,
    weight: float,
    block: int,
    *,
    threads: Threads | None = None,
) -> None:
    """`dst += float32(weight) * (float32(code) * scale)`: the bits of `dequantise_q4`, then `reduce_add`."""
    factors = (float32_number("weight", weight),)
    _decode("mahe_dequantise_add_q4_f32", _Q4, ("dst", dst), codes, scales, factors, block, threads)


def fold_q8(
    acc: Int64Array,
    codes: Int8Array,
    scales: Float32Array,
    factor: float,
    block: int,
    *,
    threads: Threads | None = None,
) -> None:
    """`acc += rint(float64(float32(code) * scale) * factor)`: the bits of `dequantise_q8`, then `fold`.

    As with `fold` it is the caller's duty that every product is finite and at most `FOLD_PRODUCT_MAX`.
    """
    _decode("mahe_fold_q8_i64", _Q8, ("acc", acc), codes, scales, (number("factor", factor),), block, threads)


def fold_q4(
    acc: Int64Array,
    codes: Uint8Array,
    scales: Float32Array,
    factor: float,
    block: int,
    *,
    threads: Threads | None = None,
) -> None:
    """`acc += rint(float64(float32(code) * scale) * factor)`: the bits of `dequantise_q4`, then `fold`.

    As with `fold` it is the caller's duty that every product is finite and at most `FOLD_PRODUCT_MAX`.
    """
    _decode("mahe_fold_q4_i64", _Q4, ("acc", acc), codes, scales, (number("factor", factor),), block, threads)


def _decode(
    op: str,
    form: _Format,
    target: Named,
    codes: Codes,
    scales: Float32Array,
    factors: tuple[float, ...],
    block: int,
    threads: Threads | None,
) -> None:
    to_name, to = target
    check_array(to_name, to, INT64 if to_name == "acc" else FLOAT32, writable=True)
    block = block_length(block)
    _check_codes(form, codes, scales, target, block, writable=False)
    arrays = {to_name: to, "codes": codes, "scales": scales}
    numbers, per = (*factors, block), (1, form.per_byte, block)
    call(op, arrays, numbers, to.size, written=1, threads=threads, per=per, step=_step(block))


def _check_codes(form: _Format, codes: Codes, scales: Float32Array, of: Named, block: int, *, writable: bool) -> None:
    name, n = of[0], of[1].size
    check_array("codes", codes, form.dtype, writable=writable)
    check_array("scales", scales, FLOAT32, writable=writable)
    check_size("codes", codes, -(-n // form.per_byte), f"{form.per_byte} to a byte, for the {n} elements of {name}")
    check_size("scales", scales, scales_size(n, block), f"one for each {block} of the {n} elements of {name}")


def _step(block: int) -> int:
    """Pieces hold whole blocks, so also whole bytes of codes."""
    return -(-PIECE_STEP // block) * block
