"""A model's parameters as one flat float32 vector, and as named arrays that share its memory.

Everything that moves, folds, encodes or stores parameters sees the flat vector; only a model sees the names.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Targets = npt.NDArray[Any]
"""What is learnt, one a row: int64 labels 0..classes-1, or float32 numbers, standardised."""

TakePart = Callable[[int, Floats], None]
"""(start, gradient of the parameters from `start` on): uses it; the array is the model's, valid until it returns."""

CACHE_LINE_BYTES = 64


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each named array lies in the flat vector, in order and without gaps; offsets count elements."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    offsets: tuple[int, ...]
    n: int

    def views(self, flat: Floats) -> dict[str, Floats]:
        """The named arrays as views of `flat` (float32[n], C-contiguous): writing to one writes to the vector."""
        assert flat.shape == (self.n,), f"a vector of {self.n} is needed, not {flat.shape}"
        assert flat.dtype == np.float32, f"float32 is needed, not {flat.dtype}"
        assert flat.flags.c_contiguous, "a contiguous vector is needed: a view of it must not copy"
        return {
            name: flat[offset : offset + math.prod(shape)].reshape(shape)
            for name, shape, offset in zip(self.names, self.shapes, self.offsets, strict=True)
        }


def aligned_empty(*shape: int) -> Floats:
    """A new C-contiguous float32 array that starts at a cache line; its numbers are not set.

    NumPy's own start at any 16 bytes: then every second load or more touches two lines, and a step of training takes
    about 6 % longer. For what is read and written in every step.
    """
    n = math.prod(shape)
    room = np.empty(n + CACHE_LINE_BYTES // 4, dtype=np.float32)
    first = -room.ctypes.data % CACHE_LINE_BYTES // 4
    return room[first : first + n].reshape(shape)


def layout_of(arrays: Iterable[tuple[str, tuple[int, ...]]]) -> Layout:
    """The layout of (name, shape) pairs laid one after another."""
    names, shapes, offsets, n = [], [], [], 0
    for name, shape in arrays:
        names.append(name)
        shapes.append(shape)
        offsets.append(n)
        n += math.prod(shape)
    assert len(set(names)) == len(names), f"names must differ: {names}"
    return Layout(tuple(names), tuple(shapes), tuple(offsets), n)


def digest(params: Floats) -> str:
    """xxh3-128 of the vector's little-endian bytes, as 32 hex digits: equal exactly when two replicas are equal."""
    return bytes_digest(np.ascontiguousarray(params, dtype="<f4").view(np.uint8))


def bytes_digest(encoded: npt.NDArray[np.uint8]) -> str:
    """xxh3-128 of bytes as they are, as 32 hex digits."""
    return xxhash.xxh3_128_hexdigest(encoded.data)
