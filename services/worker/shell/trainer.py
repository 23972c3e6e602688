"""The trainer process: `python -m services.worker.shell.trainer`. Computes local steps; knows no network and no master.

JSON lines both ways over its standard input and output; parameters, updates and deltas by files of the slot.
It ends at once when the agent does: the thread that reads the agent's lines ends the process at the end of its input.

    agent -> trainer   {"t": "train", "lease", "files": paths by name, "task": TASK, "goes_on": true or false}
                       {"t": "rebase", "lease", "files", "task"}: the base of a task that is ahead
                       {"t": "cancel", "lease"}
    trainer -> agent   events of the core: ready, anchored, progress, waits, done, stopped, failed, anchor_wrong,
                       unwritten

It alone moves the anchor on: the updates of a task are applied, and the new anchor written, before the first step, or
between two steps of a task that is ahead.
"""

import json
import math
import os
import queue
import signal
import threading
import time
from functools import partial
from typing import Any

import numpy as np

from services.common.errors import DatasetError, MaheError
from services.common.host.children import lines_from_parent, tell_parent
from services.common.host.machine import NICE_TRAINER, give_way, keep_freed_memory
from services.common.kernels import absmax
from services.common.learning import datasets
from services.common.learning.encodings import encode
from services.common.learning.examples import Dataset
from services.common.learning.exchange import follow
from services.common.learning.inner import InnerOptimizer, build_inner
from services.common.learning.local_steps import Cancelled, LocalResult, LocalSteps, LocalTask, run_local_steps
from services.common.learning.models import Model, build_model
from services.common.learning.optimizer_state import State
from services.common.learning.parameters import Floats, bytes_digest
from services.common.protocol.messages import Task
from services.worker.shell.benchmark import measure
from services.worker.shell.disk import disk_text
from services.worker.shell.numbers import finite_or_none
from services.worker.shell.orders import Line, Orders
from services.worker.shell.task_clock import Clock
from services.worker.shell.task_files import TaskFiles

PROGRESS_EVERY_S = 0.2
DATASETS_CACHED = 2
SCORE_VARIABLE = "MAHE_TRAINER_SCORE"


class AnchorOff(Exception):
    """With its updates the anchor is not the one that the task says."""


