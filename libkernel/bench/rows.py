"""What is timed: for each kernel our call, and the same work by NumPy and by others, on the same arrays.

Not for timing (timing.py) nor printing (bench.py). Others are imported only where they are installed; each is used as
its own documentation says one should, with memory given in advance wherever it can take it.
"""

import importlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from services.common import kernels

Call = Callable[[], object]
MIB = 1 << 20
BLOCK = 64
TOP_SHARE = 100  # one of so many entries is taken by top-k


def optional(name: str) -> ModuleType | None:
    """The module, if it is installed here."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


torch, blas, ml_dtypes = optional("torch"), optional("scipy.linalg.blas"), optional("ml_dtypes")


# Why a target is missed, found by taking something out of the kernel and timing what was left. Where the call from
# Python is all of it, the bench finds that by itself.
WHY_AXPY = "the kernel alone is as fast; at 1 MiB its call takes 6 us, not 2, since the arrays have filled the cache"
WHY_FINITE = "both wait for memory: only to load the 4 bytes an element takes as long; NumPy moves 6"
WHY_ADAMW = "both wait for memory, 28 bytes an element: without division and root it takes as long from 1 MiB on"
WHY_TO_BF16 = "both wait for memory: to load and store the same 6 bytes an element takes as long from 16 MiB on"
WHY_FROM_BF16 = "it waits for its stores: to load and store the same 6 bytes an element takes as long at every size"


@dataclass(frozen=True)
class Target:
    """Ours is to be at least so many times as fast as another, for arrays of at least `from_bytes`.

    `why`: what profiling found where it is missed.
    """

    other: str
    at_least: float
    from_bytes: int = 0
    why: str = ""


@dataclass(frozen=True)
class Row:
    """One kernel at one size. `bytes_moved`: read and written for an element, each array counted once for each."""

    kernel: str
    bytes_moved: float
    ours: Call
    others: dict[str, Call]
    targets: tuple[Target, ...] = ()
    tiers: bool = True  # whether plain C is timed as well


class Arrays:
    """The arrays of one size, shared by all rows, so that all work on the same pages."""

    def __init__(self, n: int) -> None:
        random = np.random.default_rng(n)
        self.n = n
        self.a, self.b, self.c, self.d, self.out = (random.uniform(-1, 1, n).astype(np.float32) for _ in range(5))
        self.v = np.abs(self.c)
        self.acc = np.zeros(n, np.int64)
        self.half = np.zeros(n, np.uint16)
        self.codes = random.integers(-127, 128, n).astype(np.int8)
        self.codes4 = random.integers(0, 256, kernels.q4_codes_size(n)).astype(np.uint8)
        self.scales = random.uniform(0.5, 1, kernels.scales_size(n, BLOCK)).astype(np.float32)


def rows(n: int, threads: kernels.Threads) -> Iterator[Row]:
    """Every row for arrays of `n` float32."""
    x = Arrays(n)
    yield axpy(x)
    yield from split(x, threads)
    yield finite(x)
    yield stats(x)
    yield fold(x)
    yield outer(x)
    yield adamw(x)
    yield from bf16(x)
    yield from quantise(x)
    yield from codes(x)
    yield topk(x)


def axpy(x: Arrays) -> Row:
    """The weighted sum; SGD is the same."""
    a, b, weight = x.a, x.b, 1e-3

    def numpy() -> None:
        a.__iadd__(np.float32(weight) * b)

    others: dict[str, Call] = {"numpy": numpy}
    if torch is not None:
        ta, tb = torch.from_numpy(a), torch.from_numpy(b)
        others["torch"] = lambda: ta.add_(tb, alpha=weight)
    if blas is not None:
        saxpy = blas.saxpy
        others["scipy"] = lambda: saxpy(b, a, a=weight)
    targets = (Target("torch", 0.95, MIB), Target("scipy", 0.95, MIB, WHY_AXPY), Target("numpy", 2.5, 64 * MIB))
    return Row("axpy", 12, lambda: kernels.reduce_add(a, b, weight), others, targets)


def split(x: Arrays, threads: kernels.Threads) -> Iterator[Row]:
    """One call over two threads beside the same call on one."""
    a, b, acc, size = x.a, x.b, x.acc, (Target("one thread", 1.0, 4 * MIB),)
    one: Call = lambda: kernels.reduce_add(a, b, 1e-3)  # noqa: E731
    two: Call = lambda: kernels.reduce_add(a, b, 1e-3, threads=threads)  # noqa: E731
    yield Row("axpy, 2 threads", 12, two, {"one thread": one}, size, tiers=False)
    one_fold: Call = lambda: kernels.fold(acc, b, 2.0**40)  # noqa: E731
    two_folds: Call = lambda: kernels.fold(acc, b, 2.0**40, threads=threads)  # noqa: E731
    yield Row("fold, 2 threads", 20, two_folds, {"one thread": one_fold}, size, tiers=False)


def finite(x: Arrays) -> Row:
    """The check that all is finite; ours gives the largest entry, too."""
    b = x.b
    others: dict[str, Call] = {"numpy": lambda: np.isfinite(b).all()}
    if torch is not None:
        tb = torch.from_numpy(b)
        others["torch"] = lambda: torch.isfinite(tb).all()
    targets = (Target("numpy", 2.0, why=WHY_FINITE),)
    return Row("finite check", 4, lambda: math.isfinite(kernels.absmax(b)), others, targets)


def stats(x: Arrays) -> Row:
    """What is not finite, the largest of the rest, and the sum of squares: more than a check, so without its target."""
    b = x.b

    def numpy() -> object:
        wide = b.astype(np.float64)
        return np.isfinite(b).all(), np.abs(b).max(), np.dot(wide, wide)

    return Row("finite, largest, norm", 4, lambda: kernels.stats(b), {"numpy": numpy})


def fold(x: Arrays) -> Row:
    """The fixed-point fold of a delta."""
    acc, b, scale = x.acc, x.b, 2.0**40

    def numpy() -> None:
        acc.__iadd__(np.rint(b.astype(np.float64) * scale).astype(np.int64))

    return Row("fold", 20, lambda: kernels.fold(acc, b, scale), {"numpy": numpy})


def outer(x: Arrays) -> Row:
    """Outer Nesterov momentum."""
    update, m, g, lr, mu = x.out, x.c, x.b, np.float32(0.7), np.float32(0.9)

    def numpy() -> None:
        np.multiply(m, mu, out=m)
        np.add(m, g, out=m)
        np.multiply(m, mu, out=update)
        np.add(update, g, out=update)
        np.multiply(update, lr, out=update)

    return Row("nesterov", 16, lambda: kernels.nesterov(update, m, g, 0.7, 0.9), {"numpy": numpy})


def adamw(x: Arrays) -> Row:
    """One AdamW step; NumPy's twelve passes are what MAHE did before it had the kernel."""
    params, m, v, g, work, direction = x.a, x.c, x.v, x.b, x.out, x.d
    numbers, t = kernels.AdamWNumbers(1e-3, 0.9, 0.999, 1e-8, 0.01), 100
    c = {name: np.float32(value) for name, value in numbers.fields(t).items()}

    def numpy() -> None:
        np.multiply(m, c["beta1"], out=m)
        np.multiply(g, c["rest1"], out=work)
        np.add(m, work, out=m)
        np.multiply(g, g, out=direction)
        np.multiply(v, c["beta2"], out=v)
        np.multiply(direction, c["rest2"], out=direction)
        np.add(v, direction, out=v)
        np.multiply(v, c["unbias2"], out=work)
        np.sqrt(work, out=work)
        np.add(work, c["eps"], out=work)
        np.multiply(m, c["unbias1"], out=direction)
        np.divide(direction, work, out=direction)
        np.multiply(params, c["weight_decay"], out=work)
        np.add(direction, work, out=direction)
        np.multiply(direction, c["lr"], out=direction)
        np.subtract(params, direction, out=params)

    others: dict[str, Call] = {"numpy": numpy}
    if torch is not None:
        fused, lists = torch._fused_adamw_, [[torch.from_numpy(one)] for one in (params, g, m, v)]
        steps = [torch.tensor(100.0)]

        def by_torch() -> None:
            fused(*lists, [], steps, lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.01, eps=1e-8, amsgrad=False,
                  maximize=False)  # fmt: skip

        others["torch"] = by_torch
    targets = (Target("torch", 1.2, why=WHY_ADAMW), Target("numpy", 5.0))
    return Row("adamw", 28, lambda: kernels.adamw(params, m, v, g, numbers, t), others, targets)


