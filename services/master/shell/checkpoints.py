"""Checkpoints `ckpt-<round>.npz`: plain NumPy archives, sealed by SHA-256, replaced by rename. The rename commits.

The seal is the ZIP archive comment `mahe1 sha256=<64 hex>`, computed over the whole file with these digits as zeros
(DESIGN section 6), so that every bit of the file is covered and `numpy.load(..., allow_pickle=False)` reads it.
"""

import errno
import hashlib
import io
import json
import os
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from services.common.errors import CheckpointError
from services.common.host.failpoints import failpoint
from services.common.host.files import make_folders, remove, sync_folder, write_durably

KEEP_NEWEST = 3
COPY_BYTES = 1 << 20
NOT_READ = "CHECKPOINT_NOT_READ"
PASSING = {errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM}  # of the reader, not of the file
_SEAL = b"mahe1 sha256="
_ZEROS = b"0" * 64
_NAME = re.compile(r"^ckpt-(\d{1,9})\.npz$")
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Checkpoint:
    """One version: `parameters` float32[n], the outer optimizer's state, what it says of itself.

    `residual`: float32[n], what encoded updates still owe the replicas; None when nothing is left over.
    """

    parameters: npt.NDArray[np.float32]
    outer: dict[str, Array]
    meta: dict[str, Any]
    residual: npt.NDArray[np.float32] | None = None


def path_of(folder: Path, round_number: int) -> Path:
    """Where a round's checkpoint lies."""
    return folder / f"ckpt-{round_number}.npz"


