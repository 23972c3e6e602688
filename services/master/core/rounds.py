"""Handlers for rounds: open, close, commit. `advance` runs after every event and is the only place that opens one."""

from typing import Any

from services.common.protocol.messages import Cancel, Reason, Update, because
from services.master.core import clipping, pace, policy, speeds, units
from services.master.core.commands import (
    Aggregate,
    DropRound,
    Evaluate,
    Report,
    SaveAssignment,
    SaveRound,
    WriteCheckpoint,
)
from services.master.core.context import Context
from services.master.core.events import AggregationDone, AssignmentSaved, CheckpointDone
from services.master.core.recovery import checkpoint_meta, round_table
from services.master.core.state import (
    ACTIVE,
    REACHABLE,
    Lease,
    LeaseState,
    Link,
    Round,
    RoundPhase,
    Run,
    RunPhase,
    Worker,
)

PAUSED_REASON = because("PAUSED")


def advance(ctx: Context) -> None:
    """Close what can be closed, then open what may be opened. Called after each event."""
    run = ctx.state.run
    if run is None or not run.prepared or run.reverting is not None:
        return
    if run.phase in ACTIVE:
        for round_ in list(run.rounds):
            if round_.phase is RoundPhase.COLLECTING and round_.units:
                hopeless = units.hand_out(ctx, run, round_)
                if hopeless:
                    _give_up(ctx, run, hopeless)
                    return
            if round_.phase is RoundPhase.COLLECTING:
                _consider_closing(ctx, run, round_)
    if run.phase in (RunPhase.RUNNING, RunPhase.WAITING):
        _consider_opening(ctx, run)


def on_assignment_saved(ctx: Context, event: AssignmentSaved) -> None:
    """The table is durable: the leases may go out."""
    run = ctx.state.run
    round_ = run.round(event.round) if run is not None and run.id == event.run else None
    if run is None or round_ is None or round_.attempt != event.attempt or round_.phase is not RoundPhase.OPEN:
        return
    round_.saved = True
    for lease in round_.leases:
        if lease.state is LeaseState.OUT:
            ctx.send_task(run, round_, lease)
    _collect_next(ctx, run)
    ctx.report_run(run, "")


def _collect_next(ctx: Context, run: Run) -> None:
    """The first round in flight takes deltas now, and its deadlines count from now: no other is before it."""
    first = run.rounds[0] if run.rounds else None
    if first is None or first.phase is not RoundPhase.OPEN or not first.saved:
        return
    first.phase, first.opened_ms = RoundPhase.COLLECTING, ctx.now_ms
    for lease in first.leases:
        if lease.is_out:
            lease.moved_ms = ctx.now_ms


def on_aggregation_done(ctx: Context, event: AggregationDone) -> None:
    """The outer step is made: write it down before it counts; meanwhile workers fetch what makes it."""
    run, round_ = _find(ctx, event.run, event.round)
    if run is None or round_ is None or round_.phase is not RoundPhase.AGGREGATING:
        return
    round_.phase, round_.digest = RoundPhase.COMMITTING, event.digest
    round_.meta = checkpoint_meta(run, round_, ctx.now_ms)
    ctx.out.append(WriteCheckpoint(run.id, round_.number, round_.meta))
    _announce_update(ctx, run, round_, event)


def _announce_update(ctx: Context, run: Run, round_: Round, event: AggregationDone) -> None:
    """To all; unasked to those that took part, if they are few: they have the version before."""
    took_part = {lease.worker for lease in round_.accepted()}
    push = took_part if len(took_part) <= policy.PUSHED_MAX else set()
    for worker in ctx.state.by_id():
        if worker.link in REACHABLE:
            update = Update(
                term=ctx.state.term,
                run=run.id,
                version=round_.number,
                bytes=event.update_bytes,
                digest=event.update_digest,
                pushed=worker.id in push,
            )
            ctx.send(worker.id, update)


