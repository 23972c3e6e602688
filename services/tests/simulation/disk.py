"""The master's disk: full or slow at times, and a power cut takes from it, by chance, what was not synced yet.

What was written, named and synced is seen as in `services/tests/durability`. Checkpoints lie below the disk's root.
SQLite's files lie elsewhere: they are durable at each commit (WAL, synchronous FULL), and nobody touches them.
"""

import os
import random
import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.common.errors import CheckpointError
from services.common.host import failpoints
from services.common.protocol.reasons import Reason
from services.master.shell.checkpoints import Checkpoint, Vault
from services.master.shell.store import Store
from services.tests.durability.disk import Recorder
from services.tests.durability.survivors import Pending, Survivor, drawn
from services.tests.simulation.world import World

FULL = "the disk is full (simulated); free it, then resume the run"
FULL_AT = ("before-write", "before-fsync", "before-rename", "before-folder-fsync")  # of a checkpoint
USUAL_MS = 10


class Disk:
    """What is wrong with the master's disk at present, and what on it is not durable. Made on a root that is not there.

    `recording` hooks `os`; then `Killed` is raised out of the call before which the power goes.
    """

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.root = root
        self.full = False
        self.slow_ms = USUAL_MS
        self._recorder = Recorder(root)
        self._pending = Pending()

    def recording(self) -> AbstractContextManager[None]:
        """See every call that orders what reaches the disk."""
        return self._recorder.recording()

    def cut_before(self, call: int) -> None:
        """The power goes before the so many-th of these calls from now; 0: it stays."""
        self._recorder.die_before = self._recorder.calls + call if call else 0

    def take_in(self) -> None:
        """Look at what has happened by now."""
        self._recorder.look()
        for operation in self._recorder.operations:
            self._pending.do(operation)
        self._recorder.operations.clear()
        self._pending.forget()

    def lose(self, chance: random.Random) -> str:
        """The power is gone: each piece that is not durable is kept or lost; what is left, as text."""
        self.cut_before(0)
        self.take_in()
        tree = drawn(self._pending, self._recorder.folders, chance)
        for one in sorted(self.root.iterdir()):
            shutil.rmtree(one)
        Survivor(tree, ()).lay_out(self.root)
        self._pending = Pending()
        self.take_in()
        self._pending.settle()
        left = [f"{path} ({len(content)} bytes)" for path, content in tree.items() if content is not None]
        return f"on the disk are {', '.join(left) or 'no files'}".replace(f".{os.getpid()}.", ".")


@dataclass(frozen=True)
class FaultyStore:
    """The shipped store on a disk that may be full."""

    store: Store
    disk: Disk

    def save_assignment(self, run: str, table: dict[str, Any]) -> None:
        """Fails while the disk is full."""
        self._check()
        self.store.save_assignment(run, table)

    def begin_run(self, run: str, phase: str, reason: Reason) -> None:
        """Fails while the disk is full."""
        self._check()
        self.store.begin_run(run, phase, reason)

    def save_run(self, run: str, phase: str, reason: Reason, finished: bool) -> None:
        """Fails while the disk is full."""
        self._check()
        self.store.save_run(run, phase, reason, finished)

    def save_round(self, run: str, row: dict[str, Any]) -> None:
        """Fails while the disk is full."""
        self._check()
        self.store.save_round(run, row)

    def add_events(self, events: list[tuple[int, str, str]]) -> None:
        """Fails while the disk is full."""
        self._check()
        self.store.add_events(events)

    def close(self) -> None:
        """The end."""
        self.store.close()

    def _check(self) -> None:
        if self.disk.full:
            raise CheckpointError(FULL)


@dataclass(frozen=True)
class FaultyVault:
    """The shipped vault on a disk that may be full: then one step of the write fails, as its failpoints let it."""

    vault: Vault
    disk: Disk
    world: World

    def write(self, checkpoint: Checkpoint) -> None:
        """Fails while the disk is full; after the rename, too: then the new file is there, and is not durable."""
        if self.disk.full:
            failpoints.arm(f"checkpoint.{self.world.chance.choice(FULL_AT)}=ENOSPC")
        try:
            self.vault.write(checkpoint)
        except CheckpointError:
            raise CheckpointError(FULL) from None  # the shipped sentence names this simulation's folder
        finally:
            failpoints.arm("")
        self.disk.take_in()

    def read(self, run: str, version: int) -> Checkpoint:
        """As it lies there."""
        return self.vault.read(run, version)

    def prune(self, run: str, keep: set[int]) -> None:
        """Also on a full disk."""
        self.vault.prune(run, keep)