class Trainer:
    """Data sets, model, inner optimizer and anchor, kept between the tasks of one run."""

    def __init__(self, orders: Orders, local_steps: LocalSteps = run_local_steps) -> None:
        self._orders = orders
        self._local_steps = local_steps
        self._datasets: dict[str, Dataset] = {}
        self._model: tuple[str, Model] | None = None
        self._optimizer: tuple[str, InnerOptimizer] | None = None
        self._before: State | None = None  # of the optimizer, before the task in hand
        self._anchor: tuple[str, Floats] | None = None  # with its digest
        self._local: tuple[str, int, Floats] | None = None  # run, round, parameters after the last step
        self._ended: tuple[str, int, float] = ("", 0, 0.0)  # run, round, when the steps of the last delta ended
        self._left_over: tuple[str, bytes, Floats | None] = ("", b"", None)  # lineage, seal, what the last delta left

    def train(self, task: Task, files: TaskFiles, *, goes_on: bool = False) -> dict[str, Any]:
        """The line to answer with. When it is `done`, the delta is durable; else the attempt leaves no trace."""
        self._before = None
        answer: dict[str, Any]
        try:
            return self._attempt(task, files, goes_on=goes_on)
        except Cancelled:
            answer = {"t": "stopped"}
        except AnchorOff as error:
            self._anchor = None
            answer = {"t": "anchor_wrong", "reason": str(error)}
        except MaheError as error:
            answer = {"t": "failed", "reason": error.sentence}
        except MemoryError as error:
            answer = {"t": "failed", "reason": f"this PC ran out of memory ({error}); close some programs"}
        except OSError as error:
            files.remove_results()
            answer = {"t": "unwritten", "text": disk_text(files.delta, error)}
        self._undo()
        return answer | {"lease": task.ref.lease}

    def _attempt(self, task: Task, files: TaskFiles, *, goes_on: bool) -> dict[str, Any]:
        anchor = self._last_local(task) if goes_on else self._reach(task, files)
        clock = Clock(self._ended, task)
        result = self._run(task, anchor, clock)
        self._local, self._ended = (task.ref.run, task.ref.round, result.local), clock.end()
        residual = self._owed(task, files)
        encoded = encode(task.encoding, result.delta, residual)
        self._left_over = (task.lineage, files.write_results(task, encoded, residual), residual)
        if self._is_finite(result):
            self._before = None
        else:
            self._undo()  # the master refuses it; what comes next must not begin with its numbers
            self._local = None
        return {
            "t": "done",
            "lease": task.ref.lease,
            "delta_bytes": encoded.nbytes,
            "digest": bytes_digest(encoded),
            "samples": result.samples,
            "steps": result.steps,
            "correct": result.n_correct,
            "loss": finite_or_none(result.loss),
            "compute_ms": clock.compute_ms,
            "sync_ms": clock.sync_ms,
            "late_ms": clock.late_ms,
        }

    def _last_local(self, task: Task) -> Floats:
        """Where the last round's steps ended; the version before it when those were no numbers."""
        if self._local is not None and self._local[:2] == (task.ref.run, task.ref.base_version):
            return self._local[2]
        if self._anchor is None:
            raise DatasetError("this trainer knows nothing of the round before; the task must be given again")
        return self._anchor[1]

    def _on_base(self, task: Task, clock: Clock, is_last: bool) -> Floats | None:
        """The base of a task that is ahead, as soon as the agent has it."""
        lease = task.ref.lease
        asked_s = time.monotonic()
        line = self._orders.base(lease)
        if line is None and not is_last:
            return None
        if line is None:
            tell_parent({"t": "waits", "lease": lease})
            line = self._orders.await_base(lease)
        if line is None:
            raise Cancelled("cancelled while it waited for its base")
        base = self._reach(Task.model_validate_json(line["task"]), TaskFiles.of(line["files"]))
        clock.synced(asked_s)
        return base

    def _owed(self, task: Task, files: TaskFiles) -> Floats | None:
        """The residual that counts: mostly what the last delta left over, which is still in memory."""
        lineage, seal, residual = self._left_over
        if residual is not None and (lineage, seal) == (task.lineage, files.owes()):
            return residual.copy()
        return files.read_residual(task)

    def _reach(self, task: Task, files: TaskFiles) -> Floats:
        """The task's version: kept from before, read, or made by the updates, which is then written and told."""
        if self._anchor is not None and self._anchor[0] == task.anchor_digest:
            return self._anchor[1]
        updates = files.read_updates()
        anchor = None
        if self._anchor is not None and updates and len(self._anchor[1]) == task.n_parameters:
            anchor = follow(self._anchor[1], updates, task.anchor_digest)
        if anchor is None:  # what is in memory is not what the file holds: the agent has pulled a whole version
            anchor = follow(files.read_anchor(), updates, task.anchor_digest)
        if anchor is None:
            if not updates:
                raise DatasetError("the anchor in this slot is another one by now; the task must be given again")
            raise AnchorOff(f"the anchor with {len(updates)} updates has not the digest {task.anchor_digest}")
        if files.updates:
            files.write_anchor(anchor)
            tell_parent({"t": "anchored", "lease": task.ref.lease})
        self._anchor = (task.anchor_digest, anchor)
        return anchor

    def _run(self, task: Task, anchor: Floats, clock: Clock) -> LocalResult:
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
        on_base = partial(self._on_base, task, clock) if task.is_ahead else None
        clock.start()
        on_step = Reporter(task, self._orders, clock).on_step
        return self._local_steps(model, optimizer, anchor, dataset, local, on_step, on_base)

    def _is_finite(self, result: LocalResult) -> bool:
        """Whether the delta and the state of the optimizer are numbers: one may be without the other."""
        state = self._optimizer[1].state().values() if self._optimizer is not None else ()
        floats = [array for array in (result.delta, *state) if array.dtype == np.float32]
        return all(math.isfinite(absmax(array)) for array in floats)

    def _undo(self) -> None:
        """As if the task in hand had never been: its steps are part of no version."""
        if self._before is not None and self._optimizer is not None:
            self._optimizer[1].load(self._before)
        self._before = None

    def _dataset(self, descriptor: dict[str, Any]) -> Dataset:
        key = json.dumps(descriptor, sort_keys=True)
        if key not in self._datasets:
            if len(self._datasets) >= DATASETS_CACHED:
                self._datasets.pop(next(iter(self._datasets)))
            try:
                self._datasets[key] = datasets.load(descriptor)
            except OSError as error:
                raise DatasetError(f"the data set cannot be read ({error}); install MAHE again") from None
        return self._datasets[key]

    def _build_model(self, task: Task, dataset: Dataset) -> Model:
        inputs = dataset.x_train.shape[1]
        key = json.dumps([task.model, inputs, dataset.classes], sort_keys=True)
        if self._model is None or self._model[0] != key:
            self._model = (key, build_model(task.model, inputs, dataset.classes))
        return self._model[1]

    def _build_optimizer(self, task: Task, model: Model) -> InnerOptimizer:
        """The run's inner optimizer with the state it has; another run, model or setting begins afresh.

        So does a run that went back: what its optimizer had gathered led where it diverged.
        """
        key = json.dumps([task.lineage, task.inner, task.model], sort_keys=True)
        if task.fresh or self._optimizer is None or self._optimizer[0] != key:
            self._optimizer = (key, build_inner(task.inner, model.n_parameters))
        return self._optimizer[1]