def on_checkpoint_done(ctx: Context, event: CheckpointDone) -> None:
    """The commit point has passed: the round is CLOSED, the version is announced, deltas may be forgotten."""
    run, round_ = _find(ctx, event.run, event.round)
    if run is None or round_ is None or round_.phase is not RoundPhase.COMMITTING:
        return
    meta, round_.phase = round_.meta, RoundPhase.CLOSED
    run.rounds.remove(round_)
    take_version(run, round_.digest, meta)
    ahead = [one for other in run.rounds for one in other.ranges]
    run.cursor, run.pending = meta["cursor"], policy.without([(start, stop) for start, stop in meta["pending"]], ahead)
    run.pace.sync_ms, run.pace.step_ms = meta["pace"]["sync_ms"], meta["pace"]["step_ms"]
    run.recent_ms = [*run.recent_ms, ctx.now_ms - round_.opened_ms][-policy.ROUNDS_REMEMBERED :]
    for worker_id in dict.fromkeys(round_.bad_workers):
        if (worker := ctx.state.workers.get(worker_id)) is not None:
            _bad_again(ctx, worker)
    for lease in round_.leases:
        worker = ctx.state.workers.get(lease.worker)
        if worker is not None and lease.bad:
            _bad_again(ctx, worker)
        elif worker is not None and lease.state is LeaseState.ACCEPTED:
            if worker.id not in round_.bad_workers:
                worker.bad_rounds = 0
            worker.agent = "idle"
            worker.accepted_rounds += lease is round_.of(worker.id)[0]
            worker.samples_total += lease.samples
    _show_workers(ctx, round_)
    _announce(ctx, run, round_)
    ctx.out.append(DropRound(run.id, round_.number))
    tell_version(ctx, run, meta)
    if run.version >= run.spec.rounds and run.phase is not RunPhase.STOPPED:
        run.finished = True
        ctx.set_phase(run, RunPhase.STOPPED, because("FINISHED", rounds=run.spec.rounds))
    elif run.phase is RunPhase.STOPPED:
        ctx.set_phase(run, RunPhase.STOPPED, because("STOPPED", version=run.version))
    elif run.phase is RunPhase.PAUSED and not run.rounds:
        ctx.set_phase(run, RunPhase.PAUSED, PAUSED_REASON, log=False)
    else:
        _collect_next(ctx, run)
        ctx.report_run(run, "")


def take_version(run: Run, digest: str, meta: dict[str, Any]) -> None:
    """The version that this checkpoint's meta is of is durable: the run stands there."""
    run.version, run.digest = meta["version"], digest
    run.failed_attempts, run.failed_workers, run.trouble = 0, [], None
    run.recent_absmax, run.recent_norms = meta["recent_absmax"], meta["recent_norms"]
    run.closed_accepted[run.version] = meta["counted"]
    run.closed_accepted.pop(run.version - policy.ROUNDS_REMEMBERED, None)


def tell_version(ctx: Context, run: Run, meta: dict[str, Any]) -> None:
    """Its row goes to the store and the page, and it is to be evaluated."""
    run.rows[run.version] = meta["row"]
    ctx.out.append(SaveRound(run.id, meta["row"]))
    ctx.out.append(Report("ROUND", "", meta["row"]))
    ctx.out.append(Evaluate(run.id, run.version))


def _show_workers(ctx: Context, round_: Round) -> None:
    """Speeds and shares as they are by now; of a large round some each time, in turn."""
    workers = list(dict.fromkeys(lease.worker for lease in round_.leases))
    start = round_.number * policy.SHOWN_EACH_ROUND % len(workers) if len(workers) > policy.SHOWN_EACH_ROUND else 0
    for worker_id in workers[start : start + policy.SHOWN_EACH_ROUND]:
        if (worker := ctx.state.workers.get(worker_id)) is not None:
            ctx.report_worker(worker, "")


def _bad_again(ctx: Context, worker: Worker) -> None:
    """The others could do their part of this round: after three such rounds the fault lies with this PC."""
    worker.bad_rounds += 1
    if worker.bad_rounds >= ctx.limits.bad_rounds_max and not worker.quarantined:
        ctx.quarantine(worker, because("BAD_ROUNDS", n=worker.bad_rounds))
        ctx.report_worker(worker, "")


