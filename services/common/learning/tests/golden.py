"""The golden vectors of the wire: inputs made of integers alone, and what `golden_encodings.json` says of them.

`python -m services.common.learning.tests.golden` writes the file anew: only when the wire is meant to change.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from services.common.learning import encodings
from services.common.learning.bits import Purpose, raw_bits
from services.common.learning.encodings import ENCODINGS
from services.common.learning.outer import apply_update
from services.common.learning.parameters import Floats, digest
from services.common.protocol.encodings import Encoding

FILE = Path(__file__).with_name("golden_encodings.json")
SIZES = (1, 2, 5, 1024, 1025, 2500)
KINDS = ("zeros", "normal", "subnormals", "ties", "ties of int4", "huge")
WHOLE = ("normal", 1025)  # the one case that the file has byte for byte
HEX_BYTES_MAX = 24  # longer arrays are in the file as a digest
CHAIN_STEPS, CHAIN_N = 3, 1025
STATS_N = 2 * encodings.RANGE + 1027
UPDATES, UPDATES_N = 50, 5001
DOWN: tuple[Encoding, ...] = ("fp32", "bf16", "int8", "int4")

TIES = (127, 0.5, -0.5, 1.5, -1.5, 2.5, 63.5, -126.5, 1 + 2**-8, 1 + 3 * 2**-8, -127, -0.0)
TIES_OF_INT4 = (7, 0.5, -0.5, 1.5, -1.5, 2.5, -6.5, 5.5, -7, -0.0)
ABOUT = [
    "Encoded vectors: services/common/protocol/README.md says how they lie. Arrays are hexadecimal bytes,",
    "little-endian, or, when longer than 24 bytes, 'xxh3:' and the XXH3-128 of the bytes; NaN is 7fc00000.",
    "cases: per kind and n the input, then per encoding [encoded, decoded, residual] from a residual of zeros.",
    "whole: one case byte for byte. chain: [encoded, residual] of 3 steps, inputs normal(10), normal(11), normal(12).",
    "stats: of normal(3) with 132099 entries, encoded: [not finite, largest magnitude, sum of squares in the order",
    "of encoded_reading.examine]. replicas: XXH3-128 of 5001 parameters, normal(100), less 50",
    "updates normal(101 + i) / 64, sent with a residual.",
    "normal(s): entry i is word i of Philox 4x64-10 (key [6, 5], counter [block, 0, s, 0], block = 1, 2, ...): the sum",
    "of its four 16-bit pieces, less 131070, times 2^-17. subnormals: the words of normal(0); a float32 with bit 63 as",
    "its sign and bits 0 to 22 as its lower bits.",
    f"ties: {TIES} again and again. ties of int4: {TIES_OF_INT4}. huge: normal(0) with 2^125 at entry n // 2.",
]


def normal(stream: int, n: int) -> Floats:
    """The sum of four uniform integers, scaled: nearly normal with deviation 0.29, and exact in float32."""
    words = raw_bits(Purpose.GENERATOR, 6, stream, 0, n)
    pieces = np.full(n, -131070, np.int64)
    for shift in (0, 16, 32, 48):
        pieces += (words >> np.uint64(shift) & np.uint64(0xFFFF)).astype(np.int64)
    return (pieces * 2.0**-17).astype(np.float32)


def values_of(kind: str, n: int) -> Floats:
    """The input of a case."""
    if kind == "zeros":
        return np.zeros(n, np.float32)
    if kind == "subnormals":
        words = raw_bits(Purpose.GENERATOR, 6, 0, 0, n)
        bits = words >> np.uint64(32) & np.uint64(1 << 31) | words & np.uint64(0x7FFFFF)
        return bits.astype(np.uint32).view(np.float32)
    if kind in ("ties", "ties of int4"):
        return np.resize(np.array(TIES if kind == "ties" else TIES_OF_INT4, np.float32), n)
    values = normal(0, n)
    if kind == "huge":
        values[n // 2] = 2.0**125
    return values


def shown(raw: bytes, *, whole: bool = False) -> str:
    """As the file has it."""
    return raw.hex() if whole or len(raw) <= HEX_BYTES_MAX else f"xxh3:{xxhash.xxh3_128_hexdigest(raw)}"


def bytes_of(values: Floats) -> bytes:
    """With one spelling of NaN: the kernels leave its payload open."""
    return np.where(np.isnan(values), np.array(0x7FC00000, np.uint32).view(np.float32), values).tobytes()


def case(kind: str, n: int) -> dict[str, Any]:
    """What the file says of a case."""
    whole, values = (kind, n) == WHOLE, values_of(kind, n)
    case_of: dict[str, Any] = {"kind": kind, "n": n, "input": shown(values.tobytes())}
    for encoding in ENCODINGS:
        residual = np.zeros(n, np.float32)
        encoded = encodings.encode(encoding, values, residual)
        decoded = encodings.decode(encoding, encoded, n)
        arrays = (encoded.tobytes(), bytes_of(decoded), residual.tobytes())
        case_of[encoding] = [shown(array) for array in arrays]
        if whole:
            case_of[f"whole {encoding}"] = shown(arrays[0], whole=True)
    return case_of


def chain(encoding: Encoding) -> list[list[str]]:
    """Each step adds what the one before left over."""
    residual, steps = np.zeros(CHAIN_N, np.float32), []
    for step in range(CHAIN_STEPS):
        encoded = encodings.encode(encoding, normal(10 + step, CHAIN_N), residual)
        steps.append([shown(encoded.tobytes()), shown(residual.tobytes())])
    return steps


def found(encoding: Encoding) -> list[int | str]:
    """What `examine` finds in a vector of several ranges, to the last bit."""
    encoded = encodings.encode(encoding, normal(3, STATS_N), None)
    nonfinite, absmax, sum_squares = encodings.examine(encoding, encoded, STATS_N)
    return [nonfinite, absmax.hex(), sum_squares.hex()]


def parameters() -> Floats:
    """Those before the first of the 50 updates."""
    return normal(100, UPDATES_N)


def update_of(index: int) -> Floats:
    """An update as the outer optimizer made it, before it is encoded."""
    return normal(101 + index, UPDATES_N) / np.float32(64)


def sent_updates(encoding: Encoding) -> list[encodings.Bytes]:
    """The master's side: 50 updates, encoded with a residual."""
    residual = np.zeros(UPDATES_N, np.float32)
    return [encodings.encode(encoding, update_of(i), residual) for i in range(UPDATES)]


def replica_digest(encoding: Encoding, sent: list[encodings.Bytes]) -> str:
    """A replica's side: decode and apply each; the digest of what comes out."""
    params = parameters()
    for encoded in sent:
        apply_update(params, encodings.decode(encoding, encoded, UPDATES_N))
    return digest(params)


def written() -> dict[str, Any]:
    """All of the file, as this code makes it."""
    return {
        "about": ABOUT,
        "cases": [case(kind, n) for kind in KINDS for n in SIZES],
        "chain": {encoding: chain(encoding) for encoding in ENCODINGS},
        "stats": {encoding: found(encoding) for encoding in ENCODINGS},
        "replicas": {encoding: replica_digest(encoding, sent_updates(encoding)) for encoding in DOWN},
    }


def read() -> dict[str, Any]:
    """What the file says."""
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


if __name__ == "__main__":
    FILE.write_text(json.dumps(written(), indent=1) + "\n", encoding="utf-8")
