"""The sum of a round's deltas in int64 fixed point, so that it does not depend on the order of arrival.

One entry is a multiple of bound * 2^-50. Each delta adds rint(f64(delta) * f64(weight * clip * 2^50 / bound)); integer
sums commute, so any order gives the same bits, and memory does not grow with the number of workers. Nothing can be
taken out again: to redo a round, `reset` and fold anew. Not for medians and trimmed means, which need every delta.
"""

import math
from fractions import Fraction

import numpy as np

from services.common.kernels import Threads, f32_from_bf16, fold, fold_q4, fold_q8
from services.common.learning.encoded_layout import Bytes, cut
from services.common.learning.encoded_reading import RANGE, kept_values
from services.common.learning.parameters import Floats, Ints
from services.common.protocol.encodings import BLOCK, Encoding

UNITS_PER_BOUND = 2.0**50
"""Entries at most `bound` and weights that sum to 1 keep |sum| <= 2^50: exact in float64, far from 2^63."""
WEIGHT_SLACK = 1e-9
"""Weights are quotients; their sum may pass 1 by rounding."""
SUM_AT_ONCE = 1 << 16
"""Entries turned into float64 at a time by `mean`."""


class Accumulator:
    """The running sum for vectors of `n` entries with |entry| * clip <= `bound`, a power of two.

    A delta of some MiB is folded on several `threads` if they are given; the bits stay the same.
    """

    def __init__(self, n: int, bound: float, threads: Threads | None = None) -> None:
        assert bound > 0 and math.frexp(bound)[0] == 0.5, f"bound is {bound}; a power of two is needed"
        self._bound = float(bound)
        self._threads = threads
        self._sums: Ints = np.zeros(n, dtype=np.int64)
        self._weight = Fraction(0)

    @property
    def n(self) -> int:
        """Entries of one delta."""
        return len(self._sums)

    @property
    def bound(self) -> float:
        """The largest |entry| * clip that may be folded."""
        return self._bound

    @property
    def folded_weight(self) -> float:
        """The sum of the weights folded since the last reset; exact until this rounding, so free of order too."""
        return float(self._weight)

    def fold(self, delta: Floats, weight: float, clip: float) -> None:
        """Adds weight * clip * delta; `delta` is float32[n], only read.

        The caller has checked that every entry is finite and that |entry| * clip <= bound (kernel `stats`). `weight`
        is the shard's part of the samples assigned in the round, `clip` the factor 0..1 that limits the norm.
        """
        assert delta.shape == self._sums.shape, f"a delta of {self.n} entries is needed, not {delta.shape}"
        factor, total = self._with(weight, clip)
        fold(self._sums, delta, factor, threads=self._threads)
        self._weight = total

    def fold_encoded(self, encoding: Encoding, encoded: Bytes, weight: float, clip: float) -> None:
        """Adds weight * clip * the decoded delta: the bits of `decode`, then `fold`, without decoding it whole.

        `encoded` is only read. The caller has checked it for n entries (`encodings.check`), and that the largest entry
        times clip is at most the bound (`encodings.examine`).
        """
        factor, total = self._with(weight, clip)
        _fold_encoded(self._sums, encoding, encoded, factor, self._threads)
        self._weight = total

    def mean(self, weight_accepted: float) -> Floats:
        """The weighted mean, a new float32[n]: sum * bound / 2^50 / `weight_accepted` in float64, then rounded.

        `weight_accepted` is the sum of the accepted weights. The error against exact arithmetic is below
        (number of deltas) * 0.75 * bound / 2^50 / weight_accepted, and then the rounding to float32: per delta 1/2 unit
        for rint, 1/8 each for the rounded weight * clip and the rounded product.
        """
        assert weight_accepted > 0, "a mean of nothing"
        mean = np.empty(self.n, dtype=np.float32)
        scratch = np.empty(min(self.n, SUM_AT_ONCE), dtype=np.float64)
        for start in range(0, self.n, SUM_AT_ONCE):
            sums = self._sums[start : start + SUM_AT_ONCE]
            exact = np.multiply(sums, self._bound / UNITS_PER_BOUND, out=scratch[: len(sums)])
            np.divide(exact, weight_accepted, out=exact)
            mean[start : start + SUM_AT_ONCE] = exact
        return mean

    def reset(self) -> None:
        """Forgets everything folded."""
        self._sums.fill(0)
        self._weight = Fraction(0)

    def _with(self, weight: float, clip: float) -> tuple[float, Fraction]:
        """The factor of a delta's entries, and the sum of weights with it."""
        assert 0 <= clip <= 1, f"clip is {clip}; 0 to 1 is needed"
        total = self._weight + Fraction(weight)
        assert weight >= 0 and total <= 1 + WEIGHT_SLACK, f"weight {weight} makes {float(total)}; at most 1 in a round"
        return weight * clip * UNITS_PER_BOUND / self._bound, total


def _fold_encoded(sums: Ints, encoding: Encoding, encoded: Bytes, factor: float, threads: Threads | None) -> None:
    parts = cut(encoding, encoded, len(sums))
    if encoding == "fp32":
        fold(sums, parts.codes, factor, threads=threads)
    elif encoding == "int8":
        fold_q8(sums, parts.codes, parts.scales, factor, BLOCK, threads=threads)
    elif encoding == "int4":
        fold_q4(sums, parts.codes, parts.scales, factor, BLOCK, threads=threads)
    elif encoding == "bf16":
        scratch = np.empty(min(len(sums), RANGE), dtype=np.float32)
        for start in range(0, len(sums), RANGE):
            piece = sums[start : start + RANGE]
            f32_from_bf16(scratch[: len(piece)], parts.codes[start : start + RANGE])
            fold(piece, scratch[: len(piece)], factor)
    else:
        for start in range(0, parts.places.size, RANGE):
            places, values = kept_values(parts, start, min(start + RANGE, parts.places.size))
            picked = sums[places]  # the other entries are 0 and would add 0
            fold(picked, values, factor)
            sums[places] = picked
