"""The kernels through Python: bit for bit what NumPy computes, on every tier, and what they refuse."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from services.common.errors import KernelError
from services.common.kernels import Stats, fold, kernel_impl, reduce_add, sgd_update, stats
from services.common.kernels.library import library, set_tier

Float32Array = npt.NDArray[np.float32]

LENGTHS = [0, 1, 3, 7, 8, 15, 16, 17, 31, 33, 100, 1023, 4096, 100_003]
SPECIAL = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-39, 3.4e38, -3.4e38, 1, -1, 1.1754944e-38], np.float32)


@pytest.fixture(params=["scalar", "avx2"])
def tier(request: pytest.FixtureRequest) -> Iterator[str]:
    before = kernel_impl()
    try:
        set_tier(library(), request.param)
    except KernelError as error:
        pytest.skip(str(error))
    yield request.param
    set_tier(library(), before)


def uniform(n: int, seed: int) -> Float32Array:
    return np.random.default_rng(seed).uniform(-1, 1, n).astype(np.float32)


def any_exponent(n: int, seed: int) -> Float32Array:
    """Random bits: every exponent, with NaN and infinities among them."""
    bits = np.random.default_rng(seed).integers(0, 2**32, n, dtype=np.uint32)
    return bits.view(np.float32)


def assert_same_bits(got: Float32Array, expected: Float32Array) -> None:
    nan = np.isnan(expected)
    assert np.array_equal(np.isnan(got), nan)
    assert np.array_equal(got[~nan].view(np.uint32), expected[~nan].view(np.uint32))


def test_the_tier_is_reported(tier: str) -> None:
    assert kernel_impl() == tier


@pytest.mark.parametrize("make", [uniform, any_exponent])
@pytest.mark.parametrize("n", LENGTHS)
def test_reduce_add_is_numpy(tier: str, n: int, make: Callable[[int, int], Float32Array]) -> None:
    dst, src = make(n, 1), make(n, 2)
    for weight in (0.3, -1.0, 0.0, 1e-40, 3e38):
        with np.errstate(all="ignore"):
            expected = dst + np.float32(weight) * src
        got = dst.copy()
        reduce_add(got, src, weight)
        assert_same_bits(got, expected)


def test_reduce_add_of_special_values(tier: str) -> None:
    dst, src = np.repeat(SPECIAL, SPECIAL.size), np.tile(SPECIAL, SPECIAL.size)
    with np.errstate(all="ignore"):
        expected = dst + np.float32(0.5) * src
    reduce_add(dst, src, 0.5)
    assert_same_bits(dst, expected)


def test_reduce_add_to_itself(tier: str) -> None:
    both = uniform(1000, 3)
    expected = both + np.float32(0.1) * both
    reduce_add(both, both, 0.1)
    assert_same_bits(both, expected)


@pytest.mark.parametrize("n", LENGTHS)
def test_sgd_update_is_reduce_add_of_minus_lr(tier: str, n: int) -> None:
    params, grad = uniform(n, 4), uniform(n, 5)
    expected, twin = params - np.float32(0.05) * grad, params.copy()
    reduce_add(twin, grad, -0.05)
    sgd_update(params, grad, 0.05)
    assert_same_bits(params, expected)
    assert_same_bits(params, twin)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("scale", [1.0, 0.5, 2.0**50 / 3, -12345.678, 2.0**51, 0.0])
def test_fold_is_numpy(tier: str, n: int, scale: float) -> None:
    delta = uniform(n, 6)
    if n > 8:
        delta[:9] = [1.0, -1.0, 0.5, -0.5, 0.0, -0.0, 1e-45, 1 - 2.0**-24, 2.0**-51]
    acc = np.random.default_rng(7).integers(-(2**62), 2**62, n)
    expected = acc + np.rint(delta.astype(np.float64) * scale).astype(np.int64)
    fold(acc, delta, scale)
    assert np.array_equal(acc, expected)


def test_fold_breaks_ties_to_even(tier: str) -> None:
    acc = np.zeros(12, np.int64)
    fold(acc, np.array([0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5, 0.49, 0.51, 4.5, 5.5, -4.5], np.float32), 1.0)
    assert acc.tolist() == [0, 2, 2, 4, 0, -2, -2, 0, 1, 4, 6, -4]


def test_fold_does_not_depend_on_the_order(tier: str) -> None:
    deltas = [uniform(501, seed) for seed in range(6)]
    there, back = np.zeros(501, np.int64), np.zeros(501, np.int64)
    for delta in deltas:
        fold(there, delta, 2.0**50 / 6)
    for delta in reversed(deltas):
        fold(back, delta, 2.0**50 / 6)
    assert np.array_equal(there, back)


def stats_by_numpy(x: Float32Array) -> Stats:
    """The words of the header in NumPy: 16 lanes, then halves."""
    finite = np.where(np.isfinite(x), x, np.float32(0)).astype(np.float64)
    rows = np.zeros((-(-x.size // 16), 16))
    rows.reshape(-1)[: x.size] = finite * finite
    lanes = np.zeros(16)
    for row in rows:
        lanes += row
    for step in (8, 4, 2, 1):
        lanes[:step] += lanes[step : 2 * step]
    return Stats(int(np.count_nonzero(~np.isfinite(x))), float(np.abs(finite).max(initial=0.0)), float(lanes[0]))


@pytest.mark.parametrize("make", [uniform, any_exponent])
@pytest.mark.parametrize("n", LENGTHS)
def test_stats_is_numpy(tier: str, n: int, make: Callable[[int, int], Float32Array]) -> None:
    x = make(n, 8)
    assert stats(x) == stats_by_numpy(x)


def test_stats_of_nothing_finite(tier: str) -> None:
    assert stats(np.full(40, np.nan, np.float32)) == Stats(40, 0.0, 0.0)
    assert stats(np.tile(SPECIAL, 3)).nonfinite == 9


def test_arrays_of_any_shape_and_offset(tier: str) -> None:
    whole = uniform(1000, 9)
    part = whole[3:603].reshape(20, 30)
    expected = part + np.float32(2) * part
    reduce_add(part, part.copy(), 2.0)
    assert np.array_equal(part, expected)
    assert np.array_equal(whole[:3], uniform(1000, 9)[:3])
    assert np.array_equal(whole[603:], uniform(1000, 9)[603:])


def test_threads_do_not_disturb_one_another() -> None:
    src = uniform(50_000, 10)
    expected = uniform(50_000, 11) + np.float32(0.7) * src

    def once(_: int) -> bool:
        dst = uniform(50_000, 11)
        reduce_add(dst, src, 0.7)
        return np.array_equal(dst, expected)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(once, range(32)))


def readonly(n: int) -> Float32Array:
    array = np.zeros(n, np.float32)
    array.flags.writeable = False
    return array


def unaligned(n: int) -> Float32Array:
    return np.zeros(4 * n + 1, np.uint8)[1:].view(np.float32)


GOOD = np.zeros(8, np.float32)
BAD_ARRAYS: list[tuple[Any, str]] = [
    ([0.0] * 8, "is a list; allowed: a numpy array of float32"),
    (np.zeros(8, np.float64), "has dtype float64; allowed: float32"),
    (np.zeros(8, ">f4"), "has dtype >f4; allowed: float32 in native byte order"),
    (np.zeros(8, np.int32), "has dtype int32"),
    (np.zeros(16, np.float32)[::2], "allowed: C-contiguous"),
    (np.zeros((4, 4), np.float32).T[:, :2], "allowed: C-contiguous"),
    (unaligned(8), "allowed: aligned to 4 bytes"),
]


@pytest.mark.parametrize(("bad", "sentence"), BAD_ARRAYS)
def test_a_wrong_array_is_named(bad: Any, sentence: str) -> None:
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("dst", lambda: reduce_add(bad, GOOD, 1.0)),
        ("src", lambda: reduce_add(GOOD.copy(), bad, 1.0)),
        ("params", lambda: sgd_update(bad, GOOD, 1.0)),
        ("grad", lambda: sgd_update(GOOD.copy(), bad, 1.0)),
        ("delta", lambda: fold(np.zeros(8, np.int64), bad, 1.0)),
        ("x", lambda: stats(bad)),
    ]
    for name, call in calls:
        with pytest.raises(KernelError) as caught:
            call()
        assert caught.value.sentence.startswith(f"{name} ")
        assert sentence in caught.value.sentence


def test_a_wrong_accumulator_is_named() -> None:
    with pytest.raises(KernelError, match="acc has dtype float32; allowed: int64"):
        fold(np.zeros(8, np.float32), GOOD, 1.0)


def test_a_read_only_target_is_refused() -> None:
    with pytest.raises(KernelError, match="dst is read-only"):
        reduce_add(readonly(8), GOOD, 1.0)
    with pytest.raises(KernelError, match="params is read-only"):
        sgd_update(readonly(8), GOOD, 1.0)
    reduce_add(GOOD.copy(), readonly(8), 1.0)
    assert stats(readonly(8)) == Stats(0, 0.0, 0.0)


def test_another_shape_is_refused() -> None:
    with pytest.raises(KernelError, match=r"src has shape \(7,\); allowed: the shape of dst, \(8,\)"):
        reduce_add(np.zeros(8, np.float32), np.zeros(7, np.float32), 1.0)
    with pytest.raises(KernelError, match="delta has shape"):
        fold(np.zeros(8, np.int64), np.zeros((2, 4), np.float32), 1.0)


def test_partial_overlap_is_refused() -> None:
    room = np.zeros(16, np.float32)
    with pytest.raises(KernelError, match="src overlaps dst in memory; allowed: src is dst, or no common memory"):
        reduce_add(room[:8], room[1:9], 1.0)
    with pytest.raises(KernelError, match="grad overlaps params"):
        sgd_update(room[4:12], room[:8], 1.0)
    with pytest.raises(KernelError, match="delta overlaps acc in memory; allowed: no common memory"):
        fold(room.view(np.int64), room[:8], 1.0)
    reduce_add(room[:8], room[8:], 1.0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, None, "1", True, 1j, 10**400])
def test_a_factor_that_is_no_finite_number_is_refused(value: Any) -> None:
    with pytest.raises(KernelError, match=r"weight is .*; allowed: a finite number"):
        reduce_add(np.zeros(8, np.float32), GOOD, value)
    with pytest.raises(KernelError, match=r"lr is .*; allowed: a finite number"):
        sgd_update(np.zeros(8, np.float32), GOOD, value)
    with pytest.raises(KernelError, match=r"scale is .*; allowed: a finite number"):
        fold(np.zeros(8, np.int64), GOOD, value)


def test_a_factor_beyond_float32_is_refused() -> None:
    with pytest.raises(KernelError, match="weight is 1e\\+39; allowed: a number in the range of float32"):
        reduce_add(np.zeros(8, np.float32), GOOD, 1e39)
    fold(np.zeros(8, np.int64), GOOD, 1e39)
