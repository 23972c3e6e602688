"""The limit on a delta's norm, for `aggregator = clip`: what is longer counts for its part, and the log says whose.

Fixed when the round opens, from the norms of the last closed rounds, so that deltas can be added as they come. Where
there is none yet, in the first round, the deltas are kept, and the limit is that round's own when it closes: an honest
first delta is as long as it is, and a bad one is not let through.
"""

from services.master.core import policy
from services.master.core.commands import Report
from services.master.core.context import Context
from services.master.core.state import Lease, Round, Run, Worker

TOLD_BELOW = 0.5  # what counts for less than this part of itself is told and counted


def limit_at_opening(run: Run) -> float | None:
    """From the rounds before; None when there is none, or no limit at all."""
    return policy.clip_limit(run.recent_norms, run.spec.clip) if run.spec.aggregator == "clip" else None


def is_settled_later(run: Run, round_: Round) -> bool:
    """Whether the round has its limit only when it closes."""
    return run.spec.aggregator == "clip" and round_.clip_limit is None


def settle(ctx: Context, run: Run, round_: Round, accepted: list[Lease]) -> dict[int, float]:
    """The clip factors of a round that had no limit before, by shard; empty for any other."""
    if not is_settled_later(run, round_):
        return {}
    round_.clip_limit = policy.clip_limit([lease.norm for lease in accepted], run.spec.clip)
    for lease in accepted:
        lease.clip = policy.clip_factor(lease.norm, round_.clip_limit)
        lease.absmax *= lease.clip
        worker = ctx.state.workers.get(lease.worker)
        if worker is not None:
            tell(ctx, worker, round_, lease)
    return {lease.shard: lease.clip for lease in accepted}


def tell(ctx: Context, worker: Worker, round_: Round, lease: Lease) -> None:
    """A delta that counts for much less than it is: who, and why."""
    if lease.clip >= TOLD_BELOW:
        return
    worker.clipped_rounds += 1
    text = (
        f"round {round_.number} shard {lease.shard}: the delta of {worker.name} counts for {lease.clip:.2g} of "
        f"itself: its norm is {lease.norm:.3g}, the limit is {round_.clip_limit:.3g}"
    )
    ctx.out.append(Report("DELTA", text, {}))
