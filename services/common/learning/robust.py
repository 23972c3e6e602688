"""Aggregators that a few bad workers cannot lead astray: trimmed mean and coordinate-wise median.

They need all deltas of a round, decoded for one range of coordinates at a time. Not for what is not finite: that was
refused before; nor for the limit on a delta's norm, which goes with the streaming sum and is the coordinator's.
"""

import numpy as np
import numpy.typing as npt

from services.common.learning.parameters import Floats


def trimmed_mean(stack: Floats, trim: int) -> Floats:
    """Of each column of `stack` float32[w, r] the mean without its `trim` smallest and largest entries: float32[r].

    Yin et al., ICML 2018 (arXiv 1803.01498), definition 2; w > 2 * trim. Unweighted. The same bits for any order of the
    rows: the kept entries are summed from the smallest up in float64, then rounded. A zero comes out as +0.
    """
    workers, columns = stack.shape
    assert stack.dtype == np.float32, f"float32 is needed, not {stack.dtype}"
    assert trim >= 0 and workers > 2 * trim, f"{workers} deltas, {trim} trimmed at each side: none is left"
    total: npt.NDArray[np.float64] = np.zeros(columns, dtype=np.float64)
    for row in np.sort(stack, axis=0)[trim : workers - trim]:
        total += row
    mean: Floats = (total / (workers - 2 * trim)).astype(np.float32)
    return mean


def coordinate_median(stack: Floats) -> Floats:
    """The median of each column of `stack` float32[w, r], w >= 1: float32[r].

    Yin et al., ICML 2018, definition 1; for even w the mean of the middle two in float64, then rounded. Unweighted, the
    same bits for any order of the rows.
    """
    return trimmed_mean(stack, (len(stack) - 1) // 2)
