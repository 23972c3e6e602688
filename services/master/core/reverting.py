"""Back to the best: what a run does, once, when it diverges. Forward: the next version has the best one's parameters.

It diverges when the outer step would make parameters that are not finite, when the deltas of a round are refused again
and again because their values are beyond all bounds, when an evaluation's loss is not finite, or far above the best
(`watch`). Then the inner learning rate is halved for the rest of the run. A second time is a failure: with a rate that
is still too high it would go on for ever.
"""

from dataclasses import asdict
from typing import Any

from services.common.protocol.messages import RoundClosed
from services.master.core import policy
from services.master.core.commands import Evaluate, Report, Revert, SaveRound
from services.master.core.context import Context
from services.master.core.events import Diverged, Reverted
from services.master.core.rounds import drop_rounds
from services.master.core.state import ACTIVE, REACHABLE, Evaluation, Reverting, RoundPhase, Run, RunPhase
from services.master.core.watch import FAR_EVALS_MAX

LR_SCALE = 0.5


def on_diverged(ctx: Context, event: Diverged) -> None:
    """The outer step made no version: its round is given up."""
    run = ctx.state.run
    round_ = run.round(event.round) if run is not None and run.id == event.run else None
    if run is None or round_ is None or round_.phase is not RoundPhase.AGGREGATING:
        return
    round_.phase = RoundPhase.COLLECTING  # nothing of it is on its way to the disk: it is dropped like any open round
    want(run, event.reason)
    if run.phase is RunPhase.STOPPED:  # it had ended: only its last round is lost
        drop_rounds(ctx, run, event.reason)
        ctx.warn(f"{run.name}: {event.reason}")


def judge(run: Run, measured: Evaluation) -> None:
    """After an evaluation was noted: whether it is one too many that is far above the best."""
    if run.watch.far >= FAR_EVALS_MAX and run.best_eval is not None:
        best = f"the best, version {run.best_eval.version}, has {run.best_eval.loss:.4g}"
        want(run, f"the evaluation loss of version {measured.version} is {measured.loss:.4g}, {best}")


def want(run: Run, reason: str) -> None:
    """`advance` does it when nothing is being written any more."""
    run.reverting = run.reverting or Reverting(reason)


def advance(ctx: Context) -> None:
    """After each event: give up what is in flight, then ask the desk for the new version, or fail the second time."""
    run = ctx.state.run
    if run is None or run.reverting is None or run.goes_back:
        return
    reason = run.reverting.reason
    if run.phase not in ACTIVE:
        run.reverting = None
        return
    drop_rounds(ctx, run, reason)
    if run.rounds:  # what has begun to commit is let through
        return
    run.attempt += 1
    if hopeless := _hopeless(run):
        run.reverting = None
        advice = f"start a new run with a learning rate below {run.inner['lr']:g}"
        ctx.set_phase(run, RunPhase.FAILED, f"diverged, and {hopeless}: {reason}; {advice}")
        return
    to_version = run.best_eval.version if run.best_eval is not None else 0
    which = f"the best, version {to_version}" if run.best_eval is not None else "version 0, as none is evaluated"
    sentence = f"diverged: {reason}; back to {which}, and the learning rate is halved"
    run.reverting.meta = _meta(run, run.version + 1, sentence)
    ctx.out.append(Revert(run.id, run.version + 1, to_version, run.reverting.meta))
    ctx.set_phase(run, run.phase, sentence)


def on_reverted(ctx: Context, event: Reverted) -> None:
    """The version is durable: rounds go on from it, as if it were the first."""
    run = ctx.state.run
    if run is None or run.id != event.run or run.reverting is None or run.reverting.meta.get("version") != event.round:
        return
    meta, run.reverting = run.reverting.meta, None
    run.version, run.digest = event.round, event.digest
    run.reverted, run.lr_scale = meta["reverted"], meta["lr_scale"]
    run.failed_attempts, run.failed_workers, run.trouble = 0, [], ""
    run.recent_absmax, run.recent_norms = [], []
    run.closed_accepted[run.version] = []
    run.closed_accepted.pop(run.version - policy.ROUNDS_REMEMBERED, None)
    run.watch.begin_again()
    run.rows[run.version] = meta["row"]
    for worker in ctx.state.by_id():
        worker.failures, worker.not_before_ms = 0, 0  # it was not their fault
        if worker.link in REACHABLE:
            closed = RoundClosed(
                term=ctx.state.term, run=run.id, round=run.version, version=run.version, digest=run.digest, counted=[]
            )
            ctx.send(worker.id, closed)
    ctx.out.append(SaveRound(run.id, meta["row"]))
    ctx.out.append(Report("ROUND", "", meta["row"]))
    ctx.out.append(Evaluate(run.id, run.version))
    if run.phase is RunPhase.STOPPED:
        ctx.set_phase(run, RunPhase.STOPPED, f"stopped by the operator at version {run.version}")
    else:
        ctx.report_run(run, "")


def _hopeless(run: Run) -> str:
    """Why it is no use to go back; empty when it is."""
    if run.reverted:
        return f"it went back once before, with version {run.reverted}"
    return "no round is left in which to do better" if run.version + 1 >= run.spec.rounds else ""


def _meta(run: Run, version: int, note: str) -> dict[str, Any]:
    """What the checkpoint says of itself; its digest is filled in by the desk, which reads the parameters."""
    return {
        "run": run.id,
        "round": version,
        "version": version,
        "digest": "",
        "spec": run.spec.model_dump(mode="json"),
        "data": run.data,
        "n_train": run.n_train,
        "cursor": run.cursor,
        "pending": [list(one) for one in run.pending],
        "recent_absmax": [],
        "recent_norms": [],
        "accepted": [],
        "counted": [],
        "attempt": run.attempt,
        "pace": asdict(run.pace),
        "lr_scale": run.lr_scale * LR_SCALE,
        "reverted": version,
        "running_ms": run.watch.running_ms,
        "row": {
            "round": version,
            "workers": 0,
            "train_loss": None,
            "eval_loss": None,
            "eval_accuracy": None,
            "samples": 0,
            "bytes": 0,
            "seconds": 0.0,
            "note": note,
        },
    }
