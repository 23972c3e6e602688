"""Handlers for workers: joining, leaving, signs of life, the owner's pause, removal. Liveness is decided on Tick."""

from services.common.protocol.messages import (
    Bye,
    Cancel,
    Drain,
    Heartbeat,
    Mismatch,
    Progress,
    Reason,
    TaskAck,
    TaskRef,
    TaskRefuse,
    because,
    heard,
)
from services.master.core import policy, units
from services.master.core.commands import ForgetSession, Report, RevokeWorker
from services.master.core.context import Context
from services.master.core.events import RemoveWorker, Tick, WorkerHeard, WorkerJoined, WorkerLeft, WorkerSaid
from services.master.core.state import REACHABLE, Lease, LeaseState, Link, Round, RoundPhase, Worker

OUTLIVES_SESSION = (  # a short break of the line mends nothing, and takes nothing away
    "measured",
    "gathered_samples",
    "gathered_ms",
    "link_bytes_per_s",
    "bad_rounds",
    "failures",
    "not_before_ms",
    "accepted_rounds",
    "samples_total",
    "clipped_rounds",
    "mismatches",
    "mismatch_version",
    "mismatches_total",
)


def on_tick(ctx: Context, event: Tick) -> None:
    """Judge who is silent; send heartbeats. A loop that itself slept restarts every deadline: nobody is to blame."""
    state, limits = ctx.state, ctx.limits
    gap_ms = ctx.now_ms - state.last_tick_ms
    if state.last_tick_ms and gap_ms > 2 * limits.heartbeat_ms:
        _restart_deadlines(ctx, gap_ms)
    state.last_tick_ms = ctx.now_ms
    if state.run is not None and state.run.untold:
        ctx.report_run(state.run, "")
    for worker in state.by_id():
        _judge(ctx, worker)
    if ctx.now_ms - state.last_heartbeat_ms >= limits.heartbeat_ms:
        state.last_heartbeat_ms = ctx.now_ms
        for worker in state.by_id():
            if worker.link in REACHABLE:
                ctx.send(worker.id, Heartbeat(term=state.term))


def on_joined(ctx: Context, event: WorkerJoined) -> None:
    """A HELLO. What it holds or works on is matched with the leases that stand; the rest of its leases are lost."""
    hello = event.hello
    known = ctx.state.workers.get(event.worker)
    returning = known is not None and known.link is not Link.LOST
    is_same_start = known is not None and known.boot_id == hello.boot_id
    worker = Worker(
        id=event.worker,
        name=event.name,
        platform=hello.platform,
        cores=hello.cores,
        threads=hello.threads,
        memory_mib=hello.memory_mib,
        samples_per_s=known.score if known is not None and is_same_start else hello.score,
        boot_id=hello.boot_id,
        last_heard_ms=ctx.now_ms,
        joined_ms=ctx.now_ms,
    )
    ctx.state.workers[event.worker] = worker
    if known is not None:
        for name in OUTLIVES_SESSION:
            setattr(worker, name, getattr(known, name))
        if known.measured:
            worker.samples_per_s = known.samples_per_s
    if known is not None and known.quarantined:
        if is_same_start:
            worker.quarantined, worker.reason = True, known.reason
        else:  # it was started again: on probation
            worker.bad_rounds, worker.mismatches = ctx.limits.bad_rounds_max - 1, ctx.limits.mismatches_max - 1
    working = [ref for ref in (hello.working, hello.queued) if ref is not None]
    kept = [held.ref.lease for held in hello.holding] + [ref.lease for ref in working]
    standing: list[str] = []
    for lease in _leases_of(ctx, event.worker):
        if lease.state is LeaseState.ACCEPTED:
            standing.append(lease.id)
        elif lease.id in kept:
            standing.append(lease.id)
            lease.state, lease.reason, lease.moved_ms = LeaseState.OUT, None, ctx.now_ms
        else:
            lease.lose(because("RESTARTED_WITHOUT", worker=worker.name))
    standing += [one for one in kept if one not in standing and units.rejoined(ctx, event.worker, one)]
    for ref in working:
        if ref.lease not in standing:
            ctx.send(worker.id, Cancel(term=ctx.state.term, ref=ref, reason="this work is no longer wanted"))
    cores = f"{hello.cores} core" if hello.cores == 1 else f"{hello.cores} cores"
    holding = f", holds {len(hello.holding)} delta" + ("s" if len(hello.holding) != 1 else "") if hello.holding else ""
    verb = "is back" if returning else "joined"
    ctx.report_worker(worker, f"{worker.name} {verb} ({cores}, {worker.samples_per_s:.0f} samples/s{holding})")


