"""bfloat16, the upper half of a float32, as uint16 bits: NumPy has no such dtype of its own."""

from services.common.kernels.arguments import FLOAT32, UINT16, Float32Array, Uint16Array, check_array, check_shape
from services.common.kernels.calls import call
from services.common.kernels.threads import Threads


def bf16_from_f32(dst: Uint16Array, src: Float32Array, *, threads: Threads | None = None) -> None:
    """`dst` = `src` rounded to the nearest bfloat16, ties to even; subnormals are kept, a NaN stays a (quiet) NaN."""
    check_array("dst", dst, UINT16, writable=True)
    check_array("src", src, FLOAT32)
    check_shape("src", src, "dst", dst)
    call("mahe_bf16_from_f32", {"dst": dst, "src": src}, (), dst.size, written=1, threads=threads)


def f32_from_bf16(dst: Float32Array, src: Uint16Array, *, threads: Threads | None = None) -> None:
    """`dst` = `src`, exactly."""
    check_array("dst", dst, FLOAT32, writable=True)
    check_array("src", src, UINT16)
    check_shape("src", src, "dst", dst)
    call("mahe_f32_from_bf16", {"dst": dst, "src": src}, (), dst.size, written=1, threads=threads)
