"""One call into libkernel: whole, or in pieces on threads; and what its status means."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.common.errors import KernelError
from services.common.kernels.arguments import check_apart
from services.common.kernels.library import OK, OVERLAP, library
from services.common.kernels.threads import PIECE_STEP, SPLIT_MIN, Threads

Array = npt.NDArray[Any]
Dtypes = dict[str, np.dtype[Any]]
PER_BLOCK = 0  # an array that has one entry for each block


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the header: its parameters are `arrays` (name and dtype), then numbers, then the length.

    The first `written` arrays change. `twins`: pairs that may be one and the same array. `per`: how many elements each
    array has an entry for (PER_BLOCK: a block); empty where it is 1 for all. `out`: the C type of what it writes about
    them, behind a pointer that it takes last.
    """

    op: str
    arrays: Dtypes
    written: int
    twins: tuple[tuple[str, str], ...] = ()
    per: tuple[int, ...] = ()
    out: str = ""

    @functools.cached_property
    def opened(self) -> tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]:
        """It in the library, which is opened at its first use; what gives C the memory of arrays; their C types."""
        found = library()
        return found.function(self.op), found.from_buffer, tuple(map(found.types.get, self.arrays.values()))

    @functools.cached_property
    def new_out(self) -> Callable[[], Any]:
        """Makes an `out`."""
        found = library()
        return functools.partial(found.new, found.ffi.typeof(f"{self.out} *"))


def call(
    function: Function,
    arrays: tuple[Array, ...],
    numbers: tuple[Any, ...],
    n: int,
    threads: Threads | None = None,
    block: int = 1,
) -> None:
    """Calls it with arrays that have been checked. One of those at the end may be left out, for a NULL in `numbers`.

    With `threads` in pieces of whole blocks. Whether arrays overlap C tells by itself; it is asked here only to name
    them, or when C would see no more than pieces of them.
    """
    kernel, from_buffer, types = function.opened
    if threads is None or n < SPLIT_MIN:
        status = kernel(*map(from_buffer, types, arrays), *numbers, n)
        if status == OK:
            return
    else:
        _check_apart(function, arrays)
        status = threads.run(_piece(function, arrays, numbers, block), n, -(-PIECE_STEP // block) * block)
    if status == OVERLAP:
        _check_apart(function, arrays)
    expect_ok(function.op, status)


def expect_ok(op: str, status: int) -> None:
    """What is checked in Python cannot come back as a status: if it does, library and Python do not fit."""
    if status != OK:
        raise KernelError(f"libkernel refused {op} with status {status}: run `make kernels`")


def _piece(
    function: Function, arrays: Sequence[Array], numbers: tuple[Any, ...], block: int
) -> Callable[[int, int], int]:
    """The same call on the elements start..start+count; start is a multiple of the block."""
    kernel, from_buffer, types = function.opened
    pointers = list(map(from_buffer, types, arrays))
    shares = [share or block for share in function.per or (1,) * len(pointers)]

    def piece(start: int, count: int) -> int:
        parts = [at + start // share for at, share in zip(pointers, shares, strict=False)]
        return int(kernel(*parts, *numbers, count))

    return piece


def _check_apart(function: Function, arrays: Sequence[Array]) -> None:
    named = list(zip(function.arrays, arrays, strict=False))
    check_apart(named[: function.written], named[function.written :], function.twins)
