"""One call into libkernel: whole, or in pieces on threads; and what its status means."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from services.common.errors import KernelError
from services.common.kernels.arguments import check_apart
from services.common.kernels.library import OK, OVERLAP, library
from services.common.kernels.threads import PIECE_STEP, SPLIT_MIN, Threads

Twins = tuple[tuple[str, str], ...]


def call(
    op: str,
    arrays: Mapping[str, npt.NDArray[Any] | None],
    numbers: Sequence[Any],
    n: int,
    *,
    written: int,
    twins: Twins = (),
    threads: Threads | None = None,
    per: Sequence[int] | None = None,
    step: int = PIECE_STEP,
) -> None:
    """Calls `op` of the header: its parameters are the arrays, the numbers, `n`; the first `written` arrays change.

    `twins`: pairs that may be one and the same array. For pieces: an array has an entry for each `per` elements (all 1
    if not given), and a piece is a multiple of `step` elements. Whether arrays overlap C tells by itself; it is asked
    here only to name them, or when C would see no more than pieces of them.
    """
    opened = library()
    kernel = getattr(opened.lib, op)
    pointers = [opened.ffi.NULL if array is None else opened.pointer(array) for array in arrays.values()]
    if threads is None or n < SPLIT_MIN:
        status = kernel(*pointers, *numbers, n)
    else:
        _check_apart(arrays, written, twins)
        shares = per or [1] * len(pointers)

        def piece(start: int, count: int) -> int:
            parts = [at and at + start // share for at, share in zip(pointers, shares, strict=True)]  # NULL stays NULL
            return int(kernel(*parts, *numbers, count))

        status = threads.run(piece, n, step)
    if status == OVERLAP:
        _check_apart(arrays, written, twins)
    expect_ok(op, status)


def expect_ok(op: str, status: int) -> None:
    """What is checked in Python cannot come back as a status: if it does, library and Python do not fit."""
    if status != OK:
        raise KernelError(f"libkernel refused {op} with status {status}: run `make kernels`")


def _check_apart(arrays: Mapping[str, npt.NDArray[Any] | None], written: int, twins: Twins) -> None:
    named = [(name, array) for name, array in arrays.items() if array is not None]
    check_apart(named[:written], named[written:], twins)
