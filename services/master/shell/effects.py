"""One function for each of the coordinator's commands: what the shell does about it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from services.common.host.failpoints import failpoint
from services.common.protocol.messages import RoundClosed, Update
from services.master.core import commands as c
from services.master.core.events import Event
from services.master.core.state import ModelFile
from services.master.shell.admission import Admission
from services.master.shell.bulletin import Bulletin
from services.master.shell.checkpoints import Vault
from services.master.shell.desk import Job
from services.master.shell.downloads import Downloads
from services.master.shell.evaluation import Evaluation
from services.master.shell.uploads import Uploads
from services.master.shell.worker_port import WorkerPort


class Jobs(Protocol):
    """Where jobs for the desk are queued: `Aggregation`, or the simulator's."""

    def do(self, job: Job) -> None:
        """Queue one job."""


class Answers(Protocol):
    """Where an operator is answered: `ControlPort`, or the simulator's."""

    def answer(self, cmd_id: str, ok: bool, code: str, text: str, result: dict[str, Any]) -> None:
        """Reply to a command."""


class Copies(Protocol):
    """Who copies models to where people want them: `ModelCopies`, or the simulator's."""

    def copy(self, run: str, version: int, path: str) -> None:
        """When there is time."""

    def found(self, run: str, path: str) -> ModelFile:
        """What of this run is there after a restart."""

    def stop(self) -> None:
        """The end."""


@dataclass
class Effects:
    """The parts that commands act on. `apply` returns events that are already known (a skipped evaluation)."""

    workers: WorkerPort
    control: Answers
    uploads: Uploads
    downloads: Downloads
    aggregation: Jobs
    evaluation: Evaluation
    admission: Admission
    bulletin: Bulletin
    vault: Vault
    models: Copies

    def apply(self, command: c.Command, now_ms: int) -> list[Event]:
        """Do one command."""
        return _TABLE[type(command)](self, command, now_ms) or []


def _send(on: Effects, command: c.Send, now_ms: int) -> None:
    if isinstance(command.message, RoundClosed):
        failpoint("round.before-announce")
    on.workers.send(command.worker, command.message)
    if isinstance(command.message, Update) and command.message.pushed:
        on.downloads.push(command.worker, command.message, now_ms)


def _prepare_run(on: Effects, command: c.PrepareRun, now_ms: int) -> None:
    on.bulletin.start_run(command.run, [])
    on.evaluation.warm()
    on.aggregation.do(lambda desk: desk.prepare(command))


def _restore_run(on: Effects, command: c.RestoreRun, now_ms: int) -> None:
    on.aggregation.do(lambda desk: desk.read_again(command))


def _save_run(on: Effects, command: c.SaveRun, now_ms: int) -> None:
    on.aggregation.do(lambda desk: desk.save_run(command))


def _save_assignment(on: Effects, command: c.SaveAssignment, now_ms: int) -> None:
    on.aggregation.do(lambda desk: desk.save_assignment(command))


def _stage(on: Effects, command: c.Stage, now_ms: int) -> None:
    on.uploads.begin(command.worker, command.begin, now_ms)


def _fold(on: Effects, command: c.Fold, now_ms: int) -> None:
    on.aggregation.do(lambda desk: desk.fold(command))


def _drop_staged(on: Effects, command: c.DropStaged, now_ms: int) -> None:
    on.aggregation.do(lambda desk: desk.drop_staged(command))


def _drop_round(on: Effects, command: c.DropRound, now_ms: int) -> None:
    on.uploads.drop_round(command.run, command.round, now_ms)
    on.aggregation.do(lambda desk: desk.drop_round(command))


def _aggregate(on: Effects, command: c.Aggregate, now_ms: int) -> None:
    on.aggregation.do(lambda desk: desk.aggregate(command))


def _write_checkpoint(on: Effects, command: c.WriteCheckpoint, now_ms: int) -> None:
    on.aggregation.do(lambda desk: desk.write_checkpoint(command))


def _revert(on: Effects, command: c.Revert, now_ms: int) -> None:
    on.aggregation.do(lambda desk: desk.revert(command))


def _save_round(on: Effects, command: c.SaveRound, now_ms: int) -> None:
    on.aggregation.do(lambda desk: desk.save_round(command))


def _evaluate(on: Effects, command: c.Evaluate, now_ms: int) -> list[Event]:
    run = on.bulletin.coordinator.state.run
    if run is None or run.id != command.run:
        return []
    path = on.vault.path_of(command.run, command.version)
    return on.evaluation.ask(command.run, command.version, path, run.data, run.spec.model)


def _mark_best(on: Effects, command: c.MarkBest, now_ms: int) -> None:
    on.aggregation.do(lambda desk: desk.mark_best(command.run, command.version))


def _copy_model(on: Effects, command: c.CopyModel, now_ms: int) -> None:
    on.models.copy(command.run, command.version, command.path)


def _forget_session(on: Effects, command: c.ForgetSession, now_ms: int) -> None:
    on.workers.forget(command.worker)
    on.uploads.forget(command.worker, now_ms)
    on.downloads.forget(command.worker, now_ms)


def _revoke_worker(on: Effects, command: c.RevokeWorker, now_ms: int) -> list[Event]:
    events = on.workers.flush()  # its BYE goes out first; its key was deleted when the operator asked
    _forget_session(on, c.ForgetSession(command.worker), now_ms)
    return events


def _answer(on: Effects, command: c.Answer, now_ms: int) -> None:
    on.control.answer(command.cmd_id, command.ok, command.code, command.text, command.result)


def _report(on: Effects, command: c.Report, now_ms: int) -> None:
    on.bulletin.post(command.kind, command.text, command.data)


_TABLE: dict[type, Callable[[Effects, Any, int], list[Event] | None]] = {
    c.Send: _send,
    c.PrepareRun: _prepare_run,
    c.RestoreRun: _restore_run,
    c.SaveRun: _save_run,
    c.SaveAssignment: _save_assignment,
    c.Stage: _stage,
    c.Fold: _fold,
    c.DropStaged: _drop_staged,
    c.DropRound: _drop_round,
    c.Aggregate: _aggregate,
    c.WriteCheckpoint: _write_checkpoint,
    c.Revert: _revert,
    c.SaveRound: _save_round,
    c.Evaluate: _evaluate,
    c.MarkBest: _mark_best,
    c.CopyModel: _copy_model,
    c.ForgetSession: _forget_session,
    c.RevokeWorker: _revoke_worker,
    c.Answer: _answer,
    c.Report: _report,
}
