"""The transition table: for every phase of the run and every event, a handler or a reason to ignore it.

A test checks that it is total and that the picture in docs/DESIGN.md is the one drawn from it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from services.master.core import deltas, model_file, queueing, reverting, rounds, runs, workers
from services.master.core.context import Context
from services.master.core.state import ACTIVE, RunPhase

Handler = Callable[[Context, Any], object]


@dataclass(frozen=True)
class Ignore:
    """Nothing is done, for this reason."""

    reason: str


Cell = Handler | Ignore
_ALL = tuple(RunPhase)
_ENDED = (RunPhase.IDLE, RunPhase.STOPPED, RunPhase.FAILED)


def _everywhere(handler: Handler) -> dict[RunPhase, Cell]:
    return dict.fromkeys(_ALL, handler)


def _only(handler: Handler, phases: tuple[RunPhase, ...], otherwise: Cell) -> dict[RunPhase, Cell]:
    return {phase: handler if phase in phases else otherwise for phase in _ALL}


_OVER = Ignore("the run it belongs to has ended")
_COMMITS = (*ACTIVE, RunPhase.STOPPED)  # a stop lets a round that has begun to commit through

TABLE: dict[str, dict[RunPhase, Cell]] = {
    # time and workers: the same whatever the run does
    "Tick": _everywhere(workers.on_tick),
    "WorkerJoined": _everywhere(workers.on_joined),
    "WorkerLeft": _everywhere(workers.on_left),
    "WorkerHeard": _everywhere(workers.on_heard),
    "RemoveWorker": _everywhere(workers.on_remove_worker),
    "HEARTBEAT": _everywhere(workers.on_said),
    "TASK_ACK": _everywhere(workers.on_said),
    "TASK_REFUSE": _everywhere(workers.on_said),
    "PROGRESS": _everywhere(workers.on_said),
    "MISMATCH": _everywhere(workers.on_said),
    "DRAIN": _everywhere(workers.on_said),
    "BYE": _everywhere(workers.on_said),
    # deltas: always answered, also when nobody wants them any more
    "DELTA_BEGIN": _everywhere(deltas.on_delta_begin),
    "DeltaStaged": _everywhere(deltas.on_delta_staged),
    "UploadStalled": _everywhere(deltas.on_upload_stalled),
    # the operator
    "CreateRun": _only(queueing.on_create, _ENDED, queueing.on_enqueue),
    "PauseRun": _only(runs.on_pause, (RunPhase.RUNNING, RunPhase.WAITING), runs.refuse_phase),
    "ResumeRun": _only(runs.on_resume, (RunPhase.PAUSED, RunPhase.FAILED), runs.refuse_phase),
    "StopRun": _everywhere(runs.on_stop),
    # what the shell has done
    "RunPrepared": _only(runs.on_prepared, ACTIVE, _OVER),
    "RunUnusable": _only(runs.on_unusable, ACTIVE, _OVER),
    "AssignmentSaved": _only(rounds.on_assignment_saved, ACTIVE, _OVER),
    "AggregationDone": _only(rounds.on_aggregation_done, _COMMITS, _OVER),
    "CheckpointDone": _only(rounds.on_checkpoint_done, _COMMITS, _OVER),
    "Diverged": _only(reverting.on_diverged, _COMMITS, _OVER),
    "Reverted": _only(reverting.on_reverted, _COMMITS, _OVER),
    "WorkFailed": _only(runs.on_failed, _COMMITS, _OVER),
    "EvalDone": _only(
        runs.on_eval_done, (*_COMMITS, RunPhase.FAILED), Ignore("there is no run to which it could belong")
    ),
    "EvalSkipped": _only(
        runs.on_eval_skipped, (*_COMMITS, RunPhase.FAILED), Ignore("there is no run to which it could belong")
    ),
    "ModelCopied": _everywhere(model_file.on_copied),
}


def diagram() -> str:
    """The table as Markdown, for docs/DESIGN.md: a row per event, a column per phase."""
    head = "| event | " + " | ".join(phase.value for phase in _ALL) + " |"
    lines = [head, "| --- " * (len(_ALL) + 1) + "|"]
    for name, row in TABLE.items():
        lines.append(f"| {name} | " + " | ".join(_cell(row[phase]) for phase in _ALL) + " |")
    return "\n".join(lines)


def _cell(cell: Cell) -> str:
    return "-" if isinstance(cell, Ignore) else getattr(cell, "__name__", "?").removeprefix("on_")
