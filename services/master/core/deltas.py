"""Handlers for deltas: is this piece of work wanted, is it good, is it in. Once per (run, round, shard)."""

from services.common.protocol.messages import (
    Ack,
    AckStatus,
    Cancel,
    DeltaBegin,
    Reason,
    TaskRef,
    because,
    encoded_bytes,
    said,
)
from services.master.core import clipping, policy, speeds, units
from services.master.core.commands import DropStaged, Fold, Report, Stage
from services.master.core.context import Context
from services.master.core.events import DeltaStaged, UploadStalled, WorkerSaid
from services.master.core.state import ACTIVE, Lease, LeaseState, Round, RoundPhase, Run, Worker
from services.master.core.workers import on_heard

LINK_WEIGHT = 0.5  # of the newest measurement in the exponential average
UPLOAD_MS_MIN, UPLOAD_BYTES_MIN = 50, 262_144  # a shorter or smaller upload says nothing about the link
DIVERGED = ("DELTA_NOT_FINITE", "DELTA_NORM")  # of a bad delta: what a learning rate that is too high leads to


def on_delta_begin(ctx: Context, event: WorkerSaid) -> None:
    """A worker offers a delta: take it in, or say why not."""
    worker = on_heard(ctx, event)
    begin = event.message
    assert isinstance(begin, DeltaBegin)
    if worker is None:
        return
    worker.agent = "uploading"
    status, code, text, lease = _admit(ctx, worker.id, begin.ref)
    if _is_news(ctx, begin.ref, status, lease):
        speeds.measure(worker, begin)
    if status is not None or lease is None:
        _ack(ctx, worker.id, begin.ref, status or "stale", code, text)
        return
    run = ctx.state.run
    assert run is not None
    round_ = run.round(begin.ref.round)
    assert round_ is not None
    text = _shape(begin, run, round_)
    if text:
        if lease.worker == worker.id:
            ctx.failed(worker, lease, because("OTHER_SHAPE", worker=worker.name), refused=True, bad=True)
        _ack(ctx, worker.id, begin.ref, "refused", "DELTA_SHAPE", text)
        return
    units.claim(ctx, run, round_, lease, worker.id)
    lease.state, lease.reason = LeaseState.UPLOADING, None
    lease.loss, lease.delta_bytes, lease.offered_ms = begin.loss, begin.bytes, ctx.now_ms
    lease.step_ms = begin.compute_ms / begin.steps if begin.steps else None
    lease.sync_ms = begin.sync_ms
    # The lease says which piece of work it is, whatever the offer says besides.
    ctx.out.append(Stage(worker.id, begin.model_copy(update={"ref": run.ref(round_, lease)})))


def on_delta_staged(ctx: Context, event: DeltaStaged) -> None:
    """A delta is here and was checked: accept it once, or refuse it with the reason."""
    ref = event.ref
    worker = ctx.state.workers.get(event.worker)
    if worker is None:  # it was removed meanwhile
        ctx.out.append(DropStaged(ref, event.digest))
        return
    status, code, text, lease = _admit(ctx, event.worker, ref)
    if status is not None or lease is None:
        ctx.out.append(DropStaged(ref, event.digest))
        _ack(ctx, event.worker, ref, status or "stale", code, text)
        return
    run = ctx.state.run
    round_ = run.round(ref.round) if run else None
    assert run is not None
    assert round_ is not None
    clip = policy.clip_factor(event.norm, round_.clip_limit)
    refusal = _judge(event, round_, clip)
    if refusal is not None:
        code, why = refusal
        if lease.worker == worker.id:
            reason, diverged = because("DELTA_REFUSED", worker=worker.name, why=why), code in DIVERGED
            ctx.failed(worker, lease, reason, refused=True, bad=True, diverged=diverged)
        if not event.code:  # else nothing was staged
            ctx.out.append(DropStaged(ref, event.digest))
        told = f"round {ref.round} shard {ref.shard}: the delta of {worker.name} is refused ({code}): {why}"
        ctx.out.append(Report("DELTA", told, {}))
        _ack(ctx, event.worker, ref, "refused", code, why.text)
        return
    units.claim(ctx, run, round_, lease, worker.id)
    lease.state, lease.accepted_ms = LeaseState.ACCEPTED, ctx.now_ms
    _measure_link(worker, lease)
    lease.absmax, lease.norm, lease.clip = event.absmax * clip, event.norm, clip
    if round_.base_version != worker.mismatch_version:
        worker.mismatches = 0
    clipping.tell(ctx, worker, round_, lease)
    worker.failures, worker.not_before_ms, worker.reason = 0, 0, None
    known = None if clipping.is_settled_later(run, round_) else clip
    weight = lease.samples / round_.samples
    ctx.out.append(Fold(ref, event.digest, round_.encoding, weight, known, round_.bound))
    _ack(ctx, event.worker, ref, "accepted", "OK", "accepted; keep it until the round is closed")


