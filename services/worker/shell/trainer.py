"""The trainer process: `python -m services.worker.shell.trainer`. Computes local steps; knows no network and no master.

JSON lines both ways over its standard input and output; parameters by files of the slot, raw little-endian float32.
It ends at once when the agent does: the thread that reads the agent's lines ends the process at the end of its input.

    agent -> trainer   {"t": "train", "lease", "anchor": path, "delta": path, "task": TASK}   {"t": "cancel", "lease"}
    trainer -> agent   ready, progress, done, stopped, failed, unwritten: each an event of the core, by its fields
"""

import json
import os
import queue
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from services.common.errors import DatasetError, MaheError
from services.common.host.children import lines_from_parent, tell_parent
from services.common.host.failpoints import failpoint
from services.common.host.files import remove, sync_folder
from services.common.host.machine import NICE_TRAINER, give_way
from services.common.learning import datasets
from services.common.learning.inner import InnerOptimizer, build_inner
from services.common.learning.local_steps import Cancelled, LocalResult, LocalTask, run_local_steps
from services.common.learning.models import Model, build_model
from services.common.learning.optimizer_state import State
from services.common.learning.parameters import Floats, digest
from services.common.protocol.messages import Task
from services.worker.shell.benchmark import measure
from services.worker.shell.disk import disk_text
from services.worker.shell.numbers import finite_or_none

PROGRESS_EVERY_S = 0.2
DATASETS_CACHED = 2
CANCELLATIONS_KEPT = 16
SCORE_VARIABLE = "MAHE_TRAINER_SCORE"


class Cancellations:
    """Leases not to train any more, told by the reading thread. A late one is kept a while, for nothing."""

    def __init__(self) -> None:
        self._leases: dict[str, None] = {}

    def add(self, lease: str) -> None:
        """Stop this lease, now or when its turn comes. Called by the reading thread alone."""
        self._leases = dict.fromkeys([*self._leases, lease][-CANCELLATIONS_KEPT:])

    def discard(self, lease: str) -> None:
        """This lease is given again after all. Called by the reading thread alone."""
        self._leases = {one: None for one in self._leases if one != lease}

    def has(self, lease: str) -> bool:
        """Whether this lease is to stop."""
        return lease in self._leases


class Trainer:
    """Data sets, model and inner optimizer, kept between the tasks of one run."""

    def __init__(self, cancellations: Cancellations) -> None:
        self._cancellations = cancellations
        self._datasets: dict[str, datasets.Dataset] = {}
        self._model: tuple[str, Model] | None = None
        self._optimizer: tuple[str, InnerOptimizer] | None = None
        self._before: State | None = None  # of the optimizer, before the task in hand

    def train(self, task: Task, anchor_path: Path, delta_path: Path) -> dict[str, Any]:
        """The line to answer with. When it is `done`, the delta is durable; else the attempt leaves no trace."""
        self._before = None
        answer: dict[str, Any]
        try:
            return self._attempt(task, anchor_path, delta_path)
        except Cancelled:
            answer = {"t": "stopped"}
        except MaheError as error:
            answer = {"t": "failed", "reason": error.sentence}
        except MemoryError as error:
            answer = {"t": "failed", "reason": f"this PC ran out of memory ({error}); close some programs"}
        except OSError as error:
            remove(delta_path)
            answer = {"t": "unwritten", "text": disk_text(delta_path, error)}
        self._undo()
        return answer | {"lease": task.ref.lease}

    def _attempt(self, task: Task, anchor_path: Path, delta_path: Path) -> dict[str, Any]:
        started = time.monotonic()
        result = self._run(task, read_parameters(anchor_path))
        write_parameters(delta_path, result.delta)
        if self._is_finite(result):
            self._before = None
        else:
            self._undo()  # the master refuses it; what comes next must not begin with its numbers
        return {
            "t": "done",
            "lease": task.ref.lease,
            "delta_bytes": result.delta.nbytes,
            "digest": digest(result.delta),
            "samples": result.samples,
            "steps": result.steps,
            "correct": result.n_correct,
            "loss": finite_or_none(result.loss),
            "compute_ms": round((time.monotonic() - started) * 1000),
        }

    def _run(self, task: Task, anchor: Floats) -> LocalResult:
        if digest(anchor) != task.anchor_digest:
            raise DatasetError("the anchor in this slot is another one by now; the task must be given again")
        dataset = self._dataset(task.data)
        model = self._build_model(task, dataset)
        if not model.n_parameters == task.n_parameters == len(anchor):
            raise DatasetError(
                f"the model has {model.n_parameters} parameters here, the task says {task.n_parameters} and the "
                f"anchor holds {len(anchor)}; install the same MAHE on both sides"
            )
        local = local_task(task)
        optimizer = self._build_optimizer(task, model)
        self._before = optimizer.state()
        return run_local_steps(model, optimizer, anchor, dataset, local, Reporter(task, self._cancellations).on_step)

    def _is_finite(self, result: LocalResult) -> bool:
        """Whether the delta and the state of the optimizer are numbers: one may be without the other."""
        state = self._optimizer[1].state().values() if self._optimizer is not None else ()
        return all(bool(np.isfinite(array).all()) for array in (result.delta, *state))

    def _undo(self) -> None:
        """As if the task in hand had never been: its steps are part of no version."""
        if self._before is not None and self._optimizer is not None:
            self._optimizer[1].load(self._before)
        self._before = None

    def _dataset(self, descriptor: dict[str, Any]) -> datasets.Dataset:
        key = json.dumps(descriptor, sort_keys=True)
        if key not in self._datasets:
            if len(self._datasets) >= DATASETS_CACHED:
                self._datasets.pop(next(iter(self._datasets)))
            try:
                self._datasets[key] = datasets.load(descriptor)
            except OSError as error:
                raise DatasetError(f"the data set cannot be read ({error}); install MAHE again") from None
        return self._datasets[key]

    def _build_model(self, task: Task, dataset: datasets.Dataset) -> Model:
        inputs = dataset.x_train.shape[1]
        key = json.dumps([task.model, inputs, dataset.classes], sort_keys=True)
        if self._model is None or self._model[0] != key:
            self._model = (key, build_model(task.model, inputs, dataset.classes))
        return self._model[1]

    def _build_optimizer(self, task: Task, model: Model) -> InnerOptimizer:
        """The run's inner optimizer with the state it has; another run, model or setting begins afresh."""
        key = json.dumps([task.ref.run, task.inner, task.model], sort_keys=True)
        if task.fresh or self._optimizer is None or self._optimizer[0] != key:
            self._optimizer = (key, build_inner(task.inner, model.n_parameters))
        return self._optimizer[1]


