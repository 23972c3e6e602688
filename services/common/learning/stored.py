"""A data set of someone's own: .npy files named by their SHA-256, mapped into memory, so that they may exceed it.

The descriptor travels; the files are fetched, and checked here once, when the data set is opened. What is held out of
training never leaves the master, and the descriptor does not name it: `with_held_out` adds it there.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from services.common.errors import DatasetError, SettingsError, quoted
from services.common.learning.examples import Dataset, Rows, ScaledBytes
from services.common.learning.parameters import Targets
from services.common.learning.preprocessing.image import PIXEL_MAX, read_pixel_scaling
from services.common.learning.shapes import CLASSES_MAX, INPUTS_MAX
from services.common.learning.specification import check_fields, refuse, whole

KIND = "stored"
ROWS_MAX = 2**40
BYTES_MAX = 2**50
DATA_BLOB = "DATA_BLOB"

_SHA = re.compile(r"[0-9a-f]{64}")
_FIELDS = ("kind", "name", "inputs", "classes", "shape", "train", "digest")
_SCALING = ("mean", "scale")


@dataclass(frozen=True, slots=True)
class Blob:
    """One file: its name in the folder of blobs, and its length."""

    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class StoredDescriptor:
    """A checked descriptor. `mean` and `scale` are for inputs that are bytes: (byte - mean) / scale."""

    name: str
    inputs: int
    classes: int
    shape: tuple[int, ...]
    n: int
    x: Blob
    y: Blob
    digest: str
    mean: float
    scale: float


def descriptor_digest(descriptor: Mapping[str, Any]) -> str:
    """SHA-256 of the descriptor without its digest: JSON in ASCII, sorted keys, no spaces."""
    plain = {key: value for key, value in descriptor.items() if key != "digest"}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def read_descriptor(descriptor: Mapping[str, Any]) -> StoredDescriptor:
    """The descriptor, checked; DatasetError names field, value and what is allowed."""
    try:
        return _read(descriptor)
    except SettingsError as error:
        raise DatasetError(error.sentence) from None


def blobs_of(descriptor: Mapping[str, Any]) -> tuple[Blob, Blob]:
    """The files that training needs, inputs and targets, for who fetches them."""
    known = read_descriptor(descriptor)
    return known.x, known.y


def load(descriptor: Mapping[str, Any], blobs: Path | None) -> Dataset:
    """The data set, without held-out rows; its arrays stay on disk and must not change while it is used.

    DatasetError with code DATA_BLOB names a file that is missing or is not what its name says.
    """
    known = read_descriptor(descriptor)
    if blobs is None:
        raise DatasetError(f"The data set {quoted(known.name)} is stored, but no folder of blobs is given.")
    for blob in (known.x, known.y):
        _check_blob(blobs / blob.sha256, blob, known.name)
    x, y = _open_pair(blobs / known.x.sha256, blobs / known.y.sha256, known)
    if len(y) != known.n:
        raise DatasetError(f"The data set {quoted(known.name)} has {len(y)} rows, but says {known.n}: import it again.")
    return Dataset(known.name, x, y, x[:0], y[:0], known.classes, known.digest)


def with_held_out(dataset: Dataset, descriptor: Mapping[str, Any], x: Path, y: Path) -> Dataset:
    """The data set with the rows of two .npy files of the master's as held out: `validation.x.npy`, say, and `.y`."""
    x_test, y_test = _open_pair(x, y, read_descriptor(descriptor))
    return replace(dataset, x_test=x_test, y_test=y_test)


