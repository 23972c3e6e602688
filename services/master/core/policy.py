"""Pure verdicts and divisions: who gets how much, when a round opens and closes. Each verdict brings its reason."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from services.common.protocol.messages import Reason, because, said
from services.master.core.state import ACTIVE, NOT_REJOINED, Lease, Link, Range, Round, RunPhase, State, Worker

BATCH_MIN = 8
BATCH_FACTOR_MAX = 4
BOUND_FIRST = 2.0**10
BOUND_MIN, BOUND_MAX = 2.0**-40, 2.0**40
BOUND_FACTOR = 16.0
ROUNDS_REMEMBERED = 5
SHOWN_EACH_ROUND = 64  # workers: each is an event for the page
JUDGED_EACH_TIME = 64  # a round of more leases is not looked through for each delta: see Round.waits_for
SPEED_SPREAD_MAX = 64.0  # a faster claim than this many medians is not believed
EAGER_LEASES_MAX = 4  # of a round: as many as the shell has places for deltas
PUSHED_MAX = 4  # workers that get an update unasked: each costs the master a window of memory at that moment
COUNTED_MAX = 1_000  # leases that one ROUND_CLOSED can name
K_STEPS_MAX = 1_000_000  # of one TASK
FAILURE_WAIT_MS, FAILURE_WAIT_MS_MAX = 1_000, 60_000
REASON_LENGTH_MAX = 200  # of one of several
PIECES_MAX = 200  # of pending data in one shard: a TASK must fit its header


@dataclass(frozen=True)
class Limits:
    """The coordinator's waits, in ms, and its counts."""

    heartbeat_ms: int = 2_000
    suspect_ms: int = 6_000
    lost_ms: int = 15_000
    straggler_factor: float = 1.5
    straggler_ms_min: int = 5_000
    idle_ms: int = 30_000  # with a lease and not at work on it
    stalled_ms: int = 180_000  # at work without progress; a worker sees to it itself much earlier
    transfer_ms: int = 3_600_000  # pulling or uploading without end: the shell counts places, and tells sooner
    failed_attempts_max: int = 3
    failed_workers_max: int = 3
    bad_rounds_max: int = 3
    mismatches_max: int = 3


class Verdict(StrEnum):
    """What to do with a round that collects."""

    CLOSE = "CLOSE"
    WAIT = "WAIT"
    REOPEN = "REOPEN"


def open_verdict(ready: int, min_workers: int, present: int) -> tuple[bool, Reason]:
    """Whether a round may open with `ready` workers, and the reason."""
    if ready >= min_workers:
        return True, because("WORKERS_READY", n=ready)
    missing = min_workers - ready
    if present > ready:
        return False, because("WAITS_FOR_READY", ready=ready, needed=min_workers, away=present - ready, n=missing)
    return False, because("WAITS_FOR_WORKERS", ready=ready, needed=min_workers, n=missing)


def queue_verdict(state: State) -> tuple[bool, Reason]:
    """Whether the first run in the queue may begin, and what it waits for.

    A run that failed by itself lets the next one begin; one that the disk failed would take all of them with it.
    """
    run = state.run
    if run is None:
        return True, because("STARTS_NOW")
    if run.phase in ACTIVE:
        paused = run.phase is RunPhase.PAUSED
        return False, because("STARTS_AFTER_PAUSED", run=run.id) if paused else because("STARTS_AFTER", run=run.id)
    if state.busy:
        return False, because("STARTS_AFTER_WRITING", run=run.id)
    if run.phase is RunPhase.FAILED and run.holds_queue:
        return False, because("HELD_BY_FAILED", run=run.id)
    if run.rows:
        return False, because("STARTS_AFTER_EVALUATION", run=run.id)
    return True, because("STARTS_NOW")


def _reasons(round_: Round) -> Reason:
    different = {lease.reason.text: lease.reason for lease in round_.leases if lease.reason is not None}
    reasons = [
        reason if len(text) <= REASON_LENGTH_MAX else said(text[:REASON_LENGTH_MAX])
        for text, reason in different.items()
    ]
    if not reasons:
        return because("NOBODY_LEFT")
    *before, why = reasons[:3]
    for reason in reversed(before):
        why = because("AND", why=reason, more=why)
    return because("AND_MORE", why=why, n=len(reasons) - 3) if len(reasons) > 3 else why