def drop_rounds(ctx: Context, run: Run, reason: str, *, committing: bool = False) -> None:
    """Give up rounds, those that have begun to commit only when asked: workers are told, the data becomes pending."""
    for round_ in list(run.rounds):
        if round_.phase not in (RoundPhase.OPEN, RoundPhase.COLLECTING) and not committing:
            continue
        for lease in round_.leases:
            if lease.is_out or lease.state is LeaseState.ACCEPTED:
                ctx.send(lease.worker, Cancel(term=ctx.state.term, ref=run.ref(round_, lease), reason=reason))
        run.pending = policy.merge_ranges(run.pending + round_.ranges)
        run.rounds.remove(round_)
        ctx.out.append(DropRound(run.id, round_.number))


def _consider_opening(ctx: Context, run: Run) -> None:
    if run.ending or run.reverting is not None:
        return
    ahead = bool(run.rounds)
    if ahead and run.rounds[-1].phase is not RoundPhase.COLLECTING:
        return  # when it aggregates, what its checkpoint says of the data is settled
    if len(run.rounds) >= run.rounds_in_flight or run.version + len(run.rounds) >= run.spec.rounds:
        return
    ready = ctx.ready(ahead=ahead)
    present = sum(worker.link in REACHABLE for worker in ctx.state.workers.values())
    may_open, reason = policy.open_verdict(len(ready), run.spec.min_workers, present)
    if not may_open:
        if not ahead:
            reason = reason if run.trouble is None else because("WITH_TROUBLE", why=reason, trouble=run.trouble)
            ctx.set_phase(run, RunPhase.WAITING, reason)
        return
    number = run.version + len(run.rounds) + 1
    ctx.out += [Report("PACE", text, {}) for text in pace.choose(run, number, ready)]
    _open(ctx, run, number, ready)
    if not ahead:
        starts = run.phase is not RunPhase.RUNNING
        ctx.set_phase(run, RunPhase.RUNNING, because("ROUND_RUNS", round=number, n=len(ready)), log=starts)


def _open(ctx: Context, run: Run, number: int, ready: list[Worker]) -> None:
    leases = units.open_leases(run, number, ctx.state.term) if run.spec.balance == "units" else []
    leases = leases or _shards(ctx, run, number, ready)
    # A round that was refused as a whole is tried again with a wider bound: the values may really have grown.
    bound = policy.fold_bound(run.recent_absmax)
    bound = max(bound, policy.BOUND_FIRST) if run.failed_attempts else bound
    round_ = Round(number, run.attempt, bound, leases, ctx.now_ms, run.encoding)
    round_.ahead = bool(run.rounds)
    round_.clip_limit = clipping.limit_at_opening(run)
    round_.units = run.spec.balance == "units"
    round_.reason = because("ASSIGNED", workers=len(leases))
    run.rounds.append(round_)
    ctx.out.append(SaveAssignment(run.id, number, run.attempt, round_table(run, round_)))


def _shards(ctx: Context, run: Run, number: int, ready: list[Worker]) -> list[Lease]:
    """A shard for each worker that is ready, by its speed."""
    spec = run.spec
    by_speed = speeds.comparable(ready) if spec.balance == "proportional" else [1.0] * len(ready)
    leases = []
    works = policy.plan_work(run.k_steps, spec.batch, by_speed)
    for shard, (worker, work) in enumerate(zip(ready, works, strict=True)):
        ranges, run.pending, run.cursor = policy.take_ranges(run.pending, run.cursor, work.samples)
        leases.append(
            Lease(
                id=f"{run.id}.{number}.{run.attempt}.{shard}.{ctx.state.term}",
                shard=shard,
                worker=worker.id,
                ranges=ranges,
                samples=work.samples,
                k_steps=work.k_steps,
                batch=work.batch,
                delta_scale=work.delta_scale,
            )
        )
    return leases


