"""Bugs of durability put in on purpose: each must be caught, or the model of the power loss proves nothing."""

import io
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from services.common.host import files
from services.master.shell import checkpoints
from services.worker.shell import slot, task_files

Patch = pytest.MonkeyPatch
USERS = (files, checkpoints, slot, task_files)


def everywhere(patch: Patch, name: str, function: Callable[..., Any]) -> None:
    """Replace a function of `files` wherever it was imported."""
    for module in USERS:
        if hasattr(module, name):
            patch.setattr(module, name, function)


def in_memory(data: files.Content) -> bytes:
    """The bytes of a file."""
    if not callable(data):
        return data
    buffer = io.BytesIO()
    data(buffer)
    return buffer.getvalue()


def no_fsync(patch: Patch) -> None:
    """Files are not synced; folders are."""

    def write(path: Path, data: files.Content, *, private: bool = False, what: str = "file") -> None:
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_bytes(in_memory(data))
        temporary.replace(path)
        files.sync_folder(path.parent)

    everywhere(patch, "write_durably", write)


def no_folder_fsync(patch: Patch) -> None:
    """Folders are not synced; files are."""
    everywhere(patch, "sync_folder", lambda folder: None)


def in_place(patch: Patch) -> None:
    """Files are written over, with all syncs, but without a temporary file and a rename."""

    def write(path: Path, data: files.Content, *, private: bool = False, what: str = "file") -> None:
        with path.open("wb") as file:
            file.write(in_memory(data))
            file.flush()
            os.fsync(file.fileno())
        files.sync_folder(path.parent)

    everywhere(patch, "write_durably", write)


def rename_before_fsync(patch: Patch) -> None:
    """The file is synced only when it has its name already."""

    def write(path: Path, data: files.Content, *, private: bool = False, what: str = "file") -> None:
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_bytes(in_memory(data))
        temporary.replace(path)
        files.sync_folder(path.parent)
        with path.open("rb") as file:
            os.fsync(file.fileno())

    everywhere(patch, "write_durably", write)


def no_checksum(patch: Patch) -> None:
    """Nobody looks at the seal."""
    patch.setattr(checkpoints, "is_sealed", lambda raw: True)


def new_folders_not_synced(patch: Patch) -> None:
    """A run's folder is made and not synced in the folder above."""
    everywhere(patch, "make_folders", lambda folder, mode=0o777: folder.mkdir(mode, parents=True, exist_ok=True))


def taken_up_unsynced(patch: Patch) -> None:
    """What a killed master left is told of before its name is synced."""
    patch.setattr(checkpoints, "_settle", lambda folder: None)


def pruned_first(patch: Patch) -> None:
    """Room is made before the new version is durable: only it is kept."""
    shipped = checkpoints.write

    def write(folder: Path, checkpoint: checkpoints.Checkpoint) -> Path:
        for number in checkpoints.rounds_in(folder):
            files.remove(checkpoints.path_of(folder, number))
        return shipped(folder, checkpoint)

    patch.setattr(checkpoints, "write", write)


def note_before_delta(patch: Patch) -> None:
    """The delta's file is not synced before its note says that it is held."""
    not_synced(patch, ".bin")


def note_before_residual(patch: Patch) -> None:
    """What the delta's encoding left over is not."""
    not_synced(patch, ".residual")


def not_synced(patch: Patch, suffix: str) -> None:
    """One of the two files that the trainer leaves of a task."""
    shipped = task_files._write

    def write(path: Path, parts: Iterable[bytes | memoryview], before_fsync: str = "") -> None:
        if path.suffix == suffix:
            path.write_bytes(b"".join(parts))
        else:
            shipped(path, parts, before_fsync)

    patch.setattr(task_files, "_write", write)


MUTANTS = {
    one.__name__: one
    for one in (
        no_fsync,
        no_folder_fsync,
        in_place,
        rename_before_fsync,
        no_checksum,
        new_folders_not_synced,
        taken_up_unsynced,
        pruned_first,
        note_before_delta,
        note_before_residual,
    )
}
