"""One large call cut into pieces, each on a thread of its own: a call into C releases the GIL, so they run together.

Only where the caller asks for it, with a `Threads`: the master does, for its folds and outer steps. A worker gives
none: it has been given so many cores and already uses them. Only for kernels that treat each element, or each block,
by itself: their bits cannot depend on the cut. `stats` sums in one fixed order and `topk` compares all with all, so
they take no threads. The threads do not outlive a fork; MAHE never forks.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from services.common.kernels.library import OK

SPLIT_MIN = 1 << 20
"""Elements of the smallest call that is cut: 4 MiB of float32. Below, waking a thread costs what it saves."""
PIECE_STEP = 1024
"""Pieces are a multiple of this, but for the last: no two threads write into one cache line."""

Piece = Callable[[int, int], int]
"""The kernel on elements start..start+count; returns the status of C."""


class Threads:
    """`count` threads for the pieces, the calling one included; the others start when first needed, end at `close`."""

    def __init__(self, count: int) -> None:
        assert count >= 1, f"{count} threads; at least one is needed"
        self._count = count
        self._pool = ThreadPoolExecutor(max(1, count - 1), thread_name_prefix="kernels")

    def run(self, piece: Piece, n: int, step: int) -> int:
        """All `n` elements in pieces that are multiples of `step`; the status of the first piece that was refused.

        It neither returns nor raises while a piece still runs: the caller may then free or reuse the arrays.
        """
        size = -(-n // (self._count * step)) * step
        others: list[Future[int]] = []
        try:
            others.extend(  # one by one, before the first piece runs here
                self._pool.submit(piece, start, min(size, n - start)) for start in range(size, n, size)
            )
            first = piece(0, min(size, n))
        finally:
            wait(others)
        found = [first, *(other.result() for other in others)]
        return next((status for status in found if status != OK), OK)

    def close(self) -> None:
        """Ends the threads; what runs is finished first."""
        self._pool.shutdown()
