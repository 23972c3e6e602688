"""Every kernel beside its NumPy: for a length, what to run and what must come out. For the self-test and the tests."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from services.common import kernels
from services.common.kernels import in_numpy
from services.common.kernels.arguments import Float32Array, Int64Array

Array = npt.NDArray[Any]
Results = tuple[Array, ...]
Draw = Callable[[int], Float32Array]
"""Draws that many new values."""
Ready = tuple[Callable[[], Results], Results]
"""Our call, on copies of its inputs, so that it can be repeated; and what NumPy says."""
Case = Callable[[int, Draw], Ready]

BLOCKS = (32, 64, 256)
WEIGHT = 0.3
SCALE = 2.0**43  # of folds: with entries and scales of at most 1 and codes of at most 128, no product is beyond 2^51
STEP = 3


def same_bits(got: Array, expected: Array) -> npt.NDArray[np.bool_]:
    """Entry by entry; any NaN is as good as another."""
    if expected.dtype != np.float32:
        return np.asarray(got == expected)
    same = got.view(np.uint32) == expected.view(np.uint32)
    return np.asarray(same | (np.isnan(got) & np.isnan(expected)))


def _updated(kernel: Callable[..., None], arrays: Results, *rest: Any) -> Results:
    """Copies of `arrays` after the call `kernel(*copies, *rest)`."""
    copies = tuple(array.copy() for array in arrays)
    kernel(*copies, *rest)
    return copies


def _bounded(x: Float32Array) -> Float32Array:
    """With 0.5 for what is not in -1..1."""
    return np.where(np.abs(x) <= 1, x, np.float32(0.5))


def _sums(n: int) -> Int64Array:
    return np.arange(n, dtype=np.int64) * 0x1234567 - n


def _bytes(x: Float32Array) -> npt.NDArray[np.uint8]:
    """One byte for each entry: any of the 256."""
    return (x.view(np.uint32) >> np.uint32(5)).astype(np.uint8)


def _reduce_add(n: int, draw: Draw) -> Ready:
    dst, src = draw(n), draw(n)
    return partial(_updated, kernels.reduce_add, (dst,), src, WEIGHT), (in_numpy.reduce_add(dst, src, WEIGHT),)


def _sgd_update(n: int, draw: Draw) -> Ready:
    params, grad = draw(n), draw(n)
    return partial(_updated, kernels.sgd_update, (params,), grad, WEIGHT), (params - np.float32(WEIGHT) * grad,)


def _axpy_segments(n: int, draw: Draw) -> Ready:
    dst, src, cut = draw(n), draw(n), n // 3

    def segments(whole: Float32Array) -> None:
        kernels.axpy_segments([(whole[:cut], src[:cut]), (whole[cut:], src[cut:])], WEIGHT)

    return partial(_updated, segments, (dst,)), (in_numpy.reduce_add(dst, src, WEIGHT),)


def _fold(n: int, draw: Draw) -> Ready:
    acc, delta = _sums(n), _bounded(draw(n))
    return partial(_updated, kernels.fold, (acc,), delta, SCALE), (in_numpy.fold(acc, delta, SCALE),)


def _absmax(n: int, draw: Draw) -> Ready:
    x = draw(n)
    return lambda: (np.array([kernels.absmax(x)], np.float32),), (np.array([in_numpy.absmax(x)]),)


def _stats(n: int, draw: Draw) -> Ready:
    x = draw(n)
    return lambda: (np.array(kernels.stats(x)),), (np.array(in_numpy.stats(x)),)


def _outer(kernel: Callable[..., None], numpy: Callable[..., Results], n: int, draw: Draw) -> Ready:
    m, g = draw(n), draw(n)
    return partial(_updated, kernel, (np.zeros_like(g), m), g, 0.7, 0.9), numpy(m, g, 0.7, 0.9)


def _adamw(n: int, draw: Draw) -> Ready:
    params, m, v, grad = draw(n), draw(n), np.abs(draw(n)), draw(n)
    numbers = kernels.AdamWNumbers(lr=1e-2, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01)
    expected = in_numpy.adamw(params, m, v, grad, numbers, STEP)
    return partial(_updated, kernels.adamw, (params, m, v), grad, numbers, STEP), expected


def _bf16_from_f32(n: int, draw: Draw) -> Ready:
    src = draw(n)
    return partial(_updated, kernels.bf16_from_f32, (np.zeros(n, np.uint16),), src), (in_numpy.bf16_from_f32(src),)


def _f32_from_bf16(n: int, draw: Draw) -> Ready:
    src = (draw(n).view(np.uint32) >> np.uint32(9)).astype(np.uint16)
    return partial(_updated, kernels.f32_from_bf16, (np.zeros(n, np.float32),), src), (in_numpy.f32_from_bf16(src),)


def _quantise(n: int, draw: Draw, *, q4: bool) -> Ready:
    x, residual, block = draw(n), draw(n) if n % 2 else None, BLOCKS[n % 3]
    codes, scales, left = in_numpy.quantise(x, residual, block, in_numpy.Q4_MAX if q4 else in_numpy.Q8_MAX)
    expected: Results = (in_numpy.packed_q4(codes) if q4 else codes, scales, left)
    kernel: Callable[..., None] = kernels.quantise_q4 if q4 else kernels.quantise_q8
    return partial(_updated, kernel, tuple(map(np.zeros_like, expected)), x, residual, block), expected


def _coded(n: int, draw: Draw, *, q4: bool) -> tuple[Array, Float32Array, int, Float32Array]:
    """(codes, scales, block, the values they stand for)."""
    block = BLOCKS[n % 3]
    scales = _bounded(draw(kernels.scales_size(n, block)))
    codes: Array = _bytes(draw(kernels.q4_codes_size(n))) if q4 else _bytes(draw(n)).view(np.int8)
    return codes, scales, block, in_numpy.dequantise(in_numpy.unpacked_q4(codes, n) if q4 else codes, scales, block)


def _dequantise(n: int, draw: Draw, *, q4: bool) -> Ready:
    codes, scales, block, values = _coded(n, draw, q4=q4)
    kernel: Callable[..., None] = kernels.dequantise_q4 if q4 else kernels.dequantise_q8
    return partial(_updated, kernel, (np.zeros_like(values),), codes, scales, block), (values,)


def _dequantise_add(n: int, draw: Draw, *, q4: bool) -> Ready:
    codes, scales, block, values = _coded(n, draw, q4=q4)
    kernel: Callable[..., None] = kernels.dequantise_add_q4 if q4 else kernels.dequantise_add_q8
    dst = draw(n)
    expected = (in_numpy.reduce_add(dst, values, WEIGHT),)
    return partial(_updated, kernel, (dst,), codes, scales, WEIGHT, block), expected


def _fold_codes(n: int, draw: Draw, *, q4: bool) -> Ready:
    codes, scales, block, values = _coded(n, draw, q4=q4)
    kernel: Callable[..., None] = kernels.fold_q4 if q4 else kernels.fold_q8
    acc = _sums(n)
    return partial(_updated, kernel, (acc,), codes, scales, SCALE, block), (in_numpy.fold(acc, values, SCALE),)


def _topk(n: int, draw: Draw) -> Ready:
    x, k = draw(n), n // 3
    return lambda: kernels.topk(x, k), in_numpy.topk(x, k)


CASES: dict[str, Case] = {
    "reduce_add": _reduce_add,
    "sgd_update": _sgd_update,
    "axpy_segments": _axpy_segments,
    "fold": _fold,
    "absmax": _absmax,
    "stats": _stats,
    "momentum": partial(_outer, kernels.momentum, in_numpy.momentum),
    "nesterov": partial(_outer, kernels.nesterov, in_numpy.nesterov),
    "adamw": _adamw,
    "bf16_from_f32": _bf16_from_f32,
    "f32_from_bf16": _f32_from_bf16,
    "quantise_q8": partial(_quantise, q4=False),
    "quantise_q4": partial(_quantise, q4=True),
    "dequantise_q8": partial(_dequantise, q4=False),
    "dequantise_q4": partial(_dequantise, q4=True),
    "dequantise_add_q8": partial(_dequantise_add, q4=False),
    "dequantise_add_q4": partial(_dequantise_add, q4=True),
    "fold_q8": partial(_fold_codes, q4=False),
    "fold_q4": partial(_fold_codes, q4=True),
    "topk": _topk,
}
