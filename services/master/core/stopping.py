"""When a run has had enough: its time is over (`minutes_max`), or it gets no better (`patience`)."""

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
    spec, watch, reason = run.spec, run.watch, ""
    if spec.patience and watch.waited >= spec.patience:
        best = run.best_eval.version if run.best_eval is not None else 0
        times = f"{watch.waited} evaluations" if watch.waited > 1 else "1 evaluation"
        reason = f"finished: no better for {times}; the best is version {best}"
        drop_rounds(ctx, run, reason)
    elif spec.minutes_max and watch.running_ms >= spec.minutes_max * MINUTE_MS:
        reason = _time_is_over(run)
    run.ending = bool(reason)
    if run.ending and not run.rounds and not run.goes_back:
        run.finished = True
        ctx.set_phase(run, RunPhase.STOPPED, reason)


def _time_is_over(run: Run) -> str:
    minutes = run.spec.minutes_max
    unit = "minute" if minutes == 1 else "minutes"
    return f"stopped after {minutes:g} {unit}, as asked, at version {run.version}"
