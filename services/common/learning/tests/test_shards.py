"""The stream of examples: every epoch a permutation, ranges that partition it, batches that partition a shard."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.learning.bits import SEED_MAX
from services.common.learning.shards import batches, indices, permutation

seeds = st.integers(0, SEED_MAX)
sizes = st.integers(1, 200)


@given(seeds, st.integers(0, 10**6), sizes)
@settings(deadline=None)
def test_every_epoch_is_a_permutation_and_the_same_when_asked_again(seed: int, epoch: int, n: int) -> None:
    order = permutation(seed, epoch, n)
    assert order.dtype == np.int64
    assert np.array_equal(np.sort(order), np.arange(n))
    permutation.cache_clear()
    assert np.array_equal(permutation(seed, epoch, n), order)


@given(seeds, sizes, st.integers(0, 1000), st.lists(st.integers(0, 300), min_size=1, max_size=8))
@settings(deadline=None)
def test_cut_anywhere_the_ranges_give_the_same_stream(seed: int, n: int, start: int, lengths: list[int]) -> None:
    edges = np.cumsum([start, *lengths]).tolist()
    ranges = list(pairwise(edges))
    whole = indices(seed, n, [(start, edges[-1])])
    assert np.array_equal(np.concatenate([indices(seed, n, [r]) for r in ranges]), whole)
    assert np.array_equal(indices(seed, n, ranges), whole)
    by_hand = [int(permutation(seed, p // n, n)[p % n]) for p in range(start, edges[-1])]
    assert whole.tolist() == by_hand


@given(seeds, sizes, st.lists(st.integers(0, 199), max_size=5), st.integers(0, 50))
@settings(deadline=None)
def test_ranges_that_partition_an_epoch_give_every_example_once(seed: int, n: int, cuts: list[int], epoch: int) -> None:
    edges = [0, *sorted(min(c, n) for c in cuts), n]
    ranges = [(epoch * n + a, epoch * n + b) for a, b in pairwise(edges)]
    assert sorted(indices(seed, n, ranges).tolist()) == list(range(n))


@given(seeds, st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 100), st.integers(1, 40))
@settings(deadline=None)
def test_batches_partition_the_shard_and_repeat(seed: int, round_: int, shard: int, n: int, batch: int) -> None:
    held = np.arange(n, dtype=np.int64) * 3 + 1
    made = list(batches(seed, round_, shard, held, batch))
    assert sorted(np.concatenate([*made, held[:0]]).tolist()) == held.tolist()
    assert all(len(b) == batch for b in made[:-1])
    assert all(1 <= len(b) <= batch for b in made)
    again = list(batches(seed, round_, shard, held, batch))
    assert all(np.array_equal(a, b) for a, b in zip(made, again, strict=True))


def test_the_orders_are_the_ones_every_release_must_give() -> None:
    assert permutation(7, 0, 10).tolist() == [6, 7, 8, 4, 0, 1, 5, 3, 9, 2]
    assert permutation(7, 1, 10).tolist() == [8, 4, 0, 7, 6, 5, 3, 1, 2, 9]
    assert [b.tolist() for b in batches(7, 3, 2, np.arange(10), 4)] == [[1, 3, 6, 4], [5, 9, 2, 8], [0, 7]]


def test_shuffles_differ_by_seed_round_and_shard() -> None:
    held = np.arange(50)
    named = [(s, r, h) for s in (0, 1) for r in (0, 1) for h in (0, 1)]
    assert len({tuple(np.concatenate(list(batches(*name, held, 8))).tolist()) for name in named}) == len(named)


def test_a_permutation_is_shared_and_read_only_but_indices_are_new() -> None:
    assert not permutation(1, 0, 5).flags.writeable
    indices(1, 5, [(0, 5)])[:] = 9
    assert sorted(permutation(1, 0, 5).tolist()) == [0, 1, 2, 3, 4]
    assert len(indices(1, 5, [])) == 0


def test_misuse_is_an_assertion() -> None:
    for bad in ((-1, 3), (4, 3)):
        with pytest.raises(AssertionError):
            indices(1, 5, [bad])
    with pytest.raises(AssertionError):
        list(batches(1, 1, 1, np.arange(5), 0))
