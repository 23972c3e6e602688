"""Handlers for the run as a whole: the operator's wishes, preparation, evaluation, failure."""

from services.common.protocol.messages import because
from services.master.core import queueing, reverting
from services.master.core.commands import MarkBest, Report, RestoreRun, SaveRound
from services.master.core.context import Context
from services.master.core.events import (
    EvalDone,
    EvalSkipped,
    PauseRun,
    ResumeRun,
    RunPrepared,
    RunUnusable,
    StopRun,
    WorkFailed,
)
from services.master.core.rounds import PAUSED_REASON, drop_rounds
from services.master.core.state import ACTIVE, QUEUED, Evaluation, Run, RunPhase


def on_prepared(ctx: Context, event: RunPrepared) -> None:
    """Version 0 is durable: rounds may open."""
    run = ctx.state.run
    if run is None or run.id != event.run or run.prepared:
        return
    run.prepared, run.digest, run.data = True, event.digest, event.data
    run.n_train, run.n_parameters = event.n_train, event.n_parameters
    ctx.report_run(run, f"{run.name} is prepared: {run.n_train} examples, {run.n_parameters} parameters")


def on_unusable(ctx: Context, event: RunUnusable) -> None:
    """Data or model cannot be used."""
    if ctx.state.run is not None and ctx.state.run.id == event.run:
        ctx.state.run.holds_queue = event.disk
        ctx.set_phase(ctx.state.run, RunPhase.FAILED, because("RUN_UNUSABLE", why=event.reason))


def on_failed(ctx: Context, event: WorkFailed) -> None:
    """The disk or the aggregation failed: stop here, with everything durable untouched."""
    run = ctx.state.run
    if run is None or run.id != event.run or event.restored != run.restored:  # it was resumed since
        return
    drop_rounds(ctx, run, "the run failed", committing=True)
    run.reverting = None
    run.attempt += 1  # what is still on its way belongs to an attempt that is over
    if run.phase is RunPhase.STOPPED:  # it had ended: only its last round or row is not written
        ctx.warn(f"{run.name}: {event.reason}")
        return
    run.holds_queue = True
    ctx.set_phase(run, RunPhase.FAILED, because("WORK_FAILED", why=event.reason))


def on_pause(ctx: Context, event: PauseRun) -> None:
    """No new round; the one in flight closes."""
    run = _named(ctx, event)
    if run is None:
        return
    first = [round_.number for round_ in run.rounds]
    reason = because("PAUSED_AFTER_ROUND", round=first[0]) if first else PAUSED_REASON
    if len(first) > 1:
        reason = because("PAUSED_AFTER_ROUNDS", round=first[0], next=first[1])
    ctx.set_phase(run, RunPhase.PAUSED, reason)
    waiting = len(ctx.state.queue)
    queue = f"; the queue ({waiting}) waits, too" if waiting else ""
    ctx.answer(event.cmd_id, "OK", f"{run.reason}{queue}", run=run.id)


def on_resume(ctx: Context, event: ResumeRun) -> None:
    """Go on; `advance` opens the next round in this same step. A FAILED run goes on from its last durable version."""
    run = _named(ctx, event)
    if run is None:
        return
    if run.phase is RunPhase.FAILED:
        if not run.prepared:
            ctx.answer(event.cmd_id, "RUN_NOT_IN_PHASE", f"{run.name} never began ({run.reason}); start a new run")
            return
        run.restored += 1
        run.holds_queue = False
        ctx.out.append(RestoreRun(run.id, run.spec, run.version, run.restored))
        run.failed_attempts, run.failed_workers, run.trouble = 0, [], None
        for worker in ctx.state.by_id():
            worker.failures, worker.not_before_ms = 0, 0
    ctx.set_phase(run, RunPhase.RUNNING, because("RESUMED"))
    ctx.answer(event.cmd_id, "OK", run.reason.text, run=run.id)