def on_upload_stalled(ctx: Context, event: UploadStalled) -> None:
    """A place for a delta that does not come: the round does not wait for it any longer."""
    worker = ctx.state.workers.get(event.worker)
    status, _, _, lease = _admit(ctx, event.worker, event.ref)
    if worker is None or status is not None or lease is None or lease.state is not LeaseState.UPLOADING:
        return
    reason = because("UPLOAD_STILL", worker=worker.name)
    ctx.failed(worker, lease, reason, refused=False)
    ctx.send(worker.id, Cancel(term=ctx.state.term, ref=event.ref, reason=reason.text))
    ctx.report_worker(worker, f"{reason}; its shard comes again")


def _is_news(ctx: Context, ref: TaskRef, status: AckStatus | None, lease: Lease | None) -> bool:
    """Whether this work of the present run is offered for the first time, be it too late: it tells of its PC once."""
    is_first = not lease.offered_ms if lease is not None else status == "stale"
    return is_first and ctx.state.run is not None and ctx.state.run.id == ref.run


def _shape(begin: DeltaBegin, run: Run, round_: Round) -> str:
    """What does not fit in what was announced; empty when all does."""
    if begin.encoding != round_.encoding:
        return f"field encoding is {begin.encoding}, allowed is {round_.encoding}"
    needed = encoded_bytes(round_.encoding, run.n_parameters)
    if begin.bytes != needed:
        return f"field bytes is {begin.bytes}, allowed is {needed} ({run.n_parameters} values as {begin.encoding})"
    chunks = -(-begin.bytes // begin.chunk_bytes)
    if begin.chunks != chunks:
        return f"field chunks is {begin.chunks}, allowed is {chunks} ({needed} bytes in chunks of {begin.chunk_bytes})"
    return ""


def _admit(ctx: Context, worker: str, ref: TaskRef) -> tuple[AckStatus | None, str, str, Lease | None]:
    """(None, ..., lease) when the delta is wanted; else the status, code and sentence of the answer."""
    run = ctx.state.run
    if run is None or run.id != ref.run:
        return "stale", "DELTA_STALE", f"run {ref.run} is not the current one", None
    if ref.round <= run.version:
        if ref.lease in run.closed_accepted.get(ref.round, []):
            return "closed", "OK", f"round {ref.round} is closed and durable", None
        return "stale", "DELTA_STALE", f"round {ref.round} closed without it; version is {run.version}", None
    if run.phase not in ACTIVE:
        return "stale", "DELTA_STALE", f"the run is {run.phase.value}", None
    round_ = run.round(ref.round)
    lease = round_.lease(ref.lease) if round_ else None
    if round_ is None or lease is None:
        return "stale", "DELTA_STALE", f"this lease of round {ref.round} does not stand any more", None
    return _admit_lease(run, round_, lease, worker)


def _admit_lease(run: Run, round_: Round, lease: Lease, worker: str) -> tuple[AckStatus | None, str, str, Lease | None]:
    if worker not in lease.given:
        return "refused", "DELTA_NOT_ASSIGNED", f"shard {lease.shard} is assigned to another worker", None
    if lease.state is LeaseState.ACCEPTED:
        return "duplicate", "OK", "already accepted; keep it until the round is closed", None
    if round_.phase is not RoundPhase.COLLECTING:
        return "stale", "DELTA_STALE", f"round {round_.number} is {round_.phase.value} without it", None
    return None, "", "", lease


def _judge(event: DeltaStaged, round_: Round, clip: float) -> tuple[str, Reason] | None:
    if event.code:
        return event.code, said(event.text)
    if event.nonfinite:
        return "DELTA_NOT_FINITE", because("DELTA_NOT_FINITE", n=event.nonfinite)
    if event.absmax * clip > round_.bound:
        facts = {"largest": f"{event.absmax * clip:.3g}", "bound": f"{round_.bound:.3g}"}
        return "DELTA_NORM", Reason("DELTA_NORM", facts)
    return None


def _measure_link(worker: Worker, lease: Lease) -> None:
    """What the link to a worker carried of its last delta, beside the others: a lower bound."""
    took_ms = lease.accepted_ms - lease.offered_ms
    if took_ms < UPLOAD_MS_MIN or lease.delta_bytes < UPLOAD_BYTES_MIN:
        return
    speed = 1000.0 * lease.delta_bytes / took_ms
    before = worker.link_bytes_per_s
    worker.link_bytes_per_s = speed if before is None else LINK_WEIGHT * speed + (1 - LINK_WEIGHT) * before


def _ack(ctx: Context, worker: str, ref: TaskRef, status: AckStatus, code: str, text: str) -> None:
    ctx.send(worker, Ack(term=ctx.state.term, ref=ref, status=status, code=code, text=text))
