"""Runs that wait: asked for while another goes on, first come, first served, each begun when the one before has ended.

A row of the store says QUEUED from before the coordinator hears of a run until it begins, so that no start is lost and
none happens twice. What the first one waits for is `policy.queue_verdict`.
"""

from services.common.protocol.messages import because
from services.master.core import speeds
from services.master.core.commands import PrepareRun, Report, SaveRun
from services.master.core.context import Context
from services.master.core.events import CreateRun
from services.master.core.policy import queue_verdict
from services.master.core.state import QUEUE_MAX, Queued, Run, RunPhase
from services.master.core.view import queue_view

PREPARING = because("PREPARING")


def on_create(ctx: Context, event: CreateRun) -> None:
    """It begins at once when nothing goes on or waits."""
    if ctx.state.busy or ctx.state.queue:
        on_enqueue(ctx, event)
        return
    _begin(ctx, Queued(event.run, event.spec), "is created")
    ctx.answer(event.cmd_id, "OK", "created", run=event.run)


def on_enqueue(ctx: Context, event: CreateRun) -> None:
    """Another run goes on: this one waits for its turn."""
    queue = ctx.state.queue
    if len(queue) >= QUEUE_MAX:
        text = f"{len(queue)} runs wait already, allowed are {QUEUE_MAX}; stop one of them, or wait until one has begun"
        ctx.answer(event.cmd_id, "QUEUE_FULL", text)
        return
    queue.append(Queued(event.run, event.spec))
    reason = queue_view(ctx.state)[-1]["reason"]
    _tell(ctx, f"run {event.run} is queued: {reason}")
    ctx.answer(event.cmd_id, "OK", f"queued: {reason}", run=event.run)


def take_out(ctx: Context, run: str, cmd_id: str) -> bool:
    """The operator stops a run that has not begun; False when it is not in the queue."""
    queued = next((one for one in ctx.state.queue if one.id == run), None)
    if queued is None:
        return False
    ctx.state.queue.remove(queued)
    reason = because("TAKEN_OUT")
    ctx.out.append(SaveRun(run, RunPhase.STOPPED.value, reason, finished=False))
    _tell(ctx, f"run {run} is {reason}")
    ctx.answer(cmd_id, "OK", reason.text, run=run)
    return True


def advance(ctx: Context) -> None:
    """After each event: begin the next run when it is its turn, and tell when what it waits for is another thing."""
    state = ctx.state
    if not state.queue:
        return
    may_begin, waits_for = queue_verdict(state)
    if may_begin:
        _begin(ctx, state.queue.pop(0), "begins")
        _tell(ctx, "")
    elif waits_for != state.queue_told:
        _tell(ctx, f"run {state.queue[0].id} {waits_for}")


def _begin(ctx: Context, queued: Queued, verb: str) -> None:
    """It takes the place of the one before; its phase becomes durable with the first thing that is done for it."""
    speeds.begin_run(ctx.state.by_id(), ctx.state.run, queued.spec)
    run = ctx.state.run = Run(queued.id, queued.spec, RunPhase.WAITING, PREPARING)
    run.watch.counted_ms = ctx.now_ms
    ctx.out.append(PrepareRun(run.id, run.spec))
    ctx.report_run(run, f"{run.name} {verb}: {run.spec.dataset}, {run.spec.rounds} rounds")


def _tell(ctx: Context, text: str) -> None:
    """The queue as it is now; an empty text is not logged."""
    ctx.state.queue_told = queue_verdict(ctx.state)[1] if ctx.state.queue else None
    ctx.out.append(Report("QUEUE", text, {"queue": queue_view(ctx.state)}))