def write(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write durably: temp, fsync, rename, fsync folder. Raises CheckpointError; then nothing has changed."""
    path = path_of(folder, checkpoint.meta["round"])
    try:
        make_folders(folder)
        write_durably(path, lambda file: _pack(checkpoint, file), what="checkpoint")
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be written ({error.strerror or error}); free the disk, then resume the run"
        ) from None
    return path


def read(path: Path) -> Checkpoint:
    """Read and verify; raises CheckpointError saying what is wrong with which file."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        text = f"{path} cannot be read ({error.strerror or error})"
        if error.errno in PASSING:
            text = f"{text}; it may be whole: let this user read it, or free some memory, and start again"
            raise CheckpointError(text, code=NOT_READ) from None
        raise CheckpointError(text) from None
    if not is_sealed(raw):
        raise CheckpointError(f"{path} is damaged: its SHA-256 does not match its content")
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as archive:
            meta = json.loads(archive["meta"].tobytes())
            outer = {name.removeprefix("outer_"): archive[name] for name in archive.files if name.startswith("outer_")}
            parameters = archive["parameters"]
            residual = archive["residual"] if "residual" in archive.files else None
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{path} is sealed, but is no checkpoint ({error})") from None
    if parameters.dtype != np.float32 or parameters.ndim != 1 or not np.isfinite(parameters).all():
        raise CheckpointError(f"{path} holds parameters that are not finite float32 values")
    if path.name != path_of(path.parent, meta["round"]).name:
        raise CheckpointError(f"{path} says that it is of round {meta['round']}")
    parameters.setflags(write=False)
    return Checkpoint(parameters, outer, meta, residual)


def read_parameters(path: Path) -> npt.NDArray[np.float32]:
    """Only the parameters, without the seal: for a version that this master has just written. CheckpointError."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            parameters: npt.NDArray[np.float32] = archive["parameters"]
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror or error})") from None
    except (ValueError, KeyError, zipfile.BadZipFile):
        raise CheckpointError(f"{path} is damaged") from None
    return parameters


def read_meta(path: Path) -> dict[str, Any]:
    """What a checkpoint says of itself, without the seal; an empty one when this is no checkpoint."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            meta = json.loads(archive["meta"].tobytes())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile):
        return {}
    return meta if isinstance(meta, dict) else {}


def copy_sealed(path: Path, into: IO[bytes]) -> None:
    """The whole file, by COPY_BYTES. Raises OSError, and CheckpointError when its seal turns out not to fit it."""
    digest, end = hashlib.sha256(), b""
    with path.open("rb") as file:
        while part := file.read(COPY_BYTES):
            into.write(part)
            end += part
            digest.update(end[: -len(_ZEROS)])
            end = end[-len(_ZEROS) :]
    digest.update(_ZEROS)
    if digest.hexdigest().encode() != end:
        raise CheckpointError(f"{path} is damaged: its SHA-256 does not match its content")


def rounds_in(folder: Path) -> list[int]:
    """Rounds with a checkpoint in the folder, in order."""
    found = [_NAME.match(path.name) for path in folder.glob("ckpt-*.npz")]
    return sorted(int(match.group(1)) for match in found if match)


def newest_good(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that verifies, and a sentence for each bad one, which is set aside as `.bad`.

    Raises CheckpointError when there are checkpoints and all are bad: never a silent start from scratch. So it does
    when one cannot be read at present, which says nothing of what is in it.
    """
    _settle(folder)
    sentences: list[str] = []
    for round_number in reversed(rounds_in(folder)):
        path = path_of(folder, round_number)
        try:
            return read(path), sentences
        except CheckpointError as error:
            if error.code == NOT_READ:
                raise
            _set_aside(path, error)
            sentences.append(f"{error.sentence}; it is set aside as {path.name}.bad")
    if sentences or any(folder.glob("*.bad")):
        raise CheckpointError(
            f"no checkpoint in {folder} can be used: {'; '.join(sentences) or 'all were set aside'}; restore a backup"
        )
    return None, sentences


def _set_aside(path: Path, error: CheckpointError) -> None:
    try:
        path.replace(path.with_suffix(".npz.bad"))
    except OSError as why:
        text = f"{error.sentence}, and cannot be set aside ({why.strerror or why}); move it away and start again"
        raise CheckpointError(text) from None


def _settle(folder: Path) -> None:
    """A master that was killed may have left names that are not synced: they must stay before anybody hears of them."""
    try:
        for one in (folder, folder.parent, folder.parent.parent):
            if one.is_dir():
                sync_folder(one)
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be synced ({error.strerror or error}); check the disk") from None


def prune(folder: Path, keep: set[int]) -> None:
    """Delete all but the newest KEEP_NEWEST and those in `keep`; stale temporary files go too."""
    rounds = rounds_in(folder)
    for round_number in rounds[:-KEEP_NEWEST]:
        if round_number not in keep:
            failpoint("prune.before-remove")
            remove(path_of(folder, round_number))
    for stale in folder.glob(".ckpt-*.tmp"):
        remove(stale)


def is_sealed(raw: bytes) -> bool:
    """Whether the SHA-256 in the archive comment is that of the file."""
    at = len(raw) - len(_ZEROS)
    if at < len(_SEAL) or raw[at - len(_SEAL) : at] != _SEAL:
        return False
    digest = hashlib.sha256(raw[:at])
    digest.update(_ZEROS)
    return raw[at:] == digest.hexdigest().encode()


class _Sealing:
    """A file that is only appended to, and knows the SHA-256 of what was written; no more than zipfile asks for."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.sha256 = file, hashlib.sha256()

    def write(self, data: bytes | memoryview) -> int:
        self.sha256.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def _pack(checkpoint: Checkpoint, file: IO[bytes]) -> None:
    """Write the archive, array after array, and then its seal over the zeros at its end."""
    meta = np.frombuffer(json.dumps(checkpoint.meta, sort_keys=True).encode(), dtype=np.uint8)
    arrays: dict[str, Array] = {"parameters": checkpoint.parameters, "meta": meta}
    arrays |= {f"outer_{name}": array for name, array in checkpoint.outer.items()}
    if checkpoint.residual is not None:
        arrays["residual"] = checkpoint.residual
    sealing = _Sealing(file)
    with zipfile.ZipFile(cast("IO[bytes]", sealing), "w") as archive:
        archive.comment = _SEAL + _ZEROS
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array_header_1_0(entry, np.lib.format.header_data_from_array_1_0(array))
                entry.write(np.ascontiguousarray(array).data.cast("B"))
    file.seek(-len(_ZEROS), os.SEEK_END)
    file.write(sealing.sha256.hexdigest().encode())


@dataclass(frozen=True)
class Vault:
    """All runs' checkpoints, each run in a folder of its own: its id is made by the master and holds no separator."""

    folder: Path

    def run_folder(self, run: str) -> Path:
        """Where a run's checkpoints lie."""
        return self.folder / run

    def path_of(self, run: str, version: int) -> Path:
        """Where one of them lies."""
        return path_of(self.run_folder(run), version)

    def write(self, checkpoint: Checkpoint) -> None:
        """See `write`."""
        write(self.run_folder(checkpoint.meta["run"]), checkpoint)

    def read(self, run: str, version: int) -> Checkpoint:
        """See `read`."""
        return read(self.path_of(run, version))

    def newest_good(self, run: str) -> tuple[Checkpoint | None, list[str]]:
        """See `newest_good`."""
        return newest_good(self.run_folder(run))

    def prune(self, run: str, keep: set[int]) -> None:
        """See `prune`."""
        prune(self.run_folder(run), keep)
