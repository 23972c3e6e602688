"""bfloat16, the upper half of a float32, as uint16 bits: NumPy has no such dtype of its own."""

from services.common.kernels.arguments import (
    FLOAT32,
    UINT16,
    Float32Array,
    Uint16Array,
    check_read,
    check_shape,
    check_written,
)
from services.common.kernels.calls import Function, call
from services.common.kernels.threads import Threads

_FROM_F32 = Function("mahe_bf16_from_f32", {"dst": UINT16, "src": FLOAT32}, written=1)
_TO_F32 = Function("mahe_f32_from_bf16", {"dst": FLOAT32, "src": UINT16}, written=1)


def bf16_from_f32(dst: Uint16Array, src: Float32Array, *, threads: Threads | None = None) -> None:
    """`dst` = `src` rounded to the nearest bfloat16, ties to even; subnormals are kept, a NaN stays a (quiet) NaN."""
    check_written("dst", dst, UINT16)
    check_read("src", src, FLOAT32)
    check_shape("src", src, "dst", dst)
    call(_FROM_F32, (dst, src), (), dst.size, threads)


def f32_from_bf16(dst: Float32Array, src: Uint16Array, *, threads: Threads | None = None) -> None:
    """`dst` = `src`, exactly."""
    check_written("dst", dst, FLOAT32)
    check_read("src", src, UINT16)
    check_shape("src", src, "dst", dst)
    call(_TO_F32, (dst, src), (), dst.size, threads)
