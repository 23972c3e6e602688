"""Where the parts of an encoded vector lie: the bytes that travel, and that any other language can read.

    fp32  n float32
    bf16  n uint16: the upper half of a float32
    int8  ceil(n / 1024) float32 scales, then n int8 codes -127..127
    int4  ceil(n / 1024) float32 scales, then ceil(n / 2) bytes: entry 2 i in the low half, 2 i + 1 in the high half,
          each as code + 8 with codes -7..7; with n odd the last high half is 8
    topk  k = ceil(n / 32) uint32 places, strictly ascending; ceil(k / 1024) float32 scales, then k int8 codes
          -127..127: the kept entries in the order of their places; all others are 0

All little-endian and without gaps; scale j is that of codes 1024 j to 1024 j + 1023, and a value is
float32(code) * scale, rounded once to float32. Every part starts at a multiple of its own element size.
Not for what the numbers are: `encodings.py` makes and reads them.
"""

import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from services.common.kernels import q4_codes_size, scales_size
from services.common.learning.parameters import Floats
from services.common.protocol.encodings import BLOCK, ENCODINGS, Encoding, topk_count

Bytes = npt.NDArray[np.uint8]
"""An encoded vector: uint8, one-dimensional and contiguous."""

HUGE = 2.0**120
"""From this magnitude on a value is refused, and a scale too, so what is decoded is finite (the kernels' own limit)."""
ENTRIES_MAX = 2**32 - 1
"""Places are uint32."""

_CODES: dict[str, np.dtype[Any]] = {
    "fp32": np.dtype(np.float32),
    "bf16": np.dtype(np.uint16),
    "int8": np.dtype(np.int8),
    "int4": np.dtype(np.uint8),
    "topk": np.dtype(np.int8),
}


class Parts(NamedTuple):
    """Views of an encoded vector; what an encoding does not have is empty."""

    places: npt.NDArray[np.uint32]
    scales: Floats
    codes: npt.NDArray[Any]


def cut(encoding: Encoding, encoded: Bytes, n: int) -> Parts:
    """The parts of `encoded`, of the right length for `n` entries: views, unless it starts at an odd address."""
    assert sys.byteorder == "little", "the kernels take numbers in the machine's order; the wire is little-endian"
    assert encoded.dtype == np.uint8 and encoded.ndim == 1 and encoded.flags.c_contiguous, "contiguous uint8 is needed"
    sizes = _sizes(encoding, n)
    assert encoded.size == sum(sizes), f"{encoding} of {n} entries has {sum(sizes)} bytes, not {encoded.size}"
    if encoded.ctypes.data % np.dtype(np.float32).itemsize:
        encoded = encoded.copy()  # a slice of a message: the kernels need aligned elements
    scales, codes = sizes[0], sizes[0] + sizes[1]
    return Parts(
        encoded[:scales].view(np.uint32), encoded[scales:codes].view(np.float32), encoded[codes:].view(_CODES[encoding])
    )


def block_scales(parts: Parts, start: int, stop: int) -> Floats:
    """The scales of codes start..stop, a view; `start` is a multiple of BLOCK."""
    return parts.scales[start // BLOCK : -(-stop // BLOCK)]


def _sizes(encoding: Encoding, n: int) -> tuple[int, int, int]:
    """Bytes of places, scales and codes."""
    assert encoding in ENCODINGS, f"encoding is {encoding}; one of {', '.join(ENCODINGS)} is needed"
    assert 0 <= n <= ENTRIES_MAX, f"{n} entries; at most {ENTRIES_MAX}"
    if encoding in ("fp32", "bf16"):
        return 0, 0, n * _CODES[encoding].itemsize
    if encoding == "topk":
        kept = topk_count(n)
        return 4 * kept, 4 * scales_size(kept, BLOCK), kept
    return 0, 4 * scales_size(n, BLOCK), n if encoding == "int8" else q4_codes_size(n)
