"""`balance = units`: equal pieces of work, pulled by whoever is free. What is lost is given out again at once.

A unit carries nothing over, so that on machines of one kind its delta has the same bits whoever makes it, and so has
the model, whatever happened on the way.
"""

from services.common.protocol.messages import Cancel, Reason, because
from services.master.core import policy
from services.master.core.context import Context
from services.master.core.state import Lease, LeaseState, Link, Round, Run


def open_leases(run: Run, number: int, term: int) -> list[Lease]:
    """The round's units, each without a worker."""
    spec, leases = run.spec, []
    for shard in range(spec.units):
        samples = spec.k_steps * spec.batch
        ranges, run.pending, run.cursor = policy.take_ranges(run.pending, run.cursor, samples)
        lease_id = f"{run.id}.{number}.{run.attempt}.{shard}.{term}"
        leases.append(Lease(lease_id, shard, "", ranges, samples, spec.k_steps, spec.batch, 1.0, LeaseState.FREE))
    return leases


def hand_out(ctx: Context, run: Run, round_: Round) -> Reason | None:
    """Take back what was lost, give what is free to who is ready. A reason when a unit cannot be done by anyone."""
    for lease in round_.leases:
        if ctx.ticked and lease.is_out and _is_missing(ctx, lease.worker):  # only a Tick knows whether this PC slept
            lease.state, lease.reason = LeaseState.LOST, because("WORKER_SILENT")
        if lease.state is LeaseState.LOST:
            hopeless = _take_back(ctx, round_, lease)
            if hopeless is not None:
                return hopeless
    if ctx.now_ms < round_.hold_until_ms and not _all_are_back(ctx):
        return None
    for lease, worker in _pairs(ctx, [lease for lease in round_.leases if lease.state is LeaseState.FREE]):
        round_.give(lease, worker)
        lease.state, lease.reason = LeaseState.OUT, None
        ctx.send_task(run, round_, lease)
    return None


def _pairs(ctx: Context, free: list[Lease]) -> list[tuple[Lease, str]]:
    """Who gets which unit: back to the one that had it last and may still work on it, else in order."""
    ready = [worker.id for worker in ctx.ready()] if free else []
    pairs, rest = [], []
    for lease in free:
        holder = lease.given[-1] if lease.given else ""
        if holder in ready and holder not in lease.failed_on:
            ready.remove(holder)
            pairs.append((lease, holder))
        else:
            rest.append(lease)
    return [*pairs, *zip(rest, ready, strict=False)]


def _is_missing(ctx: Context, worker_id: str) -> bool:
    """Sooner than with shards: a unit is done twice at worst, and whichever delta comes first counts."""
    worker = ctx.state.workers.get(worker_id)
    if policy.is_away(worker, ctx.now_ms, ctx.limits):
        return True
    return worker is not None and policy.is_silent(worker, ctx.now_ms, ctx.limits)


def _all_are_back(ctx: Context) -> bool:
    """Whether every worker that was enrolled at the restart has said what it holds."""
    workers = ctx.state.workers
    return all(one in workers and workers[one].link is Link.LINKED for one in ctx.state.enrolled)


def claim(ctx: Context, run: Run, round_: Round, lease: Lease, worker: str) -> None:
    """A delta comes from one that had this unit before: it counts, and who has it now need not go on."""
    if lease.worker == worker:
        return
    if lease.is_out:
        reason = "another worker was quicker with it"
        ctx.send(lease.worker, Cancel(term=ctx.state.term, ref=run.ref(round_, lease), reason=reason))
    round_.give(lease, worker)


def rejoined(ctx: Context, worker: str, lease_id: str) -> bool:
    """A worker that comes back holds or works on this lease: it is its own again if nobody has it."""
    for round_ in ctx.state.run.rounds if ctx.state.run is not None else []:
        lease = round_.lease(lease_id) if round_.units else None
        if lease is None or lease.state is LeaseState.ACCEPTED:
            continue
        if lease.state is LeaseState.FREE:
            round_.give(lease, worker)
            lease.state, lease.reason, lease.moved_ms = LeaseState.OUT, None, ctx.now_ms
        else:
            round_.welcome(lease, worker)
        return True
    return False


def _take_back(ctx: Context, round_: Round, lease: Lease) -> Reason | None:
    if lease.refused:
        lease.failed_on.append(lease.worker)
    if lease.bad:
        round_.bad_workers.append(lease.worker)
    reason, bad = lease.reason, lease.bad
    assert reason is not None  # why it is LOST
    lease.state, lease.worker, lease.refused, lease.bad = LeaseState.FREE, "", False, False
    failed = set(lease.failed_on)
    known = ctx.state.workers.values()
    others = any(one.link is not Link.LOST and one.id not in failed for one in known)
    again = len(lease.failed_on) >= ctx.limits.failed_attempts_max
    if len(failed) < ctx.limits.failed_workers_max and not (bad and again and not others):
        return None
    facts = {"unit": lease.shard, "round": round_.number, "times": len(lease.failed_on), "workers": len(failed)}
    return Reason("UNIT_FAILED", {**facts, "why": reason})
