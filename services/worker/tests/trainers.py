"""Trainers of the shell tests, in a process of their own and in this one, on the files of a slot."""

import dataclasses
import os
import queue
from pathlib import Path
from typing import Any

import numpy as np

from services.common.host.children import Child
from services.common.host.files import FolderLock
from services.common.learning.parameters import Floats, digest
from services.common.protocol.messages import Task
from services.worker.core.commands import Train
from services.worker.shell import trainer as trainer_module
from services.worker.shell.agent import paths_of
from services.worker.shell.orders import Orders
from services.worker.shell.slot import Slot
from services.worker.shell.task_files import TaskFiles
from services.worker.shell.trainer_child import MODULE, trainer_environment
from services.worker.tests.conftest import Job


def slot_in(folder: Path) -> Slot:
    """A slot that nobody has locked."""
    folder.mkdir(parents=True, exist_ok=True)
    return Slot(folder, FolderLock(folder), print)


class TrainerProcess:
    """A trainer process and its lines."""

    def __init__(self, folder: Path, score: float = 7.0) -> None:
        self.slot = slot_in(folder)
        self.lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.child = Child(MODULE, trainer_environment(os.environ, 1, score), self.lines.put)
        self.score = self.expect("ready")["score"]

    def expect(self, kind: str) -> dict[str, Any]:
        """The next line that is no progress, which must be of this kind."""
        while True:
            line = self.lines.get(timeout=20)
            if line["t"] == kind:
                return line
            assert line["t"] == "progress", line

    def expect_progress(self) -> None:
        """The next line is about steps that were done."""
        assert self.lines.get(timeout=20)["t"] == "progress"

    def give(self, task: Task, anchor: bytes | None, updates: tuple[int, ...] = ()) -> Path:
        """Give it a task, as the agent does; where the delta will be. `anchor`: None for the one that is there."""
        if anchor is not None:
            self.slot.replica.anchor.write_bytes(anchor)
        line = {"t": "train", "lease": task.ref.lease, "files": paths_of(self.slot, Train(task, updates))}
        self.child.send(line | {"task": task.model_dump_json(), "goes_on": False})
        return self.slot.delta_path(task.ref.lease)

    def delta(self, task: Task, anchor: bytes | None = None) -> bytes:
        """The whole delta of a task on an anchor that is at its version."""
        path = self.give(task, anchor)
        self.expect("done")
        return path.read_bytes()

    def floats(self, task: Task) -> Floats:
        """The delta of the same work before it is encoded."""
        ref = task.ref.model_copy(update={"lease": f"{task.ref.lease}-raw"})
        raw = self.delta(task.model_copy(update={"ref": ref, "encoding": "fp32"}))
        return np.frombuffer(raw, "<f4").astype(np.float32)


class Here:
    """The trainer's work in this process, and its slot."""

    def __init__(self, folder: Path, job: Job) -> None:
        self.job = job
        self.slot = slot_in(folder)
        self.orders = Orders()
        self.trainer = trainer_module.Trainer(self.orders)

    @property
    def delta(self) -> Path:
        """Of the task `lease-0`."""
        return self.slot.delta_path("lease-0")

    def train(
        self, *, anchor: bytes = b"", to: Path | None = None, updates: tuple[int, ...] = (), **changes: Any
    ) -> dict[str, Any]:
        """One task; the answer."""
        if not updates:
            self.slot.replica.anchor.write_bytes(anchor or self.job.anchor_bytes)
        if anchor:
            changes["anchor_digest"] = digest(np.frombuffer(anchor, "<f4"))
        task = self.job.task().model_copy(update=changes)
        files = TaskFiles.of(paths_of(self.slot, Train(task, updates)))
        return self.trainer.train(task, dataclasses.replace(files, delta=to or files.delta))