def _read(data: Mapping[str, Any]) -> StoredDescriptor:
    check_fields("dataset", data, (*_FIELDS, *_SCALING))
    name, shape, train, digest = (data.get(field) for field in ("name", "shape", "train", "digest"))
    if not isinstance(name, str) or not name:
        raise refuse("dataset name", name, "a name")
    inputs = whole("dataset inputs", data.get("inputs"), 1, INPUTS_MAX)
    classes = whole("dataset classes", data.get("classes"), 0, CLASSES_MAX)
    if classes == 1:
        raise refuse("dataset classes", classes, f"0 for a number, or 2 to {CLASSES_MAX}")
    if not isinstance(shape, list | tuple) or len(shape) not in (1, 3):
        raise refuse("dataset shape", shape, "a list of 1 or 3 sizes")
    sizes = tuple(whole(f"dataset shape[{i}]", size, 1, INPUTS_MAX) for i, size in enumerate(shape))
    if math.prod(sizes) != inputs:
        raise refuse("dataset shape", shape, f"sizes whose product is inputs, {inputs}")
    if not isinstance(train, Mapping):
        raise refuse("dataset train", train, "an object with n, x and y")
    check_fields("dataset train", train, ("n", "x", "y"))
    n = whole("dataset train n", train.get("n"), 1, ROWS_MAX)
    mean, scale = (0.0, PIXEL_MAX if len(sizes) == 3 else 1.0)
    if any(field in data for field in _SCALING):
        mean, scale = read_pixel_scaling("dataset", data)
    if digest != descriptor_digest(data):
        raise refuse("dataset digest", digest, descriptor_digest(data))
    return StoredDescriptor(
        name, inputs, classes, sizes, n, _blob("x", train.get("x")), _blob("y", train.get("y")), digest, mean, scale
    )


def _blob(which: str, data: object) -> Blob:
    if not isinstance(data, Mapping):
        raise refuse(f"dataset train {which}", data, "an object with sha256 and bytes")
    check_fields(f"dataset train {which}", data, ("sha256", "bytes"))
    sha = data.get("sha256")
    if not isinstance(sha, str) or not _SHA.fullmatch(sha):
        raise refuse(f"dataset train {which} sha256", sha, "64 hexadecimal digits")
    return Blob(sha, whole(f"dataset train {which} bytes", data.get("bytes"), 1, BYTES_MAX))


def _check_blob(path: Path, blob: Blob, name: str) -> None:
    try:
        size = path.stat().st_size
        if size == blob.bytes:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found == blob.sha256:
                return
            said = f"has the SHA-256 {found}"
        else:
            said = f"has {size} bytes in place of {blob.bytes}"
    except OSError as error:
        said = f"cannot be read ({error.strerror or error})"
    raise DatasetError(
        f"The file {path} of the data set {quoted(name)} {said}. Remove it if it is there: it is fetched from the "
        "master again.",
        code=DATA_BLOB,
    )


def _open_pair(x_path: Path, y_path: Path, known: StoredDescriptor) -> tuple[Rows, Targets]:
    """Inputs and targets of two files, checked against the descriptor but for the number of rows."""
    x, y = _map(x_path), _map(y_path)
    if x.dtype not in (np.dtype("<f4"), np.dtype("u1")) or x.shape[1:] not in ((known.inputs,), known.shape):
        raise _misfit(x_path, x, f"float32 or uint8, [n, {known.inputs}]")
    wanted = np.dtype("<i8") if known.classes else np.dtype("<f4")
    if y.dtype != wanted or y.shape != x.shape[:1]:
        raise _misfit(y_path, y, f"{wanted.name}, [{len(x)}]")
    if len(y) and known.classes and not 0 <= y.min() <= y.max() < known.classes:
        raise _misfit(y_path, y, f"labels 0 to {known.classes - 1}, not {y.min()} to {y.max()}")
    if not known.classes and not np.isfinite(y).all():
        raise _misfit(y_path, y, "finite numbers only")
    rows = x.reshape(len(x), known.inputs)
    return (ScaledBytes(rows, known.mean, known.scale) if x.dtype == np.uint8 else rows), y


def _map(path: Path) -> npt.NDArray[Any]:
    """A .npy file as a read-only array in C order whose pages are read when they are used."""
    try:
        array = np.asarray(np.lib.format.open_memmap(path, mode="r"))
    except (OSError, ValueError, TypeError, OverflowError) as error:
        raise DatasetError(f"{path} cannot be opened ({error}): import the data again.", code=DATA_BLOB) from None
    if not array.flags.c_contiguous:
        raise _misfit(path, array, "an array in C order")
    return array


def _misfit(path: Path, array: npt.NDArray[Any], needed: str) -> DatasetError:
    return DatasetError(
        f"{path} holds {array.dtype}{list(array.shape)}; needed: {needed}. Import the data again.", code=DATA_BLOB
    )