def is_away(worker: Worker | None, now_ms: int, limits: Limits) -> bool:
    """Whether a round need not wait for it: suspect or lost, or its connection is gone for two heartbeats."""
    if worker is None or worker.link in (Link.SUSPECT, Link.LOST):
        return True
    return worker.link is Link.DETACHED and is_silent(worker, now_ms, limits)


def is_silent(worker: Worker, now_ms: int, limits: Limits) -> bool:
    """Nothing for over two heartbeats. One that has not rejoined since the master's own restart has until LOST."""
    return worker.boot_id != NOT_REJOINED and now_ms - worker.last_heard_ms > 2 * limits.heartbeat_ms


def quorum(accepted: int, out: int, away: int, min_workers: int) -> int:
    """Deltas needed to close at the deadline: only workers that can be reached, or are done, count."""
    return max(1, min(min_workers, accepted + out - away))


def close_verdict(
    now_ms: int, round_: Round, workers: Mapping[str, Worker], min_workers: int, limits: Limits
) -> tuple[Verdict, Reason]:
    """CLOSE, WAIT or REOPEN a collecting round, with the reason.

    All leases answered: CLOSE. Quorum, and all others away: CLOSE without them. Quorum and 1.5 x the median time of
    those accepted: CLOSE without the stragglers. Nobody left and nothing accepted: REOPEN.
    """
    accepted, out = round_.sorted_out()
    total = len(round_.leases)
    if not out and not accepted:
        return Verdict.REOPEN, _reasons(round_)
    if not out:
        lost = total - len(accepted)
        if lost == 0:
            return Verdict.CLOSE, because("ALL_SUBMITTED", n=total)
        return Verdict.CLOSE, because("SOME_LOST", accepted=len(accepted), total=total, lost=lost)
    if accepted and now_ms >= round_.opened_ms + 2 * limits.heartbeat_ms:  # before that nobody is away or late
        away = sum(is_away(workers.get(lease.worker), now_ms, limits) for lease in out)
        if len(accepted) >= quorum(len(accepted), len(out), away, min_workers):
            if away == len(out):
                return Verdict.CLOSE, because("OTHERS_SILENT", accepted=len(accepted), total=total)
            times = sorted(_took_ms(round_, lease) for lease in accepted)
            wait_ms = max(limits.straggler_ms_min, int(limits.straggler_factor * times[len(times) // 2]))
            if now_ms >= round_.opened_ms + wait_ms:
                seconds = round(wait_ms / 1000)
                return Verdict.CLOSE, because("OTHERS_SLOW", accepted=len(accepted), total=total, seconds=seconds)
    names = ", ".join(workers[lease.worker].name if lease.worker in workers else lease.worker for lease in out[:3])
    if len(out) <= 3:
        return Verdict.WAIT, because("WAITS_FOR", accepted=len(accepted), total=total, names=names)
    more = len(out) - 3
    return Verdict.WAIT, because("WAITS_FOR_MORE", accepted=len(accepted), total=total, names=names, more=more)


def _took_ms(round_: Round, lease: Lease) -> float:
    """From the begin to its acceptance, as if it had begun when the round did: who comes in late needs as long."""
    ahead_ms = lease.k_steps * lease.step_ms if round_.ahead and lease.step_ms is not None else 0.0
    return lease.accepted_ms - round_.opened_ms + ahead_ms


def units_verdict(round_: Round) -> tuple[Verdict, Reason]:
    """CLOSE when each unit is done; nothing is cut off, for what is lost is given out again."""
    accepted, out = round_.sorted_out()
    total = len(round_.leases)
    if len(accepted) == total:
        return Verdict.CLOSE, because("UNITS_DONE", total=total)
    if out:
        return Verdict.WAIT, because("UNITS_IN_WORK", done=len(accepted), total=total, out=len(out))
    return Verdict.WAIT, because("UNITS_NOT_TAKEN", done=len(accepted), total=total)


def split_by_speed(total: int, speeds: Sequence[float]) -> list[int]:
    """Divide `total` by speed, largest remainder first, at least 1 each (total >= number of speeds)."""
    assert total >= len(speeds) > 0
    assert min(speeds) > 0
    exact = [total * speed / sum(speeds) for speed in speeds]
    parts = [max(1, int(share)) for share in exact]
    order = sorted(range(len(parts)), key=lambda i: (-(exact[i] - int(exact[i])), i))
    at = 0
    while sum(parts) < total:
        parts[order[at % len(order)]] += 1
        at += 1
    while sum(parts) > total:
        parts[parts.index(max(parts))] -= 1
    return parts


@dataclass(frozen=True)
class Work:
    """What one worker does in a round: k_steps batches, whole."""

    k_steps: int
    batch: int
    delta_scale: float

    @property
    def samples(self) -> int:
        """Samples assigned: the delta's weight."""
        return self.k_steps * self.batch


def plan_work(k_steps: int, batch: int, speeds: Sequence[float]) -> list[Work]:
    """Work for each worker of a round of k_steps x batch x workers samples, by speed.

    The batch follows speed within [8, 4 x batch] so that all finish together after the same K; beyond the clamp K_i
    changes and the delta is scaled by K / K_i (FedNova, Wang et al. 2020, arXiv:2007.07481, eq. 5).
    """
    plans = []
    most = SPEED_SPREAD_MAX * sorted(speeds)[(len(speeds) - 1) // 2]
    for share in split_by_speed(batch * len(speeds), [min(speed, most) for speed in speeds]):
        low, high = BATCH_MIN, BATCH_FACTOR_MAX * batch
        if low <= share <= high:
            plans.append(Work(k_steps, share, 1.0))
            continue
        clamped = min(max(share, low), high)
        own_steps = min(max(1, round(k_steps * share / clamped)), K_STEPS_MAX)
        plans.append(Work(own_steps, clamped, k_steps / own_steps))
    return plans


def failure_wait_ms(failures: int) -> int:
    """How long a worker gets no work after so many failures in a row: 2 s, doubled each time, up to a minute."""
    return min(FAILURE_WAIT_MS << min(failures, 10), FAILURE_WAIT_MS_MAX)


def take_ranges(pending: list[Range], cursor: int, size: int) -> tuple[list[Range], list[Range], int]:
    """`size` stream positions: pending ones first, then from the cursor. Returns (taken, pending left, cursor)."""
    taken: list[Range] = []
    left = list(pending)
    while size > 0 and left and len(taken) < PIECES_MAX:
        start, stop = left.pop(0)
        cut = min(stop, start + size)
        taken.append((start, cut))
        size -= cut - start
        if cut < stop:
            left.insert(0, (cut, stop))
    if size > 0:
        taken.append((cursor, cursor + size))
        cursor += size
    return merge_ranges(taken), left, cursor


def merge_ranges(ranges: list[Range]) -> list[Range]:
    """The same positions, sorted, neighbours joined."""
    merged: list[Range] = []
    for start, stop in sorted(ranges):
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], stop)
        else:
            merged.append((start, stop))
    return merged


def without(ranges: Sequence[Range], taken: Sequence[Range]) -> list[Range]:
    """The positions of `ranges` that are not in `taken`, sorted, neighbours joined."""
    left: list[Range] = []
    out = merge_ranges(list(taken))
    for start, stop in merge_ranges(list(ranges)):
        at = start
        for begin, end in out:
            if end <= at or begin >= stop:
                continue
            if at < begin:
                left.append((at, begin))
            at = end
        if at < stop:
            left.append((at, stop))
    return left


def clip_limit(norms: Sequence[float], factor: float) -> float | None:
    """The largest norm that counts whole: `factor` x the median of these; None of none.

    The norms are those before clipping: were they clipped ones, the limit would shrink by itself.
    """
    return factor * statistics.median(norms) if norms else None


def clip_factor(norm: float, limit: float | None) -> float:
    """What a delta of this norm is multiplied by, so that its norm is the limit at most."""
    return 1.0 if limit is None or norm <= limit else limit / norm


def fold_bound(recent_absmax: Sequence[float]) -> float:
    """B of the fixed-point fold: a power of two, at least 16 x the largest entry accepted lately; 2^10 at first."""
    largest = max(recent_absmax[-ROUNDS_REMEMBERED:], default=0.0)
    if largest <= 0.0:
        return BOUND_FIRST
    bound = BOUND_MIN
    while bound < BOUND_FACTOR * largest and bound < BOUND_MAX:
        bound *= 2.0
    return bound
