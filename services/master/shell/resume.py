"""Finding the run that was going on when the master ended."""

import json
from dataclasses import dataclass
from typing import Any

from services.common.protocol.messages import RunSpec
from services.master.core.recovery import Saved
from services.master.core.state import ACTIVE, Evaluation, RunPhase
from services.master.shell.checkpoints import Checkpoint, Vault
from services.master.shell.store import Store


@dataclass(frozen=True)
class Found:
    """The run that was current when the master ended: for the coordinator, for the aggregation thread, for the page."""

    saved: Saved
    checkpoint: Checkpoint
    created_ms: int
    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class Unprepared:
    """A run that was asked for and has no version 0 yet: it is prepared again."""

    run: str
    spec: RunSpec
    paused: bool
    created_ms: int


def find_run(store: Store, vault: Vault, names: dict[str, str]) -> tuple[Found | Unprepared | None, list[str]]:
    """The newest run with its newest good checkpoint, and sentences for the log. Repairs a lost row from the meta."""
    runs = store.runs(limit=1)
    if not runs:
        return None, []
    row = runs[0]
    checkpoint, sentences = vault.newest_good(row["id"])
    spec = RunSpec.model_validate_json(json.dumps(row["spec"]))
    if checkpoint is None:
        if row["phase"] not in ACTIVE:
            return None, []
        paused = row["phase"] == RunPhase.PAUSED
        return Unprepared(row["id"], spec, paused, row["created_at_ms"]), [f"run {row['id']} has no version yet"]
    meta = checkpoint.meta
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
    reason = f"finished: all {spec.rounds} rounds are closed" if ended else row["reason"]
    if (phase, reason) != (row["phase"], row["reason"]):
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
    )
    return Found(saved, checkpoint, row["created_at_ms"], rows), sentences


def _best(store: Store, run: str) -> Evaluation | None:
    version = store.best_round(run)
    rows = store.rounds(run, version - 1, 1) if version is not None else []
    return Evaluation(rows[0]["round"], rows[0]["eval_loss"], rows[0]["eval_accuracy"]) if rows else None