def bf16(x: Arrays) -> Iterator[Row]:
    """float32 to bfloat16 and back."""
    a, half, out = x.a, x.half, x.out
    there: dict[str, Call] = {}
    back: dict[str, Call] = {}
    if ml_dtypes is not None:
        typed = half.view(ml_dtypes.bfloat16)
        there["ml_dtypes"] = lambda: np.copyto(typed, a, casting="unsafe")
        back["ml_dtypes"] = lambda: np.copyto(out, typed, casting="unsafe")
    if torch is not None:
        ta, th, to = torch.from_numpy(a), torch.from_numpy(half).view(torch.bfloat16), torch.from_numpy(out)
        there["torch"] = lambda: th.copy_(ta)
        back["torch"] = lambda: to.copy_(th)
    there_target = Target("ml_dtypes", 3.0, why=WHY_TO_BF16)
    back_target = Target("ml_dtypes", 3.0, why=WHY_FROM_BF16)
    yield Row("bf16 from f32", 6, lambda: kernels.bf16_from_f32(half, a), there, (there_target,))
    yield Row("f32 from bf16", 6, lambda: kernels.f32_from_bf16(out, half), back, (back_target,))


def quantise(x: Arrays) -> Iterator[Row]:
    """Block quantisation with error feedback."""
    a, residual, codes8, codes4, scales = x.a, x.d, x.codes.copy(), x.codes4.copy(), x.scales.copy()

    def numpy() -> None:
        total = (a + residual).reshape(-1, BLOCK)
        step = np.abs(total).max(axis=1, keepdims=True) / np.float32(127)
        step[step == 0] = 1
        found = np.rint(total / step).astype(np.int8)
        residual[:] = (total - found * step).reshape(-1)
        codes8[:] = found.reshape(-1)

    others: dict[str, Call] = {"numpy": numpy}
    ours: Call = lambda: kernels.quantise_q8(codes8, scales, residual, a, residual, BLOCK)  # noqa: E731
    yield Row("int8 quantise", 13 + 4 / BLOCK, ours, others, (Target("numpy", 12.0),))
    ours = lambda: kernels.quantise_q4(codes4, scales, residual, a, residual, BLOCK)  # noqa: E731
    yield Row("int4 quantise", 12.5 + 4 / BLOCK, ours, {})


