"""When the model is copied to where its owner wants it: every `model_every` rounds, and when the run has ended.

The best version by evaluation loss is copied, as far as it is known by then; the newest while none is evaluated. A copy
is for people: that one fails is told once, and stops nothing.
"""

from services.common.protocol.messages import because
from services.master.core.commands import CopyModel, Report
from services.master.core.context import Context
from services.master.core.events import ModelCopied
from services.master.core.state import ACTIVE, Run


def advance(ctx: Context) -> None:
    """After each event: ask for a copy when one is due and would be of another version."""
    run = ctx.state.run
    if run is None or not run.version:
        return
    model, version = run.model, wanted(run)
    ended = run.phase not in ACTIVE and not ctx.state.busy
    due = run.version + 1 if ended else run.version - run.version % run.spec.model_every
    now, model.round = due > model.round, max(due, model.round)
    if (now and model.reason) or ((now or ended) and version != model.asked):  # evaluated after the end, it counts
        model.asked = version
        ctx.out.append(CopyModel(run.id, version, run.spec.model_path))


def wanted(run: Run) -> int:
    """The version that belongs into the file."""
    return run.version if run.best_eval is None else run.best_eval.version


def on_copied(ctx: Context, event: ModelCopied) -> None:
    """The file holds this version, or could not be written. The run may have made way for another meanwhile."""
    run = ctx.state.run
    mine = run if run is not None and run.id == event.run else None
    if event.reason and (mine is None or not mine.model.reason):
        ctx.warn(f"run {event.run}: its model is not copied ({event.reason})")
    text = "" if event.reason else f"run {event.run}: version {event.version} is in {event.file}"
    if mine is None:
        ctx.out += [Report("MODEL", text, {})] if text else []
        return
    mine.model.reason = because("MODEL_NOT_COPIED", why=event.reason) if event.reason else None
    if not event.reason:
        mine.model.version, mine.model.file = event.version, event.file
    ctx.report_run(mine, "" if mine.phase in ACTIVE else text)
