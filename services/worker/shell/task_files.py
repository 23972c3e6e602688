"""The files of one task as the trainer reads and writes them: little-endian, whole or not at all.

Delta and what its encoding left over are durable before the agent hears of them. The anchor is only replaced: what a
power cut makes of it is found out by its digest.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from services.common.host.failpoints import failpoint
from services.common.host.files import remove, sync_folder
from services.common.learning.encodings import Bytes
from services.common.learning.exchange import SEAL_BYTES, pack_residual, unpack_residual
from services.common.learning.parameters import Floats
from services.common.protocol.messages import Task


@dataclass(frozen=True)
class TaskFiles:
    """Paths; `residual` and `next_residual` are None where nothing is carried over."""

    anchor: Path
    updates: tuple[Path, ...]
    delta: Path
    residual: Path | None
    next_residual: Path | None

    @classmethod
    def of(cls, names: dict[str, Any]) -> "TaskFiles":
        """From the agent's line."""
        return cls(
            anchor=Path(names["anchor"]),
            updates=tuple(Path(one) for one in names["updates"]),
            delta=Path(names["delta"]),
            residual=Path(names["residual"]) if names["residual"] else None,
            next_residual=Path(names["next_residual"]) if names["next_residual"] else None,
        )

    def read_anchor(self) -> Floats:
        """float32[n]; empty when it is gone: its digest tells."""
        raw = np.fromfile(self.anchor, dtype="<f4") if self.anchor.exists() else np.empty(0)
        return raw.astype(np.float32, copy=False)

    def read_updates(self) -> list[Bytes]:
        """In order; empty for one that is gone."""
        return [np.fromfile(path, dtype=np.uint8) if path.exists() else np.empty(0, np.uint8) for path in self.updates]

    def write_anchor(self, anchor: Floats) -> None:
        """In place of the old one."""
        temporary = self.anchor.with_name(f".{self.anchor.name}.tmp")
        failpoint("anchor.before-write")
        try:
            with temporary.open("wb") as file:
                file.write(np.ascontiguousarray(anchor, dtype="<f4").data)
            failpoint("anchor.before-rename")
            temporary.replace(self.anchor)
        except OSError:
            remove(temporary)
            raise

    def owes(self) -> bytes:
        """The seal of what is owed so far; empty when nothing is."""
        if self.residual is None or not self.residual.exists():
            return b""
        with self.residual.open("rb") as file:
            return file.read(SEAL_BYTES)

    def read_residual(self, task: Task) -> Floats | None:
        """What is owed so far, zeros at first; None where nothing is carried over."""
        if self.residual is None:
            return None
        raw = self.residual.read_bytes() if self.residual.exists() else b""
        owed = unpack_residual(task.lineage, raw, task.n_parameters)
        return np.zeros(task.n_parameters, dtype=np.float32) if owed is None else owed

    def write_results(self, task: Task, encoded: Bytes, residual: Floats | None) -> bytes:
        """Durable: what is left over, whose seal is returned, then the delta."""
        seal = b""
        if self.next_residual is not None and residual is not None:
            failpoint("residual.before-write")
            seal, values = pack_residual(task.lineage, residual)
            _write(self.next_residual, (seal, values))
        failpoint("delta.before-write")
        _write(self.delta, (encoded.data,), "delta.before-fsync")
        failpoint("delta.before-folder-fsync")
        sync_folder(self.delta.parent)
        failpoint("delta.written")
        return seal

    def remove_results(self) -> None:
        """After a write that failed."""
        for path in (self.delta, self.next_residual):
            if path is not None:
                remove(path)


def _write(path: Path, parts: Iterable[bytes | memoryview], before_fsync: str = "") -> None:
    with path.open("wb") as file:
        for part in parts:
            file.write(part)  # `tofile` does not tell that the disk is full
        file.flush()
        failpoint(before_fsync)
        os.fsync(file.fileno())
