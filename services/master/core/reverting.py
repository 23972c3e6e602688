"""Back to the best: what a run does, once, when it diverges. Forward: the next version has the best one's parameters.

It diverges when the outer step would make parameters that are not finite, when the deltas of a round are refused again
and again because their values are beyond all bounds, when an evaluation's loss is not finite, or far above the best
(`watch`). Then the inner learning rate is halved for the rest of the run. A second time is a failure: with a rate that
is still too high it would go on for ever.
"""

from typing import Any

from services.common.protocol.messages import Reason, because
from services.master.core.commands import Revert
from services.master.core.context import Context
from services.master.core.events import Diverged, Reverted
from services.master.core.recovery import blank_row, version_meta
from services.master.core.rounds import drop_rounds, take_version, tell_version
from services.master.core.state import ACTIVE, REACHABLE, Evaluation, RoundPhase, Run, RunPhase
from services.master.core.watch import FAR_EVALS_MAX

LR_SCALE = 0.5


def on_diverged(ctx: Context, event: Diverged) -> None:
    """The outer step made no version: its round is given up."""
    run = ctx.state.run
    round_ = run.round(event.round) if run is not None and run.id == event.run else None
    if run is None or round_ is None or round_.phase is not RoundPhase.AGGREGATING:
        return
    round_.phase = RoundPhase.COLLECTING  # nothing of it is on its way to the disk: it is dropped like any open round
    reason = because("NOT_FINITE_ROUND", round=event.round)
    run.go_back(reason)
    if run.phase is RunPhase.STOPPED:  # it had ended: only its last round is lost
        drop_rounds(ctx, run, reason.text)
        ctx.warn(f"{run.name}: {reason}")


def judge(run: Run, measured: Evaluation) -> None:
    """After an evaluation was noted: whether it is one too many that is far above the best."""
    if run.watch.far >= FAR_EVALS_MAX and run.best_eval is not None:
        best, loss, best_loss = run.best_eval.version, f"{measured.loss:.4g}", f"{run.best_eval.loss:.4g}"
        reason = because("FAR_FROM_BEST", version=measured.version, loss=loss, best=best, best_loss=best_loss)
        run.go_back(reason)


def advance(ctx: Context) -> None:
    """After each event: give up what is in flight, then ask the desk for the new version, or fail the second time."""
    run = ctx.state.run
    if run is None or run.reverting is None or run.goes_back:
        return
    reason = run.reverting.reason
    if run.phase not in ACTIVE:
        run.reverting = None
        return
    drop_rounds(ctx, run, reason.text)
    if run.rounds:  # what has begun to commit is let through
        return
    run.attempt += 1
    if (hopeless := _hopeless(run)) is not None:
        run.reverting = None
        why = because("DIVERGED", hopeless=hopeless, why=reason, lr=f"{run.inner['lr']:g}")
        ctx.set_phase(run, RunPhase.FAILED, why)
        return
    to_version = run.best_eval.version if run.best_eval is not None else 0
    best = because("BEST_VERSION", version=to_version) if run.best_eval is not None else because("FIRST_VERSION")
    back = because("WENT_BACK", why=reason, which=best)
    run.reverting.meta = _meta(run, run.version + 1, back.text)
    ctx.out.append(Revert(run.id, run.version + 1, to_version, run.reverting.meta))
    ctx.set_phase(run, run.phase, back)


def on_reverted(ctx: Context, event: Reverted) -> None:
    """The version is durable: rounds go on from it, as if it were the first."""
    run = ctx.state.run
    if run is None or run.id != event.run or run.reverting is None or run.reverting.meta.get("version") != event.round:
        return
    meta, run.reverting = run.reverting.meta, None
    take_version(run, event.digest, meta)
    run.reverted, run.lr_scale = meta["reverted"], meta["lr_scale"]
    run.watch.begin_again()
    for worker in ctx.state.by_id():
        worker.failures, worker.not_before_ms = 0, 0  # it was not their fault
        if worker.link in REACHABLE:
            ctx.tell_closed(worker.id, run, [])
    tell_version(ctx, run, meta)
    if run.phase is RunPhase.STOPPED:
        ctx.set_phase(run, RunPhase.STOPPED, because("STOPPED", version=run.version))
    else:
        ctx.report_run(run, "")


def _hopeless(run: Run) -> Reason | None:
    """Why it is no use to go back; None when it is."""
    if run.reverted:
        return because("WENT_BACK_BEFORE", version=run.reverted)
    return because("NO_ROUND_LEFT") if run.version + 1 >= run.spec.rounds else None


def _meta(run: Run, version: int, note: str) -> dict[str, Any]:
    """What the checkpoint says of itself; its digest is filled in by the desk, which reads the parameters."""
    changed = {"lr_scale": run.lr_scale * LR_SCALE, "reverted": version, "row": {**blank_row(version), "note": note}}
    return {**version_meta(run, version), "recent_absmax": [], "recent_norms": [], **changed}
