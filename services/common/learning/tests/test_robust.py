"""Trimmed mean and median against formulas on Python numbers."""

import itertools
import statistics
from fractions import Fraction

import numpy as np
import pytest

from services.common.learning.robust import coordinate_median, trimmed_mean

COLUMNS = 300


def drawn(workers: int) -> np.ndarray:
    """Magnitudes from 1e-6 to 1e3, some columns with ties and with both zeros."""
    random = np.random.default_rng(workers)
    stack = random.normal(size=(workers, COLUMNS)) * 10.0 ** random.uniform(-6, 3, COLUMNS)
    stack[:, 0] = np.round(stack[:, 0])
    stack[:, 1] = 0.0
    stack[::2, 1] = -0.0
    return stack.astype(np.float32)


@pytest.mark.parametrize(("workers", "trim"), [(1, 0), (3, 1), (4, 1), (8, 0), (8, 1), (8, 2), (8, 3), (9, 4)])
def test_the_trimmed_mean_is_the_mean_of_what_is_left_rounded_once(workers: int, trim: int) -> None:
    stack = drawn(workers)
    found = trimmed_mean(stack, trim)
    kept = [sorted(column)[trim : workers - trim] for column in stack.T.tolist()]
    expected = [float(sum(map(Fraction, values)) / len(values)) for values in kept]
    np.testing.assert_allclose(found, expected, rtol=6e-8)
    assert found.dtype == np.float32 and found.shape == (COLUMNS,)


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7, 8])
def test_the_median_is_the_middle_one_or_the_mean_of_the_middle_two(workers: int) -> None:
    stack = drawn(workers)
    expected = np.array([statistics.median(column) for column in stack.T.tolist()]).astype(np.float32)
    assert np.array_equal(coordinate_median(stack), expected)


def test_large_entries_of_an_even_median_do_not_overflow() -> None:
    assert coordinate_median(np.full((2, 1), 3e38, np.float32))[0] == np.float32(3e38)


def test_any_order_of_the_rows_gives_the_same_bits_and_the_stack_stays() -> None:
    stack = drawn(5)
    before = stack.copy()
    for order in itertools.permutations(range(5)):
        mixed = stack[list(order)]
        assert trimmed_mean(mixed, 1).tobytes() == trimmed_mean(stack, 1).tobytes()
        assert coordinate_median(mixed).tobytes() == coordinate_median(stack).tobytes()
    assert np.array_equal(stack, before)


def test_trimmed_workers_count_for_nothing_whatever_they_send() -> None:
    honest = drawn(6)
    low, high = np.full((1, COLUMNS), -3e38, np.float32), np.full((1, COLUMNS), 3e38, np.float32)
    found = trimmed_mean(np.concatenate([low, honest, high]), 1)
    assert np.array_equal(found, trimmed_mean(honest, 0))
    median = coordinate_median(np.concatenate([honest[:5], high, high]))
    assert (median <= honest[:5].max(axis=0)).all() and (median >= honest[:5].min(axis=0)).all()


@pytest.mark.parametrize(("workers", "trim"), [(2, 1), (4, 2), (3, -1)])
def test_a_trim_that_leaves_nothing_is_an_assertion(workers: int, trim: int) -> None:
    with pytest.raises(AssertionError):
        trimmed_mean(drawn(workers), trim)
