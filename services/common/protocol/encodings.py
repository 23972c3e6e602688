"""How a vector of n float32 values travels: the names, and how many bytes each takes. Sizes only, no numbers.

The layouts and the arithmetic are in `services.common.learning.encodings`; this much both cores must know.
"""

from typing import Literal, get_args

Encoding = Literal["fp32", "bf16", "int8", "int4", "topk"]
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
BLOCK = 1024  # values that share one float32 scale
TOPK_SHARE = 32  # topk sends one value of so many


def down_encoding(encoding: Encoding) -> Encoding:
    """How updates travel in a run whose deltas use `encoding`: top-k is for the way up only."""
    return "int8" if encoding == "topk" else encoding


def topk_count(n: int) -> int:
    """How many of n values `topk` sends."""
    return -(-n // TOPK_SHARE)


def encoded_bytes(encoding: Encoding, n: int) -> int:
    """Bytes of n encoded values, scales and places with them."""
    if encoding == "topk":
        kept = topk_count(n)
        return 4 * kept + encoded_bytes("int8", kept)
    scales = 4 * -(-n // BLOCK)
    return {"fp32": 4 * n, "bf16": 2 * n, "int8": scales + n, "int4": scales + (n + 1) // 2}[encoding]
