"""Data sets: a descriptor (plain data, small enough for a message) and the arrays every machine makes of it.

`describe` runs once, where a run is made; `load` runs on every machine and compares digests, so two machines either
hold the same bits or are told so. A user's own files travel as blobs: `stored` opens those.
"""

import hashlib
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from services.common.errors import DatasetError, quoted
from services.common.learning import stored
from services.common.learning.bits import SEED_MAX, Purpose, raw_bits, shuffled
from services.common.learning.examples import Dataset
from services.common.learning.generators import GENERATORS
from services.common.learning.parameters import Floats, Ints

Descriptor = dict[str, Any]
"""`{"kind": "builtin", "name": ..., "seed": ..., "n": ..., "digest": ...}`; n counts train and test together.

Or `{"kind": "stored", ...}`: see `stored`.
"""

PREFIX = "builtin:"
"""Users of the first MAHE write `builtin:rings4`."""
DIGITS = "digits"
DIGITS_N = 1797
DIGITS_LEVELS = 16
SEED_DEFAULT = 7
N_DEFAULT = 2000
N_MIN, N_MAX = 50, 1_000_000
TEST_ONE_IN = 5
NAMES = (DIGITS, *sorted(GENERATORS))

_DIGITS_FILE = Path(__file__).parent / "data" / "digits.npz"
_FIELDS = ("digest", "kind", "n", "name", "seed")


def describe(name: str, *, seed: int = SEED_DEFAULT, n: int | None = None) -> Descriptor:
    """The descriptor of a built-in data set, with the digest this machine finds; `builtin:` before the name is allowed.

    `seed` draws the points of a generator and the split; `n` counts train and test together (digits has 1,797).
    """
    plain = name.removeprefix(PREFIX)
    if n is None:
        n = DIGITS_N if plain == DIGITS else N_DEFAULT
    _check(plain, seed, n)
    return {"kind": "builtin", "name": plain, "seed": seed, "n": n, "digest": _digest_of(plain, seed, n)}


def load(descriptor: Mapping[str, Any], blobs: Path | None = None) -> Dataset:
    """The data set of a descriptor; DatasetError names a bad field, or both digests when the bits differ.

    `blobs`: the folder with the files of stored data sets, each named by its SHA-256.
    """
    if descriptor.get("kind") == stored.KIND:
        return stored.load(descriptor, blobs)
    fields = sorted(descriptor)
    if fields != sorted(_FIELDS):
        raise DatasetError(f"The descriptor has the fields {quoted(fields)}; needed: exactly {', '.join(_FIELDS)}.")
    if descriptor["kind"] != "builtin":
        raise DatasetError(f"dataset kind is {quoted(descriptor['kind'])}; allowed: 'builtin', 'stored'.")
    name = descriptor["name"]
    name = name.removeprefix(PREFIX) if isinstance(name, str) else name
    _check(name, descriptor["seed"], descriptor["n"])
    dataset = _build(name, descriptor["seed"], descriptor["n"])
    if dataset.digest != descriptor["digest"]:
        raise DatasetError(
            f"The data set {name} on this machine has the digest {dataset.digest}, but the run needs "
            f"{quoted(descriptor['digest'])}. Update MAHE here or at the master so that both run the same version.",
            code="DATASET_DIGEST",
        )
    return dataset


def _check(name: object, seed: object, n: object) -> None:
    if not isinstance(name, str) or name not in NAMES:
        raise DatasetError(f"dataset name is {quoted(name)}; allowed: {', '.join(NAMES)}.")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= SEED_MAX:
        raise DatasetError(f"dataset seed is {quoted(seed)}; allowed: a whole number from 0 to 2^63-1.")
    low, high = (DIGITS_N, DIGITS_N) if name == DIGITS else (N_MIN, N_MAX)
    if isinstance(n, bool) or not isinstance(n, int) or not low <= n <= high:
        allowed = f"{low:,}" if low == high else f"a whole number from {low:,} to {high:,}"
        raise DatasetError(f"dataset n is {quoted(n)}; allowed for {name}: {allowed}.")


def _build(name: str, seed: int, n: int) -> Dataset:
    x, y = _digits() if name == DIGITS else GENERATORS[name](seed, n)
    order = shuffled(raw_bits(Purpose.SPLIT, seed, 0, 0, n))
    test, train = order[: n // TEST_ONE_IN], order[n // TEST_ONE_IN :]
    arrays = (x[train], y[train], x[test], y[test])
    for array in arrays:
        array.setflags(write=False)
    return Dataset(name, *arrays, classes=int(y.max()) + 1, digest=_digest(*arrays))


@lru_cache(maxsize=len(NAMES))
def _digest_of(name: str, seed: int, n: int) -> str:
    return _build(name, seed, n).digest


def _digest(*arrays: Floats | Ints) -> str:
    sha = hashlib.sha256()
    for array in arrays:
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        sha.update(f"{little.dtype.str}{list(little.shape)};".encode())
        sha.update(little.data)
    return sha.hexdigest()


def _digits() -> tuple[Floats, Ints]:
    """The bundled images scaled to 0..1 (exact: sixteenths) and their labels."""
    try:
        with _DIGITS_FILE.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            images, labels = archive["images"], archive["labels"]
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DatasetError(
            f"The bundled digits at {_DIGITS_FILE} cannot be read ({error}). Install MAHE again."
        ) from error
    return images.astype(np.float32) / np.float32(DIGITS_LEVELS), labels.astype(np.int64)
