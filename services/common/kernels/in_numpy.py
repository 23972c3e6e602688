"""What each kernel computes, written with NumPy, which rounds each operation by itself as the header asks: the oracle
of the self-test and of the tests. Slow and plain; not for use in the services.

The functions return new arrays and change none. Signs and payloads of NaN are not part of the contract.
"""

import numpy as np
import numpy.typing as npt

from services.common.kernels.arguments import (
    Float32Array,
    Int8Array,
    Int64Array,
    Uint8Array,
    Uint16Array,
    Uint32Array,
)
from services.common.kernels.optimizers import AdamWNumbers
from services.common.kernels.vectors import Stats

MAGNITUDE = np.uint32(0x7FFFFFFF)
INFINITY = np.uint32(0x7F800000)
Q8_MAX, Q4_MAX = 127, 7
_ABSMAX_MIN, _ABSMAX_END = 2.0**-100, 2.0**120


def reduce_add(dst: Float32Array, src: Float32Array, weight: float) -> Float32Array:
    """The new `dst`."""
    return dst + np.float32(weight) * src


def fold(acc: Int64Array, delta: Float32Array, scale: float) -> Int64Array:
    """The new `acc`."""
    return acc + np.rint(delta.astype(np.float64) * scale).astype(np.int64)


def absmax(x: Float32Array) -> np.float32:
    """The largest of the bits without the sign."""
    largest = np.append(x.view(np.uint32) & MAGNITUDE, np.uint32(0)).max(keepdims=True)
    return np.float32(largest.view(np.float32)[0])


def stats(x: Float32Array) -> Stats:
    """Sixteen lanes, each summed in order; then halves."""
    finite = np.where(np.isfinite(x), x, np.float32(0)).astype(np.float64)
    rows = np.zeros((-(-x.size // 16) + 1, 16))
    rows.reshape(-1)[16 : 16 + x.size] = finite * finite  # the row of zeros stands for the lanes at the start
    lanes = np.add.accumulate(rows, axis=0)[-1]  # accumulate, not sum: it goes row by row
    for step in (8, 4, 2, 1):
        lanes[:step] += lanes[step : 2 * step]
    return Stats(int(np.count_nonzero(~np.isfinite(x))), float(np.abs(finite).max(initial=0.0)), float(lanes[0]))


def momentum(m: Float32Array, g: Float32Array, lr: float, mu: float) -> tuple[Float32Array, Float32Array]:
    """(update, the new m)."""
    new_m = np.float32(mu) * m + g
    return np.float32(lr) * new_m, new_m


def nesterov(m: Float32Array, g: Float32Array, lr: float, mu: float) -> tuple[Float32Array, Float32Array]:
    """(update, the new m)."""
    new_m = np.float32(mu) * m + g
    return np.float32(lr) * (g + np.float32(mu) * new_m), new_m


def adamw(
    params: Float32Array, m: Float32Array, v: Float32Array, grad: Float32Array, numbers: AdamWNumbers, t: int
) -> tuple[Float32Array, Float32Array, Float32Array]:
    """The new (params, m, v)."""
    c = {name: np.float32(value) for name, value in numbers.fields(t).items()}
    new_m = c["beta1"] * m + c["rest1"] * grad
    new_v = c["beta2"] * v + c["rest2"] * (grad * grad)
    below: Float32Array = np.sqrt(new_v * c["unbias2"]) + c["eps"]
    direction: Float32Array = np.divide(new_m * c["unbias1"], below) + params * c["weight_decay"]
    return params - c["lr"] * direction, new_m, new_v


def bf16_from_f32(src: Float32Array) -> Uint16Array:
    """Half of the last place kept, less one unless that place is odd, is added: the carry rounds."""
    bits = src.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    nan = bits & MAGNITUDE > INFINITY
    return (np.where(nan, bits | np.uint32(0x400000), rounded) >> np.uint32(16)).astype(np.uint16)


def f32_from_bf16(src: Uint16Array) -> Float32Array:
    """Exact."""
    return (src.astype(np.uint32) << np.uint32(16)).view(np.float32)


def quantise(
    x: Float32Array, residual: Float32Array | None, block: int, code_max: int
) -> tuple[Int8Array, Float32Array, Float32Array]:
    """(codes as int8, scales, new residual); `code_max` is 127 for q8, 7 for q4."""
    total = x.copy() if residual is None else x + residual
    starts = np.arange(0, x.size, block)
    absmax = np.maximum.reduceat(total.view(np.uint32) & MAGNITUDE, starts).view(np.float32)
    coded = (absmax >= _ABSMAX_MIN) & (absmax < _ABSMAX_END)  # a NaN is neither
    small = absmax < _ABSMAX_MIN
    scales = np.where(coded, absmax / np.float32(code_max), np.where(small, np.float32(0), np.float32(np.nan)))
    inverse = np.float32(code_max) / absmax
    per_block = np.repeat(np.arange(starts.size), block)[: x.size]
    codes = np.where(coded[per_block], np.rint(total * inverse[per_block]), 0).astype(np.int8)
    left = total - codes.astype(np.float32) * scales[per_block]
    left = np.where(coded[per_block], left, np.where(small[per_block], total, np.float32(0)))
    return codes, scales, left


def packed_q4(codes: Int8Array) -> Uint8Array:
    """Two codes to a byte, each plus 8, the first in the low half; a last half left over is code 0."""
    shifted = np.append(codes, np.zeros(codes.size % 2, np.int8)).astype(np.int16) + 8
    return (shifted[::2] | shifted[1::2] << 4).astype(np.uint8)


def unpacked_q4(codes: Uint8Array, n: int) -> Int8Array:
    """The `n` codes, -8..7."""
    halves = np.stack([codes & np.uint8(15), codes >> np.uint8(4)], axis=1).reshape(-1)[:n]
    return halves.astype(np.int8) - np.int8(8)


def dequantise(codes: Int8Array, scales: Float32Array, block: int) -> Float32Array:
    """The values of codes as int8."""
    return codes.astype(np.float32) * np.repeat(scales, block)[: codes.size]


def topk(x: Float32Array, k: int) -> tuple[Uint32Array, Float32Array]:
    """A stable sort by falling magnitude keeps equal ones in order."""
    falling: npt.NDArray[np.uint32] = ~(x.view(np.uint32) & MAGNITUDE)
    places = np.sort(np.argsort(falling, kind="stable")[:k])
    return places.astype(np.uint32), x[places]
