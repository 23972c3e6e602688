"""A data set as training and evaluation see it: rows of inputs and what is to be learnt, all of them read-only.

Not for where it comes from: `datasets` makes the built-in ones, `stored` opens people's own.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from services.common.learning.parameters import Floats, Ints, Targets
from services.common.learning.preprocessing.image import scaled_pixels

SUMMARY_ROWS = 65_536
"""Rows looked at at a time, so that a summary of more than fits into memory can be made."""


class Rows(Protocol):
    """float32[n, inputs]: an array, or what becomes one, a batch at a time, when rows are taken."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, inputs)."""

    def __len__(self) -> int:
        """n."""

    def __getitem__(self, rows: slice | Ints, /) -> Floats:
        """These rows; the caller does not write to them."""


class ScaledBytes:
    """Bytes on disk that are scaled when rows are taken: a quarter of the size, and the file may exceed memory."""

    def __init__(self, raw: npt.NDArray[np.uint8], mean: float, scale: float) -> None:
        assert raw.dtype == np.uint8 and raw.ndim == 2, f"uint8[n, inputs] is needed, not {raw.dtype}{list(raw.shape)}"
        self._raw, self._mean, self._scale = raw, mean, scale

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, inputs)."""
        return self._raw.shape

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, rows: slice | Ints, /) -> Floats:
        """New float32: (bytes - mean) / scale."""
        return scaled_pixels(self._raw[rows], self._mean, self._scale)


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Examples to learn from, and those held out; all are read-only and C-contiguous."""

    name: str
    x_train: Rows
    """float32[train, dimensions]"""
    y_train: Targets
    x_test: Rows
    """Held out of training; no rows at a worker, when they never leave the master."""
    y_test: Targets
    classes: int
    """0: a number is learnt."""
    digest: str
    """SHA-256 as 64 hex digits: of shapes and bytes of the four arrays, or of the descriptor of a stored one."""

    def summary(self) -> dict[str, Any]:
        """JSON-able facts for pages and logs: counts, dimensions, range of the inputs, examples per class."""
        ends = [
            (float(part.min()), float(part.max()))
            for rows in (self.x_train, self.x_test)
            for start in range(0, len(rows), SUMMARY_ROWS)
            for part in (rows[start : start + SUMMARY_ROWS],)
        ]
        return {
            "name": self.name,
            "dimensions": self.x_train.shape[1],
            "classes": self.classes,
            "train": len(self.y_train),
            "test": len(self.y_test),
            "input_min": min(low for low, _ in ends),
            "input_max": max(high for _, high in ends),
            "train_per_class": self._per_class(self.y_train),
            "test_per_class": self._per_class(self.y_test),
            "digest": self.digest,
        }

    def _per_class(self, y: Targets) -> list[int]:
        return np.bincount(y, minlength=self.classes).tolist() if self.classes else []
