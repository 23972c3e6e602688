"""What a worker does around its local steps: follow the updates before, keep what the encoding left over after.

Pure numbers and bytes; the trainer process and the simulator's trainer have the files.
"""

from collections.abc import Sequence

import numpy as np
import xxhash

from services.common.learning.encodings import Bytes, decode
from services.common.learning.outer import apply_update
from services.common.learning.parameters import Floats, digest
from services.common.protocol.encodings import ENCODINGS, Encoding, down_encoding, encoded_bytes

SEAL_BYTES = 16
DOWN = tuple(dict.fromkeys(down_encoding(one) for one in ENCODINGS))


def encoding_of(update: Bytes, n: int) -> Encoding | None:
    """How an update of n values is encoded, which its length tells; None when it is of no encoding's length."""
    return next((one for one in DOWN if encoded_bytes(one, n) == update.size), None)


def follow(anchor: Floats, updates: Sequence[Bytes], expected: str) -> Floats | None:
    """The anchor after these updates, in order, as every replica applies them: a new float32[n], or `anchor` itself.

    Each may have another encoding: a run that finds its link too slow changes it. None when the end has not the digest
    `expected`: then the replica is another one, or an update is damaged.
    """
    followed = anchor.copy() if updates else anchor
    for encoded in updates:
        encoding = encoding_of(encoded, len(followed))
        if encoding is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            apply_update(followed, decode(encoding, encoded, len(followed)))
    return followed if digest(followed) == expected else None


def pack_residual(lineage: str, residual: Floats) -> tuple[bytes, memoryview]:
    """The residual as a file in two parts: xxh3-128 of the task's lineage and the values; these, as "<f4"."""
    values = np.ascontiguousarray(residual, dtype="<f4").data.cast("B")
    return _seal(lineage, values), values


def unpack_residual(lineage: str, raw: bytes, n: int) -> Floats | None:
    """float32[n] of `pack_residual`; None when it is of another lineage or length, or damaged: then nothing is owed."""
    values = memoryview(raw)[SEAL_BYTES:]
    if len(values) != 4 * n or raw[:SEAL_BYTES] != _seal(lineage, values):
        return None
    return np.frombuffer(values, dtype="<f4").astype(np.float32)


def _seal(lineage: str, values: memoryview) -> bytes:
    seal = xxhash.xxh3_128(lineage.encode() + b"\0")
    seal.update(values)
    return seal.digest()
