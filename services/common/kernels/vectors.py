"""Weighted sums, the fixed-point fold and statistics of whole vectors."""

from collections.abc import Sequence
from typing import NamedTuple

from services.common.errors import KernelError, quoted
from services.common.kernels.arguments import (
    FLOAT32,
    INT64,
    Float32Array,
    Int64Array,
    check_apart,
    check_array,
    check_shape,
    float32_number,
    number,
)
from services.common.kernels.calls import call, expect_ok
from services.common.kernels.library import OVERLAP, library
from services.common.kernels.threads import Threads

FOLD_PRODUCT_MAX = 2.0**51


class Stats(NamedTuple):
    """What `stats` found: NaN and infinite entries, largest magnitude and sum of squares of the finite ones."""

    nonfinite: int
    absmax: float
    sum_squares: float


def reduce_add(dst: Float32Array, src: Float32Array, weight: float, *, threads: Threads | None = None) -> None:
    """`dst += float32(weight) * src` in place, bit for bit as NumPy does it. `dst is src` is allowed."""
    check_array("dst", dst, FLOAT32, writable=True)
    check_array("src", src, FLOAT32)
    check_shape("src", src, "dst", dst)
    numbers = (float32_number("weight", weight),)
    arrays = {"dst": dst, "src": src}
    call("mahe_reduce_add_f32", arrays, numbers, dst.size, written=1, twins=(("dst", "src"),), threads=threads)


def sgd_update(params: Float32Array, grad: Float32Array, lr: float, *, threads: Threads | None = None) -> None:
    """`params -= float32(lr) * grad` in place; the same bits as `reduce_add(params, grad, -lr)`."""
    check_array("params", params, FLOAT32, writable=True)
    check_array("grad", grad, FLOAT32)
    check_shape("grad", grad, "params", params)
    numbers = (float32_number("lr", lr),)
    arrays = {"params": params, "grad": grad}
    call("mahe_sgd_update_f32", arrays, numbers, params.size, written=1, twins=(("params", "grad"),), threads=threads)


def axpy_segments(pairs: Sequence[tuple[Float32Array, Float32Array]], weight: float) -> None:
    """`reduce_add(dst, src, weight)` for each pair in order, in one call: for a model of many small tensors.

    All are checked before the first is written. Pairs may touch each other; the later one sees what the earlier wrote.
    """
    factor = float32_number("weight", weight)
    opened = library()
    pointers = []
    segments = opened.ffi.new("mahe_segment[]", len(pairs))
    for i, pair in enumerate(pairs):
        try:
            dst, src = pair
        except (TypeError, ValueError):
            raise KernelError(f"pairs[{i}] is {quoted(pair)}; allowed: a pair of arrays (dst, src)") from None
        dst_name, src_name = f"pairs[{i}] dst", f"pairs[{i}] src"
        check_array(dst_name, dst, FLOAT32, writable=True)
        check_array(src_name, src, FLOAT32)
        check_shape(src_name, src, dst_name, dst)
        to, of = opened.pointer(dst), opened.pointer(src)
        pointers.append((to, of))
        segments[i] = (to, of, dst.size)
    status = opened.lib.mahe_axpy_segments_f32(segments, factor, len(pairs))
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
    check_array("acc", acc, INT64, writable=True)
    check_array("delta", delta, FLOAT32)
    check_shape("delta", delta, "acc", acc)
    call(
        "mahe_fold_f32_i64",
        {"acc": acc, "delta": delta},
        (number("scale", scale),),
        acc.size,
        written=1,
        threads=threads,
    )


def stats(x: Float32Array) -> Stats:
    """Counts, largest magnitude and sum of squares in one pass; the same bits on every machine.

    On one thread always: the sum has one order, which pieces would change.
    """
    check_array("x", x, FLOAT32)
    opened = library()
    out = opened.ffi.new("mahe_stats *")
    expect_ok("mahe_stats_f32", opened.lib.mahe_stats_f32(opened.pointer(x), x.size, out))
    return Stats(out.nonfinite, out.absmax, out.sum_squares)
