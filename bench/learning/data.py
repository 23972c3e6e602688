"""The data that is learnt: the bundled digits, and MNIST-10k where a file of it is given (it is not ours to bundle)."""

from pathlib import Path

import numpy as np

from services.common.learning import Dataset, describe, load

TEST = 2000
MNIST_FILE = Path("../shared/data/mnist10k.npz")


def digits() -> Dataset:
    """1,797 images of 8 x 8."""
    return load(describe("digits"))


def mnist(file: Path = MNIST_FILE) -> Dataset:
    """10,000 images of 28 x 28 (`x` uint8[n, 784], `y` uint8[n]): 8,000 to learn from, 2,000 to test."""
    with np.load(file) as raw:
        order = np.random.default_rng(0).permutation(len(raw["y"]))
        x = (raw["x"].reshape(len(raw["y"]), -1)[order] / np.float32(255)).astype(np.float32)
        y = raw["y"][order].astype(np.int64)
    return Dataset("mnist10k", x[:-TEST], y[:-TEST], x[-TEST:], y[-TEST:], 10, "0" * 64)
