"""Which examples a shard holds: positions in the endless stream of training examples, and the batches made of them.

Position p of the stream is example `permutation(seed, p // n)[p % n]`: every epoch is a new permutation of the n
training examples. A *range* is (start, stop) in the stream; a shard is a list of ranges. Pure: a function of its
arguments alone, so master and workers agree by sending ranges, never examples. Cutting ranges is the core's work.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from services.common.learning.bits import Purpose, raw_bits, shuffled
from services.common.learning.parameters import Ints

Range = tuple[int, int]

PERMUTATIONS_CACHED = 4
"""Epochs kept in memory; a shard rarely touches more than two."""


@lru_cache(maxsize=PERMUTATIONS_CACHED)
def permutation(seed: int, epoch: int, n: int) -> Ints:
    """The order of the n examples in `epoch`: int64[n], read-only and shared. Philox words sorted stably."""
    order = shuffled(raw_bits(Purpose.PERMUTATION, seed, epoch, 0, n))
    order.setflags(write=False)
    return order


def indices(seed: int, n: int, ranges: Sequence[Range]) -> Ints:
    """The example of every position of `ranges`, in order: a new int64[sum of lengths]; ranges may cross epochs."""
    parts = [np.empty(0, dtype=np.int64)]
    for start, stop in ranges:
        assert 0 <= start <= stop, f"range ({start}, {stop}) is not in the stream"
        position = start
        while position < stop:
            epoch, offset = divmod(position, n)
            length = min(n - offset, stop - position)
            parts.append(permutation(seed, epoch, n)[offset : offset + length])
            position += length
    return np.concatenate(parts)


def batches(seed: int, round_index: int, shard: int, indices: Ints, batch: int) -> Iterator[Ints]:
    """The shard's examples shuffled by Philox(seed, round, shard), in batches of `batch`; the last may be smaller."""
    assert batch >= 1, f"batch is {batch}; at least 1 is needed"
    order = indices[shuffled(raw_bits(Purpose.BATCHES, seed, round_index, shard, len(indices)))]
    for start in range(0, len(order), batch):
        yield order[start : start + batch]