def on_left(ctx: Context, event: WorkerLeft) -> None:
    """No route at present. Its leases stand until LOST, for most come back within seconds."""
    worker = ctx.state.workers.get(event.worker)
    if worker is None or worker.link in (Link.DETACHED, Link.LOST):
        return
    worker.link, worker.reason = Link.DETACHED, event.reason
    ctx.report_worker(worker, f"{worker.name} is detached: {event.reason}")


def on_heard(ctx: Context, event: WorkerHeard | WorkerSaid) -> Worker | None:
    """Any frame is a sign of life."""
    worker = ctx.state.workers.get(event.worker)
    if worker is None:
        return None
    worker.last_heard_ms = ctx.now_ms
    if worker.link in (Link.SUSPECT, Link.DETACHED):
        worker.link, worker.reason = Link.LINKED, worker.reason if worker.quarantined else None
        ctx.report_worker(worker, f"{worker.name} is heard again")
    return worker


def on_said(ctx: Context, event: WorkerSaid) -> None:
    """Messages that tell how a worker is doing (a delta has its own handlers)."""
    worker = on_heard(ctx, event)
    message = event.message
    if worker is None:
        return
    if isinstance(message, Heartbeat):
        worker.agent, worker.owner = message.agent, message.owner
        worker.step, worker.steps_total = message.step, message.steps_total
        worker.progress_age_ms = message.progress_age_ms
        if message.agent not in ("idle", "holding") and not (message.agent == "paused" and message.steps_total == 0):
            for own in _leases_of(ctx, worker.id):
                own.moved_ms = max(own.moved_ms, ctx.now_ms - message.progress_age_ms)
        if message.agent == "waiting":
            _tell_base(ctx, worker)
        if worker.draining and message.agent != "paused":
            worker.draining, worker.reason = False, None
            ctx.report_worker(worker, f"{worker.name} takes work again")
    elif isinstance(message, TaskAck):
        worker.agent = "training"
        _moved(ctx, worker, message.ref)
    elif isinstance(message, Progress):
        worker.agent, worker.step, worker.steps_total = "training", message.step, message.steps_total
        worker.progress_age_ms = 0
        _moved(ctx, worker, message.ref)
    elif isinstance(message, TaskRefuse):
        lease = next((one for one in _leases_of(ctx, worker.id) if one.id == message.ref.lease), None)
        if lease is not None and lease.is_out:
            reason = because("HANDED_BACK", worker=worker.name, why=_said(message))
            if message.busy:
                ctx.busy(worker, lease, reason)
            else:
                ctx.failed(worker, lease, reason, refused=True)
            ctx.report_worker(worker, f"{worker.name} handed shard {lease.shard} back: {message.reason}")
    elif isinstance(message, Mismatch):
        _mismatch(ctx, worker, message)
    elif isinstance(message, Drain):
        worker.draining, worker.reason = True, _said(message)
        ctx.report_worker(worker, f"{worker.name} takes no new work: {message.reason}")
    elif isinstance(message, Bye):
        _gone(ctx, worker, because("LEFT", why=_said(message)))


def _said(message: TaskRefuse | Drain | Bye) -> Reason:
    """An older worker sends its text alone."""
    return heard(message.reason, message.reason_said)


def _tell_base(ctx: Context, worker: Worker) -> None:
    """It has done its steps and does not know that the round before is closed: the news was lost."""
    run = ctx.state.run
    first = run.rounds[0] if run is not None and run.rounds else None
    if run is None or first is None or first.phase is not RoundPhase.COLLECTING:
        return
    if any(lease.state is LeaseState.OUT for lease in first.of(worker.id)):
        counted = run.closed_accepted.get(run.version, [])[: policy.COUNTED_MAX]  # of all: it knows which were its own
        ctx.tell_closed(worker.id, run, counted)


def _mismatch(ctx: Context, worker: Worker, message: Mismatch) -> None:
    """Updates gave this PC another version than ours: it pulls the whole. Three in a row are no accident."""
    worker.mismatches += 1
    worker.mismatches_total += 1
    worker.mismatch_version = message.ref.base_version
    if worker.mismatches >= ctx.limits.mismatches_max and not worker.quarantined:
        ctx.quarantine(worker, because("MISMATCHES", n=worker.mismatches))
    ctx.report_worker(worker, f"{worker.name} downloads version {message.ref.base_version} whole: {message.reason}")


