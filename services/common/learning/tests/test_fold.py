"""The fixed-point accumulator: order, error bound, and what it refuses."""

import math
from fractions import Fraction

import numpy as np
import pytest

from services.common.kernels import Threads
from services.common.learning import encodings
from services.common.learning.encodings import ENCODINGS
from services.common.learning.fold import UNITS_PER_BOUND, Accumulator
from services.common.protocol.encodings import Encoding

N, DELTAS, BOUND = 257, 1000, 2.0**10


def drawn() -> tuple[list[np.ndarray], list[float], list[float]]:
    random = np.random.default_rng(4)
    deltas = [(random.normal(size=N) * 10.0 ** random.uniform(-6, 1)).astype(np.float32) for _ in range(DELTAS)]
    samples = random.integers(1, 100, DELTAS)
    weights = [int(s) / int(samples.sum()) for s in samples]
    clips = [1.0 if i % 3 else float(random.uniform(0.1, 1)) for i in range(DELTAS)]
    return deltas, weights, clips


def test_two_orders_of_a_thousand_deltas_give_equal_bits() -> None:
    deltas, weights, clips = drawn()
    means, totals = [], []
    for order in (range(DELTAS), np.random.default_rng(5).permutation(DELTAS)):
        accumulator = Accumulator(N, BOUND)
        for i in order:
            accumulator.fold(deltas[i], weights[i], clips[i])
        totals.append(accumulator.folded_weight)
        means.append(accumulator.mean(accumulator.folded_weight))
    assert totals[0] == totals[1]
    assert np.array_equal(means[0].view(np.uint32), means[1].view(np.uint32))


def test_a_large_delta_on_three_threads_gives_equal_bits() -> None:
    delta = np.random.default_rng(6).normal(size=3 * 2**20 + 7).astype(np.float32)
    threads, means = Threads(3), []
    for given in (None, threads):
        accumulator = Accumulator(len(delta), BOUND, given)
        accumulator.fold(delta, 0.7, 0.9)
        means.append(accumulator.mean(0.7))
    threads.close()
    assert np.array_equal(means[0].view(np.uint32), means[1].view(np.uint32))


def test_the_error_stays_below_the_bound_in_the_docstring() -> None:
    deltas, weights, clips = drawn()
    accumulator = Accumulator(N, BOUND)
    for delta, weight, clip in zip(deltas, weights, clips, strict=True):
        accumulator.fold(delta, weight, clip)
    accepted = math.fsum(weights)
    mean = accumulator.mean(accepted)
    for i in range(0, N, 16):
        terms = (
            Fraction(float(d[i])) * Fraction(w) * Fraction(c) for d, w, c in zip(deltas, weights, clips, strict=True)
        )
        exact = float(sum(terms, Fraction(0)) / Fraction(accepted))
        limit = DELTAS * 0.75 * BOUND / UNITS_PER_BOUND / accepted + abs(exact) * 2.0**-23
        assert abs(float(mean[i]) - exact) <= limit


def test_the_mean_divides_by_the_accepted_weight_and_reset_forgets() -> None:
    accumulator = Accumulator(3, 1.0)
    accumulator.fold(np.array([1.0, -0.5, 0.25], np.float32), 0.25, 1.0)
    assert accumulator.mean(0.25).tolist() == [1.0, -0.5, 0.25]
    accumulator.fold(np.array([0.0, 0.5, 0.25], np.float32), 0.25, 0.5)
    assert (accumulator.n, accumulator.bound, accumulator.folded_weight) == (3, 1.0, 0.5)
    assert accumulator.mean(0.5).tolist() == [0.5, -0.125, 0.1875]
    accumulator.reset()
    assert accumulator.folded_weight == 0
    accumulator.fold(np.ones(3, np.float32), 1.0, 1.0)
    assert accumulator.mean(1.0).tolist() == [1, 1, 1]


def test_entries_at_the_bound_with_full_weight_are_exact() -> None:
    accumulator = Accumulator(2, BOUND)
    accumulator.fold(np.array([BOUND, -BOUND], np.float32), 1.0, 1.0)
    assert accumulator.mean(1.0).tolist() == [BOUND, -BOUND]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("n", [0, 1, 257, 1025, 2 * encodings.RANGE + 1027])
def test_an_encoded_delta_is_folded_to_the_bits_of_its_values_in_any_order(encoding: Encoding, n: int) -> None:
    random = np.random.default_rng(n)
    deltas = [(random.normal(size=n) * 10.0**-i).astype(np.float32) for i in range(4)]
    encoded = [encodings.encode(encoding, delta, None) for delta in deltas]
    by_values, there, back = (Accumulator(n, BOUND) for _ in range(3))
    for i in range(4):
        by_values.fold(encodings.decode(encoding, encoded[i], n), 0.1 * (i + 1), 0.7)
        there.fold_encoded(encoding, encoded[i], 0.1 * (i + 1), 0.7)
        back.fold_encoded(encoding, encoded[3 - i], 0.1 * (4 - i), 0.7)
    expected = by_values.mean(0.9).view(np.uint32)
    assert np.array_equal(there.mean(0.9).view(np.uint32), expected)
    assert np.array_equal(back.mean(0.9).view(np.uint32), expected)
    assert n == 0 or expected.any()
    assert by_values.folded_weight == there.folded_weight == back.folded_weight


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_large_encoded_delta_on_three_threads_gives_equal_bits(encoding: Encoding) -> None:
    n, threads = 33 * encodings.RANGE + 1027, Threads(3)  # so large that topk keeps more than one range
    encoded = encodings.encode(encoding, np.random.default_rng(8).normal(size=n).astype(np.float32), None)
    by_values = Accumulator(n, BOUND)
    by_values.fold(encodings.decode(encoding, encoded, n), 0.7, 0.9)
    for given in (None, threads):
        accumulator = Accumulator(n, BOUND, given)
        accumulator.fold_encoded(encoding, encoded, 0.7, 0.9)
        assert np.array_equal(accumulator.mean(0.7).view(np.uint32), by_values.mean(0.7).view(np.uint32))
    threads.close()


def test_misuse_is_an_assertion() -> None:
    ones = np.ones(3, np.float32)
    for bound in (0.0, 3.0, -2.0, float("inf"), float("nan")):
        with pytest.raises(AssertionError):
            Accumulator(3, bound)
    accumulator = Accumulator(3, 2.0)
    for delta, weight, clip in ((ones[:2], 0.5, 1.0), (ones, -0.1, 1.0), (ones, 1.1, 1.0), (ones, 0.5, 1.5)):
        with pytest.raises(AssertionError):
            accumulator.fold(delta, weight, clip)
        with pytest.raises(AssertionError):
            accumulator.fold_encoded("fp32", delta.view(np.uint8), weight, clip)
    with pytest.raises(AssertionError):
        accumulator.fold_encoded("fp64", ones.view(np.uint8), 0.5, 1.0)  # type: ignore[arg-type]
    with pytest.raises(AssertionError):
        accumulator.mean(0.0)
    assert accumulator.folded_weight == 0
