"""The numeric kernels as typed functions on NumPy arrays: weighted sum, SGD step, fixed-point fold, statistics.

Each checks dtype, shape, layout, writability and overlap, then makes one call into libkernel, which releases the GIL.
`libkernel/include/mahe_kernel.h` says what is computed to the last bit. Arrays are C-contiguous, native-endian, of any
shape; they stay the caller's. Not an array library: what NumPy does well is left to NumPy.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from services.common.errors import KernelError, quoted
from services.common.kernels.library import OK, library

Float32Array = npt.NDArray[np.float32]
Int64Array = npt.NDArray[np.int64]

FOLD_PRODUCT_MAX = 2.0**51
FLOAT32_MAX = float(np.finfo(np.float32).max)

_FLOAT32 = np.dtype(np.float32)
_INT64 = np.dtype(np.int64)
_NUMBERS = (float, int, np.floating, np.integer)


class Stats(NamedTuple):
    """What `stats` found: NaN and infinite entries, largest magnitude and sum of squares of the finite ones."""

    nonfinite: int
    absmax: float
    sum_squares: float


def reduce_add(dst: Float32Array, src: Float32Array, weight: float) -> None:
    """`dst += float32(weight) * src` in place, bit for bit as NumPy does it. `dst is src` is allowed."""
    _check_array("dst", dst, _FLOAT32, writable=True)
    _check_array("src", src, _FLOAT32)
    _check_pair("dst", dst, "src", src, alias_allowed=True)
    factor = _float32_number("weight", weight)
    opened = library()
    to = opened.ffi.from_buffer("float[]", dst, require_writable=True)
    status = opened.lib.mahe_reduce_add_f32(to, opened.ffi.from_buffer("float[]", src), factor, dst.size)
    _expect_ok("reduce_add", status)


def sgd_update(params: Float32Array, grad: Float32Array, lr: float) -> None:
    """`params -= float32(lr) * grad` in place; the same bits as `reduce_add(params, grad, -lr)`."""
    _check_array("params", params, _FLOAT32, writable=True)
    _check_array("grad", grad, _FLOAT32)
    _check_pair("params", params, "grad", grad, alias_allowed=True)
    factor = _float32_number("lr", lr)
    opened = library()
    to = opened.ffi.from_buffer("float[]", params, require_writable=True)
    status = opened.lib.mahe_sgd_update_f32(to, opened.ffi.from_buffer("float[]", grad), factor, params.size)
    _expect_ok("sgd_update", status)


def fold(acc: Int64Array, delta: Float32Array, scale: float) -> None:
    """`acc += rint(float64(delta) * scale)` in place, ties to even: one delta into a fixed-point accumulator.

    The caller makes sure that no |delta * scale| is above `FOLD_PRODUCT_MAX` and none is NaN (DESIGN section 3 bounds
    it by 2^50): this is not checked, and beyond it the value added is unspecified.
    """
    _check_array("acc", acc, _INT64, writable=True)
    _check_array("delta", delta, _FLOAT32)
    _check_pair("acc", acc, "delta", delta, alias_allowed=False)
    factor = _number("scale", scale)
    opened = library()
    to = opened.ffi.from_buffer("int64_t[]", acc, require_writable=True)
    status = opened.lib.mahe_fold_f32_i64(to, opened.ffi.from_buffer("float[]", delta), factor, acc.size)
    _expect_ok("fold", status)


def stats(x: Float32Array) -> Stats:
    """Counts, largest magnitude and sum of squares in one pass; the same bits on every machine."""
    _check_array("x", x, _FLOAT32)
    opened = library()
    out = opened.ffi.new("mahe_stats *")
    status = opened.lib.mahe_stats_f32(opened.ffi.from_buffer("float[]", x), x.size, out)
    _expect_ok("stats", status)
    return Stats(out.nonfinite, out.absmax, out.sum_squares)


def kernel_impl() -> str:
    """The tier in use, "scalar" or "avx2", for logs and the status page."""
    opened = library()
    name: bytes = opened.ffi.string(opened.lib.mahe_kernel_impl())
    return name.decode("ascii")


def _check_array(name: str, array: Any, dtype: np.dtype[Any], *, writable: bool = False) -> None:
    if not isinstance(array, np.ndarray):
        raise KernelError(f"{name} is a {type(array).__name__}; allowed: a numpy array of {dtype}")
    if array.dtype != dtype:
        raise KernelError(f"{name} has dtype {array.dtype}; allowed: {dtype} in native byte order")
    flags = array.flags
    if not flags.c_contiguous:
        raise KernelError(f"{name} has strides {array.strides} for shape {array.shape}; allowed: C-contiguous")
    if not flags.aligned:
        raise KernelError(f"{name} starts at {array.ctypes.data:#x}; allowed: aligned to {dtype.itemsize} bytes")
    if writable and not flags.writeable:
        raise KernelError(f"{name} is read-only; allowed: a writable array, since it is changed in place")


def _check_pair(to_name: str, to: npt.NDArray[Any], of_name: str, of: npt.NDArray[Any], *, alias_allowed: bool) -> None:
    if to.shape != of.shape:
        raise KernelError(f"{of_name} has shape {of.shape}; allowed: the shape of {to_name}, {to.shape}")
    # Both are contiguous, so comparing the bounds is exact.
    if np.may_share_memory(to, of) and not (alias_allowed and to.ctypes.data == of.ctypes.data):
        allowed = f"{of_name} is {to_name}, or no common memory" if alias_allowed else "no common memory"
        raise KernelError(f"{of_name} overlaps {to_name} in memory; allowed: {allowed}")


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        raise KernelError(f"{name} is {quoted(value)}; allowed: a finite number")
    try:
        number = float(value)
    except OverflowError:  # an integer of over 308 digits
        number = math.inf
    if not math.isfinite(number):
        raise KernelError(f"{name} is {quoted(value)}; allowed: a finite number")
    return number


def _float32_number(name: str, value: Any) -> float:
    number = _number(name, value)
    if abs(number) > FLOAT32_MAX:
        raise KernelError(
            f"{name} is {quoted(value)}; allowed: a number in the range of float32, up to {FLOAT32_MAX:.4g}"
        )
    return number


def _expect_ok(op: str, status: int) -> None:
    """What is checked above cannot come back as a status: if it does, library and Python do not fit."""
    if status != OK:
        raise KernelError(f"libkernel refused {op} with status {status}: run `make kernels`")