class Reporter:
    """Tells the agent how far one task is, a few times a second, and hears whether to stop."""

    def __init__(self, task: Task, orders: Orders, clock: Clock) -> None:
        self._task = task
        self._orders = orders
        self._clock = clock
        self._next_s = 0.0

    def on_step(self, step: int, loss: float) -> bool:
        """True to cancel."""
        lease = self._task.ref.lease
        if step == self._task.k_steps // 2:
            self._clock.half()
        if self._orders.is_cancelled(lease):
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
        begin=min(1.0, task.ref.base_version / task.rounds),
        end=min(1.0, (task.ref.base_version + 1) / task.rounds),
    )


def read_lines(lines: "queue.SimpleQueue[Line]", orders: Orders) -> None:
    """In its own thread: hand tasks on, note orders, and end the process when the agent is gone."""
    for line in lines_from_parent():
        if line["t"] == "cancel":
            orders.cancel(line["lease"])
        elif line["t"] == "rebase":
            orders.rebase(line["lease"], line)
        else:
            orders.give(line["lease"])
            lines.put(line)
    os._exit(0)


def main(local_steps: LocalSteps = run_local_steps) -> None:
    """Measure this PC, say ready, then train until the agent is gone. Benchmarks and tests bring other local steps."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the agent ends this process
    give_way(NICE_TRAINER)
    keep_freed_memory()
    orders = Orders()
    lines: queue.SimpleQueue[Line] = queue.SimpleQueue()
    threading.Thread(target=read_lines, args=(lines, orders), name="agent-lines", daemon=True).start()
    score = float(os.environ.get(SCORE_VARIABLE) or 0) or measure()
    tell_parent({"t": "ready", "score": score, "pid": os.getpid()})
    trainer = Trainer(orders, local_steps)
    while True:
        line = lines.get()
        task = Task.model_validate_json(line["task"])
        tell_parent(trainer.train(task, TaskFiles.of(line["files"]), goes_on=line["goes_on"]))


if __name__ == "__main__":
    main()
