"""What every kernel function checks before it calls C: each error names the argument, its value and what is allowed.

A check comes with every call, so what is usual passes in a few tests, and a sentence is made only when it is needed.

Not for what only C can answer quickly: whether arrays overlap is asked there, and only the sentence is made here.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy import ndarray

from services.common.errors import KernelError, quoted

FLOAT32 = np.dtype(np.float32)
INT64 = np.dtype(np.int64)
UINT32 = np.dtype(np.uint32)
UINT16 = np.dtype(np.uint16)
UINT8 = np.dtype(np.uint8)
INT8 = np.dtype(np.int8)

Float32Array = npt.NDArray[np.float32]
Int64Array = npt.NDArray[np.int64]
Uint32Array = npt.NDArray[np.uint32]
Uint16Array = npt.NDArray[np.uint16]
Uint8Array = npt.NDArray[np.uint8]
Int8Array = npt.NDArray[np.int8]

Named = tuple[str, npt.NDArray[Any]]
"""An argument: its name and the array."""

FLOAT32_MAX = float(np.finfo(np.float32).max)
BLOCK_MIN, BLOCK_MAX, BLOCK_STEP = 32, 65536, 32

_NUMBERS = (float, int, np.floating, np.integer)
_INTEGERS = (int, np.integer)


def check_read(name: str, array: Any, dtype: np.dtype[Any]) -> None:
    """A contiguous, aligned NumPy array of `dtype` in native byte order."""
    if isinstance(array, ndarray) and (array.dtype is dtype or array.dtype == dtype):
        flags = array.flags
        if flags.carray or (flags.c_contiguous and flags.aligned):
            return
    raise KernelError(_array_fault(name, array, dtype))


def check_written(name: str, array: Any, dtype: np.dtype[Any]) -> None:
    """The same, and writable."""
    if not isinstance(array, ndarray) or (array.dtype is not dtype and array.dtype != dtype) or not array.flags.carray:
        raise KernelError(_array_fault(name, array, dtype))


def check_shape(name: str, array: npt.NDArray[Any], of_name: str, of: npt.NDArray[Any]) -> None:
    """The shape of another argument."""
    if array.shape != of.shape:
        raise KernelError(f"{name} has shape {array.shape}; allowed: the shape of {of_name}, {of.shape}")


def check_size(name: str, array: npt.NDArray[Any], size: int, what: str, *of: object) -> None:
    """That many elements, in any shape; `what`, formatted with `of`, says why so many."""
    if array.size != size:
        raise KernelError(f"{name} has {array.size} elements; allowed: {size}, {what.format(*of)}")


def check_apart(written: Sequence[Named], read: Sequence[Named], twins: Sequence[tuple[str, str]] = ()) -> None:
    """What is written shares no memory with any other argument, unless the two are `twins` and start at one address."""
    pairs = [*itertools.combinations(written, 2), *itertools.product(written, read)]
    for (to_name, to), (of_name, of) in pairs:
        # All are contiguous, so comparing the bounds is exact.
        if not np.may_share_memory(to, of):
            continue
        twin = (to_name, of_name) in twins
        if twin and to.ctypes.data == of.ctypes.data:
            continue
        allowed = f"{of_name} is {to_name}, or no common memory" if twin else "no common memory"
        raise KernelError(f"{of_name} overlaps {to_name} in memory; allowed: {allowed}")


def number(name: str, value: Any) -> float:
    """A finite number, for an argument that C takes as float64."""
    if type(value) is float and -math.inf < value < math.inf:
        return value
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        raise KernelError(f"{name} is {quoted(value)}; allowed: a finite number")
    try:
        converted = float(value)
    except OverflowError:  # an integer of over 308 digits
        converted = math.inf
    if not math.isfinite(converted):
        raise KernelError(f"{name} is {quoted(value)}; allowed: a finite number")
    return converted


def float32_number(name: str, value: Any) -> float:
    """A number in the range of float32; cffi rounds it to nearest, as `np.float32(value)` does."""
    if type(value) is float and -FLOAT32_MAX <= value <= FLOAT32_MAX:
        return value
    converted = number(name, value)
    if abs(converted) > FLOAT32_MAX:
        raise KernelError(
            f"{name} is {quoted(value)}; allowed: a number in the range of float32, up to {FLOAT32_MAX:.4g}"
        )
    return converted


def integer(name: str, value: Any, low: int, high: int, what: str = "") -> int:
    """An integer from `low` to `high`; `what` explains the bounds."""
    if type(value) is int and low <= value <= high:
        return value
    if isinstance(value, bool) or not isinstance(value, _INTEGERS) or not low <= value <= high:
        raise KernelError(f"{name} is {quoted(value)}; allowed: an integer from {low} to {high}{what}")
    return int(value)


def block_length(value: Any) -> int:
    """How many elements share a scale."""
    if type(value) is int and BLOCK_MIN <= value <= BLOCK_MAX and not value % BLOCK_STEP:
        return value
    step = f" that is a multiple of {BLOCK_STEP}"
    block = integer("block", value, BLOCK_MIN, BLOCK_MAX, step)
    if block % BLOCK_STEP:
        raise KernelError(f"block is {block}; allowed: an integer from {BLOCK_MIN} to {BLOCK_MAX}{step}")
    return block


def _array_fault(name: str, array: Any, dtype: np.dtype[Any]) -> str:
    if not isinstance(array, np.ndarray):
        return f"{name} is a {type(array).__name__}; allowed: a numpy array of {dtype}"
    if array.dtype != dtype:
        return f"{name} has dtype {array.dtype}; allowed: {dtype} in native byte order"
    if not array.flags.c_contiguous:
        return f"{name} has strides {array.strides} for shape {array.shape}; allowed: C-contiguous"
    if not array.flags.aligned:
        return f"{name} starts at {array.ctypes.data:#x}; allowed: aligned to {dtype.itemsize} bytes"
    return f"{name} is read-only; allowed: a writable array, since it is changed in place"
