"""Every kernel through Python, on plain C and on the best tier: bit for bit what NumPy computes."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from services.common import kernels
from services.common.kernels import in_numpy, kernel_impl
from services.common.kernels.arguments import Float32Array
from services.common.kernels.cases import CASES, Draw, same_bits
from services.common.kernels.library import library, usable_tiers
from services.common.kernels.selftest import SPECIAL

LENGTHS = [0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 65, 100, 255, 257, 1023, 4096, 100_003]


def uniform(seed: int) -> Draw:
    random = np.random.default_rng(seed)
    return lambda n: random.uniform(-1, 1, n).astype(np.float32)


def any_bits(seed: int) -> Draw:
    """Every exponent, with NaN and infinities among them."""
    random = np.random.default_rng(seed)
    return lambda n: random.integers(0, 2**32, n, dtype=np.uint32).view(np.float32)


def special(seed: int) -> Draw:
    """Nothing but special values."""
    random = np.random.default_rng(seed)
    return lambda n: random.choice(SPECIAL, n)


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize("draw", [uniform, any_bits, special])
@pytest.mark.parametrize("name", CASES)
def test_it_is_numpy(name: str, draw: Callable[[int], Draw]) -> None:
    for n in LENGTHS:
        with np.errstate(all="ignore"):
            ours, expected = CASES[name](n, draw(n))
        got = ours()
        assert len(got) == len(expected)
        for i in range(len(expected)):
            same = same_bits(got[i], expected[i])
            assert got[i].dtype == expected[i].dtype
            assert same.all(), f"array {i} of {n}: {np.argmin(same)}"


def test_every_function_has_a_case() -> None:
    others = {"AdamWNumbers", "Stats", "Threads", "kernel_impl", "q4_codes_size", "scales_size"}
    assert set(kernels.__all__) - others == set(CASES)


def test_the_tier_is_reported(tier: str) -> None:
    assert kernel_impl() == ("scalar" if tier == "scalar" else usable_tiers(library())[-1])


@pytest.mark.usefixtures("tier")
def test_reduce_add_of_every_pair_of_special_values() -> None:
    dst, src = np.repeat(SPECIAL, SPECIAL.size), np.tile(SPECIAL, SPECIAL.size)
    for weight in (0.5, -1.0, 0.0, 1e-40, 3e38):
        with np.errstate(all="ignore"):
            expected = in_numpy.reduce_add(dst, src, weight)
        got = dst.copy()
        kernels.reduce_add(got, src, weight)
        assert same_bits(got, expected).all()


@pytest.mark.usefixtures("tier")
def test_exact_aliases() -> None:
    draw = uniform(3)
    both = draw(1000)
    expected = in_numpy.reduce_add(both, both, 0.1)
    kernels.reduce_add(both, both, 0.1)
    assert same_bits(both, expected).all()

    m, g = draw(1000), draw(1000)
    for kernel, numpy in ((kernels.momentum, in_numpy.momentum), (kernels.nesterov, in_numpy.nesterov)):
        update, new_m = numpy(m, g, 0.7, 0.9)
        got, got_m = g.copy(), m.copy()
        kernel(got, got_m, got, 0.7, 0.9)
        assert same_bits(got, update).all() and same_bits(got_m, new_m).all()

    x, residual = draw(1000), draw(1000)
    codes, scales, left = in_numpy.quantise(x, residual, 64, in_numpy.Q8_MAX)
    got_codes, got_scales = np.zeros_like(codes), np.zeros_like(scales)
    kernels.quantise_q8(got_codes, got_scales, residual, x, residual, 64)
    assert np.array_equal(got_codes, codes) and same_bits(got_scales, scales).all() and same_bits(residual, left).all()


@pytest.mark.usefixtures("tier")
def test_sgd_update_is_reduce_add_of_minus_lr() -> None:
    params, grad = uniform(4)(1001), any_bits(5)(1001)
    twin = params.copy()
    kernels.reduce_add(twin, grad, -0.05)
    kernels.sgd_update(params, grad, 0.05)
    assert same_bits(params, twin).all()


@pytest.mark.usefixtures("tier")
def test_segments_are_worked_in_order() -> None:
    whole = uniform(6)(300)
    expected = whole.copy()
    pairs = [(slice(0, 100), slice(100, 200)), (slice(50, 150), slice(200, 300)), (slice(7, 7), slice(9, 9))]
    kernels.axpy_segments([(whole[to], whole[of]) for to, of in pairs], 0.3)
    for to, of in pairs:
        expected[to] = in_numpy.reduce_add(expected[to], expected[of], 0.3)
    assert same_bits(whole, expected).all()
    kernels.axpy_segments([], 0.3)


@pytest.mark.usefixtures("tier")
def test_fold_breaks_ties_to_even_and_takes_up_to_2_to_the_51() -> None:
    acc = np.zeros(12, np.int64)
    kernels.fold(acc, np.array([0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5, 0.49, 0.51, 4.5, 5.5, -4.5], np.float32), 1.0)
    assert acc.tolist() == [0, 2, 2, 4, 0, -2, -2, 0, 1, 4, 6, -4]
    delta = np.array([1.0, -1.0, 0.5, -0.5, 0.0, -0.0, 1e-45, 1 - 2.0**-24, 2.0**-51], np.float32)
    for scale in (2.0**51, -(2.0**51), 2.0**50 / 3, -12345.678, 0.0):
        acc = np.random.default_rng(7).integers(-(2**62), 2**62, delta.size)
        expected = in_numpy.fold(acc, delta, scale)
        kernels.fold(acc, delta, scale)
        assert np.array_equal(acc, expected)


@pytest.mark.usefixtures("tier")
def test_fold_does_not_depend_on_the_order() -> None:
    deltas = [uniform(seed)(501) for seed in range(6)]
    there, back = np.zeros(501, np.int64), np.zeros(501, np.int64)
    for delta in deltas:
        kernels.fold(there, delta, 2.0**50 / 6)
    for delta in reversed(deltas):
        kernels.fold(back, delta, 2.0**50 / 6)
    assert np.array_equal(there, back)


@pytest.mark.usefixtures("tier")
def test_absmax_tells_whether_all_is_finite() -> None:
    x = uniform(8)(1000)
    assert kernels.absmax(x) == np.abs(x).max()
    for place in (0, 500, 999):
        for value in (np.inf, -np.inf, np.nan, -np.nan):
            worse = x.copy()
            worse[place] = value
            assert not math.isfinite(kernels.absmax(worse))
    assert math.copysign(1, kernels.absmax(np.zeros(0, np.float32))) == 1
    assert math.copysign(1, kernels.absmax(np.full(40, -0.0, np.float32))) == 1
    assert math.isnan(kernels.absmax(np.array([[np.inf, np.nan], [1, 2]], np.float32)))


@pytest.mark.usefixtures("tier")
def test_stats_of_nothing_finite() -> None:
    assert kernels.stats(np.full(40, np.nan, np.float32)) == (40, 0.0, 0.0)
    assert kernels.stats(np.tile(SPECIAL, 3)).nonfinite == 9
    assert kernels.stats(np.zeros(0, np.float32)) == (0, 0.0, 0.0)


@pytest.mark.usefixtures("tier")
def test_every_half_is_kept_by_bf16_and_back() -> None:
    halves = np.arange(2**16, dtype=np.uint16)
    wide, back = np.empty(2**16, np.float32), np.empty_like(halves)
    kernels.f32_from_bf16(wide, halves)
    kernels.bf16_from_f32(back, wide)
    quiet = np.where(np.isnan(wide), halves | 0x40, halves)
    assert np.array_equal(back, quiet)


@pytest.mark.usefixtures("tier")
def test_the_blocks_that_have_no_codes() -> None:
    """All zeros, too small, too large, not finite: beside a block that is plain."""
    x = np.zeros((5, 32), np.float32)
    x[1, 3], x[2, 4], x[3, 5], x[4] = -(2.0**-101), 2.0**120, np.nan, np.linspace(-1, 1, 32)
    codes, scales, left = np.ones(160, np.int8), np.ones(5, np.float32), np.ones_like(x)
    kernels.quantise_q8(codes, scales, left, x, None, 32)
    assert scales.view(np.uint32)[:4].tolist() == [0, 0, 0x7FC00000, 0x7FC00000]
    assert not codes[:128].any() and codes[128] == -127 and codes[159] == 127
    assert np.array_equal(left[:2], x[:2]) and not left[2:4].any() and np.abs(left[4]).max() <= scales[4] * 0.50002


@pytest.mark.usefixtures("tier")
def test_what_is_sent_and_what_is_left_over_are_all_of_it() -> None:
    random, x = uniform(8), uniform(9)(1000)
    residual, sent, given = np.zeros(1000, np.float32), np.zeros(1000), np.zeros(1000)
    codes, scales, values = np.empty(500, np.uint8), np.empty(16, np.float32), np.empty(1000, np.float32)
    for _ in range(50):
        x = random(1000)
        kernels.quantise_q4(codes, scales, residual, x, residual, 64)
        kernels.dequantise_q4(values, codes, scales, 64)
        sent += values
        given += x
    np.testing.assert_allclose(sent + residual, given, atol=50 * 2.0**-23)


@pytest.mark.usefixtures("tier")
def test_topk_takes_the_first_of_equal_ones_and_fills_given_arrays() -> None:
    x = np.array([[1, -3, 3, 0], [-3, np.nan, 2, -np.inf]], np.float32)
    places, values = np.zeros(4, np.uint32), np.zeros(4, np.float32)
    got = kernels.topk(x, 4, places, values)
    assert got[0] is places and got[1] is values
    assert places.tolist() == [1, 2, 5, 7]
    assert np.array_equal(values, x.reshape(-1)[places], equal_nan=True)
    assert kernels.topk(x, 8)[0].tolist() == list(range(8))
    assert kernels.topk(x, 0)[0].size == 0


@pytest.mark.usefixtures("tier")
def test_arrays_of_any_shape_and_offset() -> None:
    whole = uniform(9)(1000)
    before = whole.copy()
    part = whole[3:603].reshape(20, 30)
    expected = part + np.float32(2) * part
    kernels.reduce_add(part, part.copy(), 2.0)
    assert np.array_equal(part, expected)
    assert np.array_equal(whole[:3], before[:3]) and np.array_equal(whole[603:], before[603:])


def test_adamw_rounds_its_numbers_once() -> None:
    """1 - beta and the bias corrections in float64: what PyTorch does, and what a checkpoint of MAHE relies on."""
    zero: Float32Array = np.zeros(1, np.float32)
    numbers = kernels.AdamWNumbers(lr=1.0, beta1=0.9, beta2=0.999, eps=0.0, weight_decay=0.0)
    params, m, v = zero.copy(), zero.copy(), zero.copy()
    kernels.adamw(params, m, v, np.ones(1, np.float32), numbers, 7)
    assert (m[0], v[0]) == (np.float32(1 - 0.9), np.float32(1 - 0.999))
    m_hat = m * np.float32(1 / (1 - 0.9**7))
    assert params == -(m_hat / np.sqrt(v * np.float32(1 / (1 - 0.999**7))))


def test_the_numbers_of_adamw_are_those_of_their_step_in_any_order() -> None:
    """They keep C's memory from step to step: nothing of the last may be left in it."""
    draw, numbers = uniform(10), kernels.AdamWNumbers(1e-2, 0.9, 0.999, 1e-8, 0.01)
    for t, lr_scale in ((7, 0.25), (1, 1.0), (2, 0.0), (2, 1e3), (2**40, 1.0)):
        params, m, v, grad = draw(65), draw(65), np.abs(draw(65)), draw(65)
        scaled = kernels.AdamWNumbers(1e-2 * lr_scale, 0.9, 0.999, 1e-8, 0.01)
        expected = in_numpy.adamw(params, m, v, grad, scaled, t)
        kernels.adamw(params, m, v, grad, numbers, t, lr_scale)
        for got, right in zip((params, m, v), expected, strict=True):
            assert same_bits(got, right).all()