class Reporter:
    """Tells the agent how far one task is, a few times a second, and hears whether to stop."""

    def __init__(self, task: Task, cancellations: Cancellations) -> None:
        self._task = task
        self._cancellations = cancellations
        self._next_s = 0.0

    def on_step(self, step: int, loss: float) -> bool:
        """True to cancel."""
        lease = self._task.ref.lease
        if self._cancellations.has(lease):
            return True
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + PROGRESS_EVERY_S
            tell_parent(
                {
                    "t": "progress",
                    "lease": lease,
                    "step": step,
                    "steps_total": self._task.k_steps,
                    "loss": finite_or_none(loss),
                    "samples": step * self._task.batch,
                }
            )
        return False


def local_task(task: Task) -> LocalTask:
    """What of a TASK message the local steps need."""
    return LocalTask(
        seed=task.data_seed,
        round=task.ref.round,
        shard=task.ref.shard,
        ranges=tuple(task.ranges),
        batch=task.batch,
        k_steps=task.k_steps,
        delta_scale=task.delta_scale,
    )


def read_parameters(path: Path) -> Floats:
    """A whole file of little-endian float32, as this machine's."""
    return np.fromfile(path, dtype="<f4").astype(np.float32, copy=False)


def write_parameters(path: Path, parameters: Floats) -> None:
    """Little-endian float32, durable before it returns."""
    failpoint("delta.before-write")
    with path.open("wb") as file:
        file.write(np.ascontiguousarray(parameters, dtype="<f4").data)  # `tofile` does not tell that the disk is full
        file.flush()
        failpoint("delta.before-fsync")
        os.fsync(file.fileno())
    failpoint("delta.before-folder-fsync")
    sync_folder(path.parent)
    failpoint("delta.written")


def read_lines(lines: "queue.SimpleQueue[dict[str, Any]]", cancellations: Cancellations) -> None:
    """In its own thread: hand tasks on, note cancellations, and end the process when the agent is gone."""
    for line in lines_from_parent():
        if line["t"] == "cancel":
            cancellations.add(line["lease"])
        else:
            cancellations.discard(line["lease"])
            lines.put(line)
    os._exit(0)


def main() -> None:
    """Measure this PC, say ready, then train until the agent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the agent ends this process
    give_way(NICE_TRAINER)
    cancellations = Cancellations()
    lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=read_lines, args=(lines, cancellations), name="agent-lines", daemon=True).start()
    score = float(os.environ.get(SCORE_VARIABLE) or 0) or measure()
    tell_parent({"t": "ready", "score": score, "pid": os.getpid()})
    trainer = Trainer(cancellations)
    while True:
        line = lines.get()
        task = Task.model_validate_json(line["task"])
        tell_parent(trainer.train(task, Path(line["anchor"]), Path(line["delta"])))


if __name__ == "__main__":
    main()
