"""Random numbers that every machine draws alike: raw Philox bits, and the few exact things made of them.

Not for: `numpy.random.Generator` methods, whose streams may change between NumPy versions. Only the raw 64-bit output
of Philox 4x64-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011) is used; it is fixed by the
paper.
"""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

SEED_MAX = 2**63 - 1


class Purpose(IntEnum):
    """What a stream of bits is for; two purposes never share bits, whatever the seed."""

    PARAMETERS = 1
    PERMUTATION = 2
    BATCHES = 3
    SPLIT = 4
    GENERATOR = 5


def raw_bits(purpose: Purpose, seed: int, a: int, b: int, n: int) -> npt.NDArray[np.uint64]:
    """`n` raw 64-bit words of the stream (purpose, seed, a, b); seed, a and b lie in 0..2^63-1."""
    key = np.array([seed, int(purpose)], dtype=np.uint64)
    counter = np.array([0, 0, a, b], dtype=np.uint64)  # the low words count; a and b name the stream
    return np.random.Philox(key=key, counter=counter).random_raw(n)


def shuffled(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The permutation that sorts `words`; equal words keep their order, so the result is fixed by the words alone."""
    return np.argsort(words, kind="stable").astype(np.int64, copy=False)


def unit_uniforms(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Uniform numbers in [0, 1) from the upper 53 bits of each word; exact, so equal on every CPU."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
