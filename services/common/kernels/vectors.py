"""Weighted sums, the fixed-point fold and statistics of whole vectors."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from services.common.errors import KernelError, quoted
from services.common.kernels.arguments import (
    FLOAT32,
    INT64,
    Float32Array,
    Int64Array,
    check_apart,
    check_read,
    check_shape,
    check_written,
    float32_number,
    number,
)
from services.common.kernels.calls import Function, call, expect_ok
from services.common.kernels.library import OK, OVERLAP, library
from services.common.kernels.threads import Threads

FOLD_PRODUCT_MAX = 2.0**51
_REDUCE_ADD = Function("mahe_reduce_add_f32", {"dst": FLOAT32, "src": FLOAT32}, 1, (("dst", "src"),))
_SGD_UPDATE = Function("mahe_sgd_update_f32", {"params": FLOAT32, "grad": FLOAT32}, 1, (("params", "grad"),))
_FOLD = Function("mahe_fold_f32_i64", {"acc": INT64, "delta": FLOAT32}, 1)
_ABSMAX = Function("mahe_absmax_f32", {"x": FLOAT32}, 0, out="float")
_STATS = Function("mahe_stats_f32", {"x": FLOAT32}, 0, out="mahe_stats")


class Stats(NamedTuple):
    """What `stats` found: NaN and infinite entries, largest magnitude and sum of squares of the finite ones."""

    nonfinite: int
    absmax: float
    sum_squares: float


def reduce_add(dst: Float32Array, src: Float32Array, weight: float, *, threads: Threads | None = None) -> None:
    """`dst += float32(weight) * src` in place, bit for bit as NumPy does it. `dst is src` is allowed."""
    check_written("dst", dst, FLOAT32)
    check_read("src", src, FLOAT32)
    check_shape("src", src, "dst", dst)
    call(_REDUCE_ADD, (dst, src), (float32_number("weight", weight),), dst.size, threads)


def sgd_update(params: Float32Array, grad: Float32Array, lr: float, *, threads: Threads | None = None) -> None:
    """`params -= float32(lr) * grad` in place; the same bits as `reduce_add(params, grad, -lr)`."""
    check_written("params", params, FLOAT32)
    check_read("grad", grad, FLOAT32)
    check_shape("grad", grad, "params", params)
    call(_SGD_UPDATE, (params, grad), (float32_number("lr", lr),), params.size, threads)


def axpy_segments(pairs: Sequence[tuple[Float32Array, Float32Array]], weight: float) -> None:
    """`reduce_add(dst, src, weight)` for each pair in order, in one call: for a model of many small tensors.

    All are checked before the first is written. Pairs may touch each other; the later one sees what the earlier wrote.
    """
    factor = float32_number("weight", weight)
    found = library()
    floats = found.types[FLOAT32]
    pointers = []
    segments = found.ffi.new("mahe_segment[]", len(pairs))
    for i, pair in enumerate(pairs):
        try:
            dst, src = pair
        except (TypeError, ValueError):
            raise KernelError(f"pairs[{i}] is {quoted(pair)}; allowed: a pair of arrays (dst, src)") from None
        dst_name, src_name = f"pairs[{i}] dst", f"pairs[{i}] src"
        check_written(dst_name, dst, FLOAT32)
        check_read(src_name, src, FLOAT32)
        check_shape(src_name, src, dst_name, dst)
        to, of = found.from_buffer(floats, dst), found.from_buffer(floats, src)
        pointers.append((to, of))
        segments[i] = (to, of, dst.size)
    status = found.lib.mahe_axpy_segments_f32(segments, factor, len(pairs))
    del pointers  # they held the memory until here
    if status == OVERLAP:
        for i, (dst, src) in enumerate(pairs):
            dst_name, src_name = f"pairs[{i}] dst", f"pairs[{i}] src"
            check_apart([(dst_name, dst)], [(src_name, src)], [(dst_name, src_name)])
    expect_ok("mahe_axpy_segments_f32", status)


def fold(acc: Int64Array, delta: Float32Array, scale: float, *, threads: Threads | None = None) -> None:
    """`acc += rint(float64(delta) * scale)` in place, ties to even: one delta into a fixed-point accumulator.

    The caller makes sure that no |delta * scale| is above `FOLD_PRODUCT_MAX` and none is NaN (DESIGN section 3 bounds
    it by 2^50): this is not checked, and beyond it the value added is unspecified.
    """
    check_written("acc", acc, INT64)
    check_read("delta", delta, FLOAT32)
    check_shape("delta", delta, "acc", acc)
    call(_FOLD, (acc, delta), (number("scale", scale),), acc.size, threads)


def absmax(x: Float32Array) -> float:
    """The largest magnitude; infinity or NaN if there is any: `math.isfinite(absmax(x))` says whether all is finite.

    A NaN counts as larger than infinity; of no entries the largest is 0.
    """
    largest: float = _about(_ABSMAX, x)[0]
    return largest


def stats(x: Float32Array) -> Stats:
    """Counts, largest magnitude and sum of squares in one pass; the same bits on every machine.

    On one thread always: the sum has one order, which pieces would change.
    """
    out = _about(_STATS, x)
    return Stats(out.nonfinite, out.absmax, out.sum_squares)


def _about(function: Function, x: Float32Array) -> Any:
    """What the function writes about `x`."""
    check_read("x", x, FLOAT32)
    kernel, from_buffer, types = function.opened
    out = function.new_out()
    status = kernel(from_buffer(types[0], x), x.size, out)
    if status != OK:
        expect_ok(function.op, status)
    return out
