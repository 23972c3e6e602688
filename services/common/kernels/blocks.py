"""Block quantisation: `block` float32 share one scale; each becomes a code of 8 bits (q8) or 4 (q4), two to a byte.

`codes` is int8 with one entry for each element (q8), or uint8 with `q4_codes_size(n)` entries (q4); `scales` is float32
with `scales_size(n, block)` entries. Blocks run through an array in C order; the last one may be shorter.
"""

from services.common.kernels.arguments import (
    FLOAT32,
    INT8,
    INT64,
    UINT8,
    Float32Array,
    Int8Array,
    Int64Array,
    Uint8Array,
    block_length,
    check_read,
    check_shape,
    check_size,
    check_written,
    float32_number,
    number,
)
from services.common.kernels.calls import PER_BLOCK, Dtypes, Function, call
from services.common.kernels.library import library
from services.common.kernels.threads import Threads

Codes = Int8Array | Uint8Array

_IN_Q8: Dtypes = {"codes": INT8, "scales": FLOAT32}
_IN_Q4: Dtypes = {"codes": UINT8, "scales": FLOAT32}
_VECTORS: Dtypes = {"new_residual": FLOAT32, "x": FLOAT32, "residual": FLOAT32}
_TWINS = (("new_residual", "residual"),)
_PER_Q8 = (1, PER_BLOCK)
_PER_Q4 = (2, PER_BLOCK)
_QUANTISE_Q8 = Function("mahe_quantise_q8_f32", _IN_Q8 | _VECTORS, 3, _TWINS, (*_PER_Q8, 1, 1, 1))
_QUANTISE_Q4 = Function("mahe_quantise_q4_f32", _IN_Q4 | _VECTORS, 3, _TWINS, (*_PER_Q4, 1, 1, 1))
_DEQUANTISE_Q8 = Function("mahe_dequantise_q8_f32", {"x": FLOAT32} | _IN_Q8, 1, per=(1, *_PER_Q8))
_DEQUANTISE_Q4 = Function("mahe_dequantise_q4_f32", {"x": FLOAT32} | _IN_Q4, 1, per=(1, *_PER_Q4))
_DEQUANTISE_ADD_Q8 = Function("mahe_dequantise_add_q8_f32", {"dst": FLOAT32} | _IN_Q8, 1, per=(1, *_PER_Q8))
_DEQUANTISE_ADD_Q4 = Function("mahe_dequantise_add_q4_f32", {"dst": FLOAT32} | _IN_Q4, 1, per=(1, *_PER_Q4))
_FOLD_Q8 = Function("mahe_fold_q8_i64", {"acc": INT64} | _IN_Q8, 1, per=(1, *_PER_Q8))
_FOLD_Q4 = Function("mahe_fold_q4_i64", {"acc": INT64} | _IN_Q4, 1, per=(1, *_PER_Q4))


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
    _quantise(_QUANTISE_Q8, codes, scales, new_residual, x, residual, block, threads)


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
    _quantise(_QUANTISE_Q4, codes, scales, new_residual, x, residual, block, threads)


def _quantise(
    function: Function,
    codes: Codes,
    scales: Float32Array,
    new_residual: Float32Array,
    x: Float32Array,
    residual: Float32Array | None,
    block: int,
    threads: Threads | None,
) -> None:
    check_read("x", x, FLOAT32)
    block = block_length(block)
    check_written("codes", codes, function.arrays["codes"])
    check_written("scales", scales, FLOAT32)
    _check_sizes(function.per[0], codes, scales, "x", x.size, block)
    check_written("new_residual", new_residual, FLOAT32)
    check_shape("new_residual", new_residual, "x", x)
    if residual is None:
        call(function, (codes, scales, new_residual, x), (library().ffi.NULL, block), x.size, threads, block)
        return
    check_read("residual", residual, FLOAT32)
    check_shape("residual", residual, "x", x)
    call(function, (codes, scales, new_residual, x, residual), (block,), x.size, threads, block)


def dequantise_q8(
    x: Float32Array, codes: Int8Array, scales: Float32Array, block: int, *, threads: Threads | None = None
) -> None:
    """`x = float32(code) * scale` of its block; any codes (-128, too) and any scales are taken."""
    _decode(_DEQUANTISE_Q8, "x", x, codes, scales, (), block, threads)


def dequantise_q4(
    x: Float32Array, codes: Uint8Array, scales: Float32Array, block: int, *, threads: Threads | None = None
) -> None:
    """`x = float32(code) * scale` of its block; any codes (-8, too) and any scales are taken."""
    _decode(_DEQUANTISE_Q4, "x", x, codes, scales, (), block, threads)


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
    _decode(_DEQUANTISE_ADD_Q8, "dst", dst, codes, scales, factors, block, threads)


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
    _decode(_DEQUANTISE_ADD_Q4, "dst", dst, codes, scales, factors, block, threads)


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
    _decode(_FOLD_Q8, "acc", acc, codes, scales, (number("factor", factor),), block, threads)


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
    _decode(_FOLD_Q4, "acc", acc, codes, scales, (number("factor", factor),), block, threads)


def _decode(
    function: Function,
    to_name: str,
    to: Float32Array | Int64Array,
    codes: Codes,
    scales: Float32Array,
    factors: tuple[float, ...],
    block: int,
    threads: Threads | None,
) -> None:
    check_written(to_name, to, function.arrays[to_name])
    block = block_length(block)
    check_read("codes", codes, function.arrays["codes"])
    check_read("scales", scales, FLOAT32)
    _check_sizes(function.per[1], codes, scales, to_name, to.size, block)
    call(function, (to, codes, scales), (*factors, block), to.size, threads, block)


def _check_sizes(per_byte: int, codes: Codes, scales: Float32Array, of: str, n: int, block: int) -> None:
    check_size("codes", codes, -(-n // per_byte), "{} to a byte, for the {} elements of {}", per_byte, n, of)
    check_size("scales", scales, -(-n // block), "one for each {} of the {} elements of {}", block, n, of)
