"""A round's deltas until they become one: added up as they come, or kept until the round closes.

Kept deltas wait encoded in one temporary file and are worked sorted by shard, by the rules that need them all in ranges
of coordinates: so memory grows neither with the workers nor with the order in which they came.
"""

import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import numpy as np

from services.common.kernels import Threads
from services.common.learning import Accumulator, Floats, coordinate_median, trimmed_mean
from services.common.learning.encodings import BLOCK, Bytes, decode_range
from services.common.protocol.messages import Encoding, RunSpec
from services.master.core.commands import Fold

RANGE = 64 * BLOCK
"""Coordinates worked at a time: 256 KiB of float32 for each delta."""

Combine = Callable[[Floats], Floats]


class Gathering(Protocol):
    """One round's deltas."""

    def add(self, command: Fold, encoded: Bytes) -> None:
        """An accepted delta."""

    def mean(self, weight_accepted: float, clips: Mapping[int, float]) -> Floats:
        """What they make together, a new float32[n]; the end of the gathering. `clips`, by shard: known only now."""


def gather(spec: RunSpec, n: int, first: Fold, threads: Threads | None) -> Gathering:
    """An empty gathering of vectors of `n`, as the run's aggregator and the round's `first` delta want it."""
    if spec.aggregator == "median":
        return Robust(first.encoding, n, coordinate_median)
    if spec.aggregator == "trimmed":
        return Robust(first.encoding, n, _trimming(spec.trim))
    streaming = Streaming(first.encoding, n, first.bound, threads)
    return Late(streaming) if first.clip is None else streaming


def _trimming(trim: int) -> Combine:
    """The trimmed mean; of few deltas fewer are left out, so that one is always left."""
    return lambda stack: trimmed_mean(stack, min(trim, (len(stack) - 1) // 2))


class Streaming:
    """The weighted mean: each delta is added when it comes, and forgotten."""

    def __init__(self, encoding: Encoding, n: int, bound: float, threads: Threads | None) -> None:
        self._encoding = encoding
        self._sum = Accumulator(n, bound, threads)

    def add(self, command: Fold, encoded: Bytes) -> None:
        """Into the fixed-point sum."""
        assert command.clip is not None
        self.fold(encoded, command.weight, command.clip)

    def fold(self, encoded: Bytes, weight: float, clip: float) -> None:
        """See `Accumulator.fold_encoded`."""
        self._sum.fold_encoded(self._encoding, encoded, weight, clip)

    def mean(self, weight_accepted: float, clips: Mapping[int, float]) -> Floats:
        """See `Accumulator.mean`."""
        del clips
        return self._sum.mean(weight_accepted)


class _Spool:
    """Encoded deltas of one length in a temporary file."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `take`, or with this object
        weakref.finalize(self, self._file.close)
        self._places: dict[int, int] = {}  # shard -> how many came before it

    def put(self, shard: int, encoded: Bytes) -> None:
        self._places[shard] = len(self._places)
        self._file.write(encoded.data)

    def one_by_one(self) -> Iterator[tuple[int, Bytes]]:
        """Each, by shard, in memory alone; the end of the spool."""
        size = self._file.tell() // len(self._places)
        with self._file:
            for shard in sorted(self._places):
                self._file.seek(self._places[shard] * size)
                yield shard, np.frombuffer(self._file.read(size), dtype=np.uint8)

    def take(self) -> dict[int, Bytes]:
        """All, by shard, mapped from the file; the end of the spool."""
        self._file.flush()
        with self._file:
            stored = np.memmap(self._file, dtype=np.uint8, mode="r").reshape(len(self._places), -1)
        return {shard: stored[self._places[shard]] for shard in sorted(self._places)}


class Late:
    """The weighted mean of a round that has its clip limit only when it closes."""

    def __init__(self, streaming: Streaming) -> None:
        self._streaming, self._spool = streaming, _Spool()
        self._weights: dict[int, float] = {}

    def add(self, command: Fold, encoded: Bytes) -> None:
        """To the end of the file."""
        self._weights[command.ref.shard] = command.weight
        self._spool.put(command.ref.shard, encoded)

    def mean(self, weight_accepted: float, clips: Mapping[int, float]) -> Floats:
        """All are added now."""
        for shard, encoded in self._spool.one_by_one():
            self._streaming.fold(encoded, self._weights[shard], clips[shard])
        return self._streaming.mean(weight_accepted, {})


class Robust:
    """Unweighted rules that look at every delta's value of a coordinate."""

    def __init__(self, encoding: Encoding, n: int, combine: Combine) -> None:
        self._encoding, self._n, self._combine = encoding, n, combine
        self._spool = _Spool()

    def add(self, command: Fold, encoded: Bytes) -> None:
        """To the end of the file."""
        self._spool.put(command.ref.shard, encoded)

    def mean(self, weight_accepted: float, clips: Mapping[int, float]) -> Floats:
        """Range by range; weights and clips play no part."""
        del weight_accepted, clips
        rows = self._spool.take().values()
        combined = np.empty(self._n, dtype=np.float32)
        for start in range(0, self._n, RANGE):
            stop = min(start + RANGE, self._n)
            stack = np.stack([decode_range(self._encoding, row, self._n, start, stop) for row in rows])
            combined[start:stop] = self._combine(stack)
        return combined
