"""The data set `mnist10k` for the services of this benchmark: 10,000 MNIST digits from a file that is not bundled.

The services know only what is built in, so each of the benchmark's own programs says `register` before it begins.
"""

import os
from pathlib import Path

import numpy as np

from services.common.errors import DatasetError
from services.common.learning import datasets
from services.common.learning.parameters import Floats, Ints

NAME = "mnist10k"
N, INPUTS, CLASSES, LEVELS = 10_000, 784, 10, 255
VARIABLE = "MAHE_BENCH_MNIST"
DEFAULT = Path(__file__).parents[2].parent / "shared" / "data" / "mnist10k.npz"


def path() -> Path:
    """The file: MAHE_BENCH_MNIST, else ../shared/data/mnist10k.npz from the root of the repository."""
    return Path(os.environ.get(VARIABLE) or DEFAULT)


def missing() -> str:
    """Why there are no such digits here, for people; empty when there are."""
    if path().is_file():
        return ""
    return f"There is no file {path()} with the MNIST digits (x uint8[n, 784], y uint8[n]); name it with --mnist FILE."


def register() -> None:
    """From now on this process can describe and load `mnist10k`, all of it when nobody says how much."""
    datasets.GENERATORS[NAME] = examples
    datasets.NAMES = (*datasets.NAMES, NAME)
    datasets.N_DEFAULT = N


def examples(seed: int, n: int) -> tuple[Floats, Ints]:
    """The first `n` digits, whatever the seed: float32[n, 784] in 0..1 and int64[n]. Raises DatasetError."""
    del seed
    if reason := missing():
        raise DatasetError(reason)
    with path().open("rb") as file, np.load(file, allow_pickle=False) as archive:
        images, labels = archive["x"], archive["y"]
    if images.shape[0] < n or images.shape[1:] != (INPUTS,):
        raise DatasetError(f"{path()} has x of shape {images.shape}; needed: at least {n:,} rows of {INPUTS}.")
    return images[:n].astype(np.float32) / np.float32(LEVELS), labels[:n].astype(np.int64)