def _consider_closing(ctx: Context, run: Run, round_: Round) -> None:
    if round_.waits_for is not None and round_.waits_for.is_out and not ctx.ticked:
        return
    if round_.units:
        verdict, reason = policy.units_verdict(round_)
    else:
        verdict, reason = policy.close_verdict(ctx.now_ms, round_, ctx.state.workers, run.spec.min_workers, ctx.limits)
    changed = reason != round_.reason
    round_.reason = reason
    if verdict is policy.Verdict.WAIT:
        if len(round_.leases) > policy.JUDGED_EACH_TIME:
            round_.waits_for = next((lease for lease in round_.leases if lease.is_out), None)
        if changed and run.phase is not RunPhase.PAUSED:
            run.reason = because("IN_ROUND", round=round_.number, why=reason)
            run.untold = True  # told with the next Tick
        return
    if verdict is policy.Verdict.REOPEN:
        _reopen(ctx, run, round_, reason)
        return
    accepted = round_.accepted()
    if len(accepted) < len(round_.leases):
        ctx.warn(f"round {round_.number} closes early: {reason}; the rest of its data comes again")
    round_.phase = RoundPhase.AGGREGATING
    weight = sum(lease.samples for lease in accepted) / round_.samples
    clips = clipping.settle(ctx, run, round_, accepted)
    ctx.out.append(Aggregate(run.id, round_.number, round_.encoding, weight, clips))


def _reopen(ctx: Context, run: Run, round_: Round, reason: Reason) -> None:
    refused = all(lease.refused for lease in round_.leases)
    bad = all(lease.bad for lease in round_.leases)
    drop_rounds(ctx, run, reason.text)
    run.attempt += 1
    run.failed_attempts = run.failed_attempts + 1 if refused else 0
    run.failed_workers = sorted({*run.failed_workers, *(lease.worker for lease in round_.leases if lease.refused)})
    again = because("ROUND_AGAIN", round=round_.number, why=reason)
    run.trouble = again if refused else None
    if _hopeless(ctx, run, bad=bad):
        times = because("TIMES", n=max(1, run.failed_attempts))
        who = because("ON_WORKERS", n=max(1, len(run.failed_workers)))
        reason = because("ROUND_FAILED", round=round_.number, times=times, who=who, why=reason)
        if all(lease.diverged for lease in round_.leases):
            run.go_back(reason)
        else:
            ctx.set_phase(run, RunPhase.FAILED, reason)
        return
    ctx.warn(again.text)
    if run.phase is RunPhase.PAUSED and not run.rounds:
        ctx.set_phase(run, RunPhase.PAUSED, PAUSED_REASON, log=False)


def _give_up(ctx: Context, run: Run, reason: Reason) -> None:
    """The operator may resume; the units are then other leases."""
    free = [lease for round_ in run.rounds for lease in round_.leases if lease.state is LeaseState.FREE]
    if any(lease.diverged for lease in free):
        run.go_back(reason)
        return
    drop_rounds(ctx, run, reason.text)
    run.attempt += 1
    ctx.set_phase(run, RunPhase.FAILED, reason)


def _hopeless(ctx: Context, run: Run, *, bad: bool) -> bool:
    """The work itself is at fault: three workers could not do it, or its delta is bad again and nobody else is there.

    A small cluster whose workers hand work back waits, with the reason: another PC may be able to do it.
    """
    if len(run.failed_workers) >= ctx.limits.failed_workers_max:
        return True
    others = any(one.link is not Link.LOST and one.id not in run.failed_workers for one in ctx.state.workers.values())
    return bad and not others and run.failed_attempts >= ctx.limits.failed_attempts_max


def _announce(ctx: Context, run: Run, round_: Round) -> None:
    for lease in round_.leases:
        if lease.is_out:
            ref = run.ref(round_, lease)
            ctx.send(lease.worker, Cancel(term=ctx.state.term, ref=ref, reason="the round closed without it"))
    for worker in ctx.state.by_id():
        if worker.link in REACHABLE:
            counted = [lease.id for lease in round_.of(worker.id) if lease.state is LeaseState.ACCEPTED]
            ctx.tell_closed(worker.id, run, counted)


def _find(ctx: Context, run_id: str, number: int) -> tuple[Run | None, Round | None]:
    run = ctx.state.run
    if run is None or run.id != run_id:
        return None, None
    return run, run.round(number)
