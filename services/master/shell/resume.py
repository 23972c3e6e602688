"""Finding the run that was going on when the master ended."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from services.common.protocol.messages import RunSpec
from services.common.protocol.reasons import because, read, told
from services.master.core.recovery import Saved
from services.master.core.state import ACTIVE, Evaluation, ModelFile, Queued, RunPhase
from services.master.shell.checkpoints import Checkpoint, Vault
from services.master.shell.store import Store


@dataclass(frozen=True)
class Found:
    """The run that was current when the master ended: for the coordinator, for the aggregation thread, for the page."""

    saved: Saved
    checkpoint: Checkpoint
    created_ms: dict[str, int]  # of this run and of those that wait
    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class Unprepared:
    """A run that was asked for and has no version 0 yet: it is prepared (again). `queue`: those that wait for it."""

    run: str
    spec: RunSpec
    paused: bool
    created_ms: dict[str, int]
    queue: list[Queued]


def find_run(
    store: Store,
    vault: Vault,
    names: dict[str, str],
    model: Callable[[str, str], ModelFile] = lambda run, path: ModelFile(),
) -> tuple[Found | Unprepared | None, list[str]]:
    """The current run with its newest good checkpoint, those that wait for it, and sentences for the log.

    Where nothing goes on, the first in the queue is the current run. `model` finds what of a run lies at its path.
    Repairs a lost row from the meta.
    """
    row, waiting = store.current_run(), store.queued_runs()
    created_ms = {one["id"]: one["created_at_ms"] for one in ([row] if row is not None else []) + waiting}
    queue = [Queued(one["id"], _spec(one)) for one in waiting]
    checkpoint, sentences = vault.newest_good(row["id"]) if row is not None else (None, [])
    if row is None or checkpoint is None:
        if row is not None and row["phase"] in ACTIVE:
            first, paused = Queued(row["id"], _spec(row)), row["phase"] == RunPhase.PAUSED
        elif queue:
            first, paused = queue.pop(0), False
        else:
            return None, []
        return Unprepared(first.id, first.spec, paused, created_ms, queue), [f"run {first.id} has no version yet"]
    meta, spec = checkpoint.meta, _spec(row)
    if sentences:
        store.drop_rounds_after(row["id"], meta["version"])
    rows = store.rounds_newest(row["id"], 1000)
    if meta["row"] is not None and (not rows or rows[-1]["round"] < meta["round"]):
        store.save_round(row["id"], meta["row"])
        rows = store.rounds_newest(row["id"], 1000)
        sentences.append(f"the row of round {meta['round']} was repaired from its checkpoint")
    evaluated = [one for one in rows if one["eval_loss"] is not None]
    measured = [Evaluation(one["round"], one["eval_loss"], one["eval_accuracy"]) for one in evaluated]
    best = _best(store, row["id"])
    before = [best] if best is not None and measured and best.version < measured[0].version else []
    ended = meta["version"] >= spec.rounds
    phase = RunPhase.STOPPED if ended else RunPhase(row["phase"])
    reason = because("FINISHED", rounds=spec.rounds) if ended else read(row["reason_said"], row["reason"])
    if (phase, told(reason)) != (row["phase"], row["reason_said"]):
        store.save_run(row["id"], phase.value, reason, finished=ended)
    saved = Saved(
        run=row["id"],
        spec=spec,
        phase=phase,
        reason=reason,
        n_parameters=len(checkpoint.parameters),
        meta=meta,
        tables=store.assignments(row["id"], meta["version"]),
        names=names,
        last_eval=measured[-1] if measured else None,
        best_eval=best,
        evaluations=before + measured,
        finished=ended or row["finished"],
        queue=queue,
        model=model(row["id"], spec.model_path),
    )
    return Found(saved, checkpoint, created_ms, rows), sentences


def _spec(row: dict[str, Any]) -> RunSpec:
    return RunSpec.model_validate_json(json.dumps(row["spec"]))


def _best(store: Store, run: str) -> Evaluation | None:
    version = store.best_round(run)
    rows = store.rounds(run, version - 1, 1) if version is not None else []
    return Evaluation(rows[0]["round"], rows[0]["eval_loss"], rows[0]["eval_accuracy"]) if rows else None
