"""When a run has had enough: its time is over (`minutes_max`), or it gets no better (`patience`)."""

from services.common.protocol.messages import Reason, because
from services.master.core.context import Context
from services.master.core.rounds import drop_rounds
from services.master.core.state import Run, RunPhase

MINUTE_MS = 60_000


def count_time(ctx: Context) -> None:
    """Before each event: the time since the last one belongs to the phase that the run is still in."""
    run = ctx.state.run
    if run is not None:
        running = run.phase is RunPhase.RUNNING
        run.watch.count_time(ctx.now_ms, 2 * ctx.limits.heartbeat_ms, running=running)


def advance(ctx: Context) -> None:
    """After each event, before rounds open: end the run if it has had enough.

    Patience gives up the rounds in flight, time lets them close; what has begun to commit is let through in any case.
    """
    run = ctx.state.run
    if run is None or not run.prepared or run.phase not in (RunPhase.RUNNING, RunPhase.WAITING):
        return
    spec, watch = run.spec, run.watch
    reason: Reason | None = None
    if spec.patience and watch.waited >= spec.patience:
        best = run.best_eval.version if run.best_eval is not None else 0
        reason = because("NO_BETTER", n=watch.waited, best=best)
        drop_rounds(ctx, run, reason.text)
    elif spec.minutes_max and watch.running_ms >= spec.minutes_max * MINUTE_MS:
        reason = _time_is_over(run)
    run.ending = reason is not None
    if reason is not None and not run.rounds and not run.goes_back:
        run.finished = True
        ctx.set_phase(run, RunPhase.STOPPED, reason)


def _time_is_over(run: Run) -> Reason:
    minutes = run.spec.minutes_max
    return because("TIME_OVER", n=int(minutes) if minutes.is_integer() else minutes, version=run.version)