def on_stop(ctx: Context, event: StopRun) -> None:
    """End for good. A round that has begun to commit is let through; others are given up.

    A run that waits is taken out of the queue; one that FAILED is given up, so that the next may begin.
    """
    if queueing.take_out(ctx, event.run, event.cmd_id):
        return
    run = _named(ctx, event)
    if run is None:
        return
    if run.phase not in (*ACTIVE, RunPhase.FAILED):
        refuse_phase(ctx, event)
        return
    drop_rounds(ctx, run, "the run was stopped by the operator")
    ctx.set_phase(run, RunPhase.STOPPED, because("STOPPED", version=run.version))
    ctx.answer(event.cmd_id, "OK", run.reason.text, run=run.id)


def refuse_phase(ctx: Context, event: PauseRun | ResumeRun | StopRun) -> None:
    """The wish does not fit the run's phase."""
    run = _named(ctx, event)
    if run is not None:
        wish = type(event).__name__.removesuffix("Run").lower()
        ctx.answer(event.cmd_id, "RUN_NOT_IN_PHASE", f"{run.name} is {run.phase.value}; {wish} does not apply")


def on_eval_done(ctx: Context, event: EvalDone) -> None:
    """A measurement of one version, maybe an older one."""
    run = ctx.state.run
    if run is None or run.id != event.run:
        return
    measured = Evaluation(event.version, event.loss, event.accuracy)
    if run.last_eval is None or measured.version >= run.last_eval.version:
        run.last_eval = measured
    if run.best_eval is None or measured.loss < run.best_eval.loss:
        run.best_eval = measured
        ctx.out.append(MarkBest(run.id, measured.version))
    run.watch.note(measured.loss, counts=measured.version > run.reverted)
    reverting.judge(run, measured)
    row = run.rows.get(event.version)
    if row is None:
        ctx.report_run(run, f"version={event.version} eval_loss={event.loss:.4f} eval_acc={event.accuracy:.4f}")
        return
    row = run.rows[event.version] = {**row, "eval_loss": event.loss, "eval_accuracy": event.accuracy}
    ctx.out.append(SaveRound(run.id, row))
    text = f"round={event.version} workers={row['workers']} eval_loss={event.loss:.4f} eval_acc={event.accuracy:.4f}"
    _tell_in_order(ctx, run, event.version, text)
    ctx.report_run(run, "")


def on_eval_skipped(ctx: Context, event: EvalSkipped) -> None:
    """The round's line is printed all the same, with the reason in place of the figures."""
    run = ctx.state.run
    if run is not None and run.id == event.run and event.not_finite and event.version > run.reverted:
        run.go_back(because("NOT_FINITE_LOSS", version=event.version))
    row = run.rows.get(event.version) if run is not None and run.id == event.run else None
    if run is None or row is None:
        return
    loss = "" if row["train_loss"] is None else f" train_loss={row['train_loss']:.4f}"
    _tell_in_order(ctx, run, event.version, f"round={event.version} workers={row['workers']}{loss} ({event.reason})")


def _tell_in_order(ctx: Context, run: Run, version: int, line: str) -> None:
    """Lines of rounds come by number: one that is known early waits for those before it."""
    run.lines[version] = line
    for number in sorted(run.rows):
        if number not in run.lines:
            return
        ctx.out.append(Report("ROUND", run.lines.pop(number), run.rows.pop(number)))


def _named(ctx: Context, event: PauseRun | ResumeRun | StopRun) -> Run | None:
    run = ctx.state.run
    if any(queued.id == event.run for queued in ctx.state.queue):
        ctx.answer(event.cmd_id, "RUN_NOT_IN_PHASE", f"run {event.run} is {QUEUED}; it can only be stopped")
        return None
    if run is None or run.id != event.run:
        ctx.answer(event.cmd_id, "RUN_UNKNOWN", f"run {event.run} is not the current one; see GET /api/v1/runs")
        return None
    return run
