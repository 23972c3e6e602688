"""Bugs put in on purpose: each must be caught, or the simulator proves nothing (shared/research/reliability.md, G4)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from services.common.learning import Accumulator
from services.common.protocol.messages import Hello
from services.master.core import deltas, policy, recovery, rounds, workers
from services.master.core.coordinator import Coordinator
from services.master.core.state import ACTIVE, Lease, LeaseState, Link, Round, RoundPhase
from services.master.core.table import TABLE
from services.master.shell import checkpoints, desk
from services.master.shell.checkpoints import Vault
from services.master.shell.desk import Desk
from services.master.shell.worker_port import WorkerPort
from services.tests.durability.mutants import new_folders_not_synced, no_folder_fsync, no_fsync
from services.worker.core import session, upload
from services.worker.core.state import Timer

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


def no_dedup(patch: Patch) -> None:
    """An accepted delta is taken a second time."""

    def admit(run: Any, round_: Round, lease: Lease, worker: str) -> Any:
        return None, "", "", lease

    patch.setattr(deltas, "_admit_lease", admit)


def strangers_delta(patch: Patch) -> None:
    """Whose delta it is, is not looked at: a shard may come from any worker, for any lease."""
    shipped = deltas._admit

    def admit(ctx: Any, worker: str, ref: Any) -> Any:
        run = ctx.state.run
        round_ = run.round(ref.round) if run is not None else None
        lease = round_.leases[0] if round_ is not None and round_.phase is RoundPhase.COLLECTING else None
        if lease is None or lease.state is LeaseState.ACCEPTED:
            return shipped(ctx, worker, ref)
        return None, "", "", lease

    patch.setattr(deltas, "_admit", admit)


def stale_accepted(patch: Patch) -> None:
    """A delta of a round that is over counts in the open one."""
    shipped = deltas._admit

    def admit(ctx: Any, worker: str, ref: Any) -> Any:
        run = ctx.state.run
        if run is not None and run.rounds and run.phase in ACTIVE:
            for lease in run.rounds[0].leases:
                if lease.worker == worker and lease.is_out and run.rounds[0].phase is RoundPhase.COLLECTING:
                    return None, "", "", lease
        return shipped(ctx, worker, ref)

    patch.setattr(deltas, "_admit", admit)


def announced_before_durable(patch: Patch) -> None:
    """ROUND_CLOSED goes out when the outer step is made, not when its checkpoint is durable."""
    shipped = rounds.on_aggregation_done

    def done(ctx: Any, event: Any) -> None:
        shipped(ctx, event)
        run = ctx.state.run
        if run is not None and run.rounds and run.rounds[0].phase is RoundPhase.COMMITTING:
            round_ = run.rounds[0]
            run.version, run.digest, keep = round_.number, round_.digest, (run.version, run.digest)
            rounds._announce(ctx, run, round_)
            run.version, run.digest = keep

    for phase in (*ACTIVE,):
        patch.setitem(TABLE["AggregationDone"], phase, done)


def not_finite_accepted(patch: Patch) -> None:
    """Nobody looks whether a delta is finite."""
    patch.setattr(desk, "check", lambda *_: "")
    patch.setattr(deltas, "_judge", lambda event, round_, clip: None)


def _no_stragglers(patch: Patch) -> None:
    """Rounds wait for all that are out, however late."""
    shipped = Coordinator.__init__

    def init(self: Coordinator, term: int, limits: Any = None) -> None:
        del limits
        shipped(self, term, policy.Limits(straggler_factor=1e6))

    patch.setattr(Coordinator, "__init__", init)


def dead_are_awaited(patch: Patch) -> None:
    """A worker that is LOST keeps its lease, and the round waits for it."""
    _no_stragglers(patch)
    patch.setattr(workers, "_gone", lambda ctx, worker, reason: setattr(worker, "link", Link.LOST))
    patch.setattr(policy, "is_away", lambda *_: False)


def deadline_not_armed(patch: Patch) -> None:
    """No deadline for silent workers."""
    _no_stragglers(patch)
    patch.setattr(workers, "_judge", lambda *_: None)


def old_checkpoint(patch: Patch) -> None:
    """After a restart the newest checkpoint but one is taken."""
    shipped = Vault.newest_good

    def newest(self: Vault, run: str) -> Any:
        found = checkpoints.rounds_in(self.run_folder(run))
        if len(found) > 1:
            return self.read(run, found[-2]), []
        return shipped(self, run)

    patch.setattr(Vault, "newest_good", newest)


def data_used_twice(patch: Patch) -> None:
    """The cursor is not in the commit: after a restart the stream begins again."""
    shipped = recovery.checkpoint_meta
    patch.setattr(rounds, "checkpoint_meta", lambda *given: {**shipped(*given), "cursor": 0, "pending": []})


def data_lost(patch: Patch) -> None:
    """The data of shards that were not accepted is forgotten."""
    shipped = recovery.checkpoint_meta
    patch.setattr(rounds, "checkpoint_meta", lambda *given: {**shipped(*given), "pending": []})


def no_rejoin(patch: Patch) -> None:
    """A restarted master is silent to workers that it does not know."""
    shipped = WorkerPort._take

    def take(self: WorkerPort, route: bytes, key: str, message: Any, payload: Any, now_ms: int) -> Any:
        if not isinstance(message, Hello) and route not in self._routes:
            return []
        return shipped(self, route, key, message, payload, now_ms)

    patch.setattr(WorkerPort, "_take", take)
    patch.setitem(session.TIMERS, Timer.LOST, lambda state, now_ms: [])


def weight_by_claim(patch: Patch) -> None:
    """Deltas count the same, whatever they stand for."""
    shipped = Accumulator.fold_encoded
    patch.setattr(Accumulator, "fold_encoded", lambda self, name, raw, _, clip: shipped(self, name, raw, 0.25, clip))


def residual_not_undone(patch: Patch) -> None:
    """A worker takes what a delta left over for owed, though the delta does not count."""
    shipped = upload.forget
    patch.setattr(upload, "forget", lambda state, delta, *, counted=True: shipped(state, delta, counted=True))


def residual_not_resumed(patch: Patch) -> None:
    """After a restart the master owes nothing."""
    shipped = Desk.restore

    def restore(self: Desk, spec: Any, checkpoint: Any, best: Any) -> None:
        shipped(self, spec, replace(checkpoint, residual=np.zeros_like(checkpoint.parameters)), best)

    patch.setattr(Desk, "restore", restore)


def stuck_lease(patch: Patch) -> None:
    """A worker that is heard may sit on its lease for ever, and does not notice that its trainer stands still."""
    patch.setattr(workers, "_judge_lease", lambda *_: None)
    _no_stragglers(patch)
    patch.setitem(session.TIMERS, Timer.STEP, lambda state, now_ms: [])
    patch.setitem(session.TIMERS, Timer.TRAINER_READY, lambda state, now_ms: [])
    patch.setitem(session.TIMERS, Timer.TRAINER_FREE, lambda state, now_ms: [])


MUTANTS: dict[str, Mutant] = {
    one.__name__: one
    for one in (
        no_dedup,
        strangers_delta,
        stale_accepted,
        announced_before_durable,
        not_finite_accepted,
        dead_are_awaited,
        deadline_not_armed,
        old_checkpoint,
        data_used_twice,
        data_lost,
        no_rejoin,
        weight_by_claim,
        residual_not_undone,
        residual_not_resumed,
        stuck_lease,
        no_fsync,
        no_folder_fsync,
        new_folders_not_synced,
    )
}
