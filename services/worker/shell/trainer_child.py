"""The trainer process as the agent holds it: started, told, ended; its lines come to the agent's poller as events."""

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import zmq
from pydantic import TypeAdapter, ValidationError

from services.common.host.children import Child
from services.common.host.logs import Log
from services.common.protocol.messages import Task
from services.common.protocol.reasons import Reason, because
from services.worker.core.events import (
    Anchored,
    AnchorWrong,
    StorageFailed,
    TrainerDone,
    TrainerExited,
    TrainerFailed,
    TrainerProgress,
    TrainerReady,
    TrainerStopped,
    TrainerWaits,
)

MODULE = "services.worker.shell.trainer"
WAKE_ENDPOINT = "inproc://trainer-lines"
ROOT = Path(__file__).parents[3]
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
SECRET_VARIABLES = ("MAHE_JOIN", "MAHE_WORKER_JOIN")
SCORE_VARIABLE = "MAHE_TRAINER_SCORE"
SIGKILL_CODE = -9
CHATTER_LENGTH_MAX = 200

TrainerEvent = (
    TrainerReady
    | TrainerProgress
    | Anchored
    | AnchorWrong
    | TrainerWaits
    | TrainerDone
    | TrainerStopped
    | TrainerFailed
    | TrainerExited
    | StorageFailed
)
_EVENTS: dict[str, TypeAdapter[TrainerEvent]] = {
    "ready": TypeAdapter(TrainerReady),
    "progress": TypeAdapter(TrainerProgress),
    "anchored": TypeAdapter(Anchored),
    "anchor_wrong": TypeAdapter(AnchorWrong),
    "waits": TypeAdapter(TrainerWaits),
    "done": TypeAdapter(TrainerDone),
    "stopped": TypeAdapter(TrainerStopped),
    "failed": TypeAdapter(TrainerFailed),
    "unwritten": TypeAdapter(StorageFailed),
}


def trainer_environment(environment: Mapping[str, str], threads: int, score: float) -> dict[str, str]:
    """The trainer's environment: threads fixed before NumPy is imported, and no secret."""
    kept = {name: value for name, value in environment.items() if name not in SECRET_VARIABLES}
    kept |= dict.fromkeys(THREAD_VARIABLES, str(threads))
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH", "")]))
    kept[SCORE_VARIABLE] = str(score)
    return kept


def exit_reason(code: int) -> Reason:
    """How the trainer ended."""
    if code == SIGKILL_CODE:
        return because("TRAINER_KILLED")
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return because("TRAINER_ENDED", how=how)


def read_line(line: bytes) -> TrainerEvent | None:
    """A line of the trainer as an event; None for what is none, with a missing or ill-typed field for example."""
    fields = json.loads(line)  # `_on_line` wrote it
    kind = fields.get("t")
    if kind == "exit" and isinstance(fields.get("code"), int):
        return TrainerExited(exit_reason(fields["code"]))
    if not isinstance(kind, str) or kind not in _EVENTS:
        return None
    try:
        return _EVENTS[kind].validate_json(line, strict=True)
    except ValidationError:
        return None


class TrainerChild:
    """At most one trainer. Lines of a trainer that was ended on purpose are not heard any more."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], threads: int, score: float, log: Log) -> None:
        self._context = context
        self._log = log
        self._env = trainer_environment(os.environ, threads, score)
        self._child: Child | None = None
        self._local = threading.local()
        self.lines = context.socket(zmq.PULL)
        self.lines.setsockopt(zmq.LINGER, 0)
        self.lines.bind(WAKE_ENDPOINT)

    @property
    def pid(self) -> int | None:
        """Process id of the trainer, while there is one."""
        return self._child.pid if self._child is not None else None

    def start(self) -> TrainerExited | None:
        """Start one; the old one, if any, is reaped. What it says when that cannot be done is as if it had ended."""
        self.stop()
        try:
            self._child = Child(MODULE, self._env, self._on_line, self._log)
        except (OSError, RuntimeError) as error:  # no process, file or memory left; RuntimeError: no thread
            return TrainerExited(because("TRAINER_NOT_STARTED", why=str(error)))
        return None

    def stop(self) -> None:
        """End it at once and reap it."""
        if self._child is not None:
            self._child.kill()
            self._child.stop()
            self._child = None
            self._drop_lines()

    def train(self, task: Task, files: dict[str, Any], *, goes_on: bool) -> None:
        """Give it a task, with its files by name; a trainer that is gone says so by its exit line."""
        line = {"t": "train", "lease": task.ref.lease, "files": files, "task": task.model_dump_json()}
        self._send(line | {"goes_on": goes_on})

    def rebase(self, task: Task, files: dict[str, Any]) -> None:
        """The base of the task that it has, with the files of anchor and updates."""
        self._send({"t": "rebase", "lease": task.ref.lease, "files": files, "task": task.model_dump_json()})

    def cancel(self, lease: str) -> None:
        """Stop this task within one step."""
        self._send({"t": "cancel", "lease": lease})

    def receive(self) -> TrainerEvent | None:
        """The next line as an event; None when there is none. What a library of the trainer prints is only logged."""
        while self.lines.poll(0):
            line = self.lines.recv()
            event = read_line(line)
            if event is not None:
                return event
            self._log("TRAINER", f"said: {line.decode(errors='replace')[:CHATTER_LENGTH_MAX]}")
        return None

    def close(self) -> None:
        """End the trainer and close the socket."""
        try:
            self.stop()
        finally:
            self.lines.close()

    def _send(self, line: dict[str, Any]) -> None:
        if self._child is not None:
            self._child.send(line)

    def _on_line(self, line: dict[str, Any]) -> None:
        """In the reading thread, which owns its own end of the wake-up."""
        socket: zmq.Socket[bytes] | None = getattr(self._local, "socket", None)
        if socket is None:
            socket = self._local.socket = self._context.socket(zmq.PUSH)
            socket.setsockopt(zmq.LINGER, 1000)
            socket.connect(WAKE_ENDPOINT)
        socket.send(json.dumps(line).encode())
        if line.get("t") == "exit":
            socket.close()
            self._local.socket = None

    def _drop_lines(self) -> None:
        while self.lines.poll(0):
            self.lines.recv()