def codes(x: Arrays) -> Iterator[Row]:
    """From codes back: to values, added to values, folded into sums."""
    dst, acc, eight, four, scales, factor = x.out, x.acc, x.codes, x.codes4, x.scales, 2.0**30
    blocks, wide = eight.reshape(-1, BLOCK), scales.reshape(-1, 1)

    def numpy() -> None:
        np.multiply(blocks, wide, out=dst.reshape(-1, BLOCK))

    def numpy_add() -> None:
        dst.__iadd__((blocks * wide).reshape(-1) * np.float32(1e-3))

    def numpy_fold() -> None:
        values = (blocks * wide).reshape(-1).astype(np.float64)
        acc.__iadd__(np.rint(values * factor).astype(np.int64))

    ours: Call = lambda: kernels.dequantise_q8(dst, eight, scales, BLOCK)  # noqa: E731
    yield Row("int8 dequantise", 5 + 4 / BLOCK, ours, {"numpy": numpy})
    ours = lambda: kernels.dequantise_add_q8(dst, eight, scales, 1e-3, BLOCK)  # noqa: E731
    yield Row("int8 dequantise, add", 9 + 4 / BLOCK, ours, {"numpy": numpy_add})
    ours = lambda: kernels.fold_q8(acc, eight, scales, factor, BLOCK)  # noqa: E731
    yield Row("int8 fold", 17 + 4 / BLOCK, ours, {"numpy": numpy_fold}, (Target("numpy", 5.0, MIB),))
    ours = lambda: kernels.dequantise_add_q4(dst, four, scales, 1e-3, BLOCK)  # noqa: E731
    yield Row("int4 dequantise, add", 8.5 + 4 / BLOCK, ours, {})
    ours = lambda: kernels.fold_q4(acc, four, scales, factor, BLOCK)  # noqa: E731
    yield Row("int4 fold", 16.5 + 4 / BLOCK, ours, {})


def topk(x: Arrays) -> Row:
    """One in a hundred entries; moved are the four passes over them."""
    b, k = x.b, x.n // TOP_SHARE
    places, values = np.empty(k, np.uint32), np.empty(k, np.float32)

    def numpy() -> object:
        found = np.argpartition(np.abs(b), -k)[-k:]
        return found, b[found]

    others: dict[str, Call] = {"numpy": numpy}
    if torch is not None:
        tb = torch.from_numpy(b)

        def by_torch() -> object:
            found = torch.topk(tb.abs(), k, sorted=False).indices
            return found, tb[found]

        others["torch"] = by_torch
    return Row("top 1 %", 16, lambda: kernels.topk(b, k, places, values), others)