def on_remove_worker(ctx: Context, event: RemoveWorker) -> None:
    """The operator's removal: its key is revoked, it is told to stay away, its work comes again."""
    worker = ctx.state.workers.pop(event.worker, None)
    for lease in _leases_of(ctx, event.worker):
        if lease.state is not LeaseState.ACCEPTED:
            lease.lose(because("REMOVED"))
    ctx.send(event.worker, Bye(term=ctx.state.term, code="REMOVED", reason="removed by the operator"))
    ctx.out.append(RevokeWorker(event.worker))
    name = worker.name if worker else event.worker
    ctx.out.append(
        Report("WORKER", f"{name} was removed by the operator; its key is revoked", {"id": event.worker, "gone": True})
    )
    ctx.answer(event.cmd_id, "OK", f"{name} is removed", worker=event.worker)


def _judge(ctx: Context, worker: Worker) -> None:
    silent_ms = ctx.now_ms - worker.last_heard_ms
    if worker.link is Link.LOST:
        return
    if silent_ms >= ctx.limits.lost_ms:
        _gone(ctx, worker, because("SILENT", seconds=silent_ms // 1000))
    elif worker.link is Link.LINKED and silent_ms >= ctx.limits.suspect_ms:
        worker.link, worker.reason = Link.SUSPECT, because("SILENT", seconds=silent_ms // 1000)
        ctx.report_worker(worker, f"{worker.name} is suspect: {worker.reason}; it gets no new work")
    elif worker.link is Link.LINKED and ctx.state.run is not None:
        for round_ in ctx.state.run.rounds:
            for lease in round_.of(worker.id):
                if round_.phase is RoundPhase.COLLECTING and lease.state is LeaseState.OUT:
                    _judge_lease(ctx, worker, round_, lease)


def _judge_lease(ctx: Context, worker: Worker, round_: Round, lease: Lease) -> None:
    """A worker that is heard but does not get on with its work must not hold the round back for ever."""
    assert ctx.state.run is not None
    still_ms = ctx.now_ms - lease.moved_ms
    if worker.agent in ("idle", "holding", "waiting") and still_ms >= ctx.limits.idle_ms:
        reason = because("NOT_WORKING", worker=worker.name)
    elif still_ms >= (ctx.limits.stalled_ms if worker.agent in ("training", "paused") else ctx.limits.transfer_ms):
        reason = because("NO_PROGRESS", worker=worker.name, seconds=still_ms // 1000)
    else:
        return
    ctx.failed(worker, lease, reason, refused=False)
    ctx.send(worker.id, Cancel(term=ctx.state.term, ref=ctx.state.run.ref(round_, lease), reason=reason.text))
    ctx.report_worker(worker, f"{reason} (shard {lease.shard}); its shard comes again")


def _moved(ctx: Context, worker: Worker, ref: TaskRef) -> None:
    for lease in _leases_of(ctx, worker.id):
        if lease.id == ref.lease:
            lease.moved_ms = ctx.now_ms


def _gone(ctx: Context, worker: Worker, reason: Reason) -> None:
    worker.link, worker.reason, worker.agent = Link.LOST, reason, "idle"
    ctx.out.append(ForgetSession(worker.id))
    for lease in _leases_of(ctx, worker.id):
        if lease.state is not LeaseState.ACCEPTED:
            lease.lose(because("OF_WORKER", worker=worker.name, why=reason))
    ctx.report_worker(worker, f"{worker.name} is lost: {reason}")


def _leases_of(ctx: Context, worker: str) -> list[Lease]:
    run = ctx.state.run
    return [lease for round_ in (run.rounds if run else []) for lease in round_.of(worker)]


def _restart_deadlines(ctx: Context, gap_ms: int) -> None:
    slept_ms = gap_ms - ctx.limits.heartbeat_ms
    for worker in ctx.state.by_id():
        worker.last_heard_ms = min(ctx.now_ms, worker.last_heard_ms + slept_ms)  # it may have been heard since
    for round_ in ctx.state.run.rounds if ctx.state.run else []:
        round_.opened_ms = min(ctx.now_ms, round_.opened_ms + slept_ms)
        for lease in round_.leases:
            lease.moved_ms = min(ctx.now_ms, lease.moved_ms + slept_ms)
            if lease.state is LeaseState.ACCEPTED:
                lease.accepted_ms = min(ctx.now_ms, lease.accepted_ms + slept_ms)
    ctx.warn(f"this PC slept or was stopped for {slept_ms / 1000:.0f} s; all deadlines start anew")
