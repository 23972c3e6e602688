"""The k entries of the largest magnitude, for sparse deltas."""

import numpy as np

from services.common.errors import KernelError
from services.common.kernels.arguments import (
    FLOAT32,
    UINT32,
    Float32Array,
    Uint32Array,
    check_read,
    check_size,
    check_written,
    integer,
)
from services.common.kernels.calls import Function, call

ELEMENTS_MAX = 2**32 - 1
_TOPK = Function("mahe_topk_f32", {"indices": UINT32, "values": FLOAT32, "x": FLOAT32}, written=2)


def topk(
    x: Float32Array, k: int, indices: Uint32Array | None = None, values: Float32Array | None = None
) -> tuple[Uint32Array, Float32Array]:
    """The places of the `k` largest |x|, ascending, and their values: written into the given arrays, or into new ones.

    Places count through `x` in C order. Infinities, then NaNs, are the largest; of equal ones the lower places come
    first, so the answer is the same on every machine. `x` must not change during the call, by another thread or
    through shared memory: it is read several times, and C could then write beyond the `k` entries.
    """
    check_read("x", x, FLOAT32)
    if x.size > ELEMENTS_MAX:
        raise KernelError(f"x has {x.size} elements; allowed: up to {ELEMENTS_MAX}, since places are uint32")
    count = integer("k", k, 0, x.size, ", the elements of x")
    places = np.empty(count, dtype=UINT32) if indices is None else indices
    taken = np.empty(count, dtype=FLOAT32) if values is None else values
    check_written("indices", places, UINT32)
    check_written("values", taken, FLOAT32)
    check_size("indices", places, count, "k")
    check_size("values", taken, count, "k")
    call(_TOPK, (places, taken, x), (count,), x.size)
    return places, taken
