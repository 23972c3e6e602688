"""What makes a run whole again after a restart: the checkpoint's meta and the round's assignment table.

The meta is written before a round is CLOSED and the table before its first TASK, so that at any moment the two together
say which data was used, which is out, and which deltas are still welcome.
"""

import statistics
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from services.common.protocol.messages import Reason, RunSpec, because
from services.master.core import pace, policy
from services.master.core.state import (
    ACTIVE,
    NOT_REJOINED,
    Evaluation,
    Lease,
    LeaseState,
    Link,
    ModelFile,
    Pace,
    Queued,
    Round,
    RoundPhase,
    Run,
    RunPhase,
    State,
    Worker,
)
from services.master.core.watch import Watch

REJOIN_MS = 3_000  # after a restart most workers say within this time which units they hold; the rest is done twice


def round_table(run: Run, round_: Round) -> dict[str, Any]:
    """The durable assignment of a round, JSON values only."""
    return {
        "round": round_.number,
        "attempt": round_.attempt,
        "opened_at": run.version,
        "encoding": round_.encoding,
        "pace": asdict(run.pace),
        "bound": round_.bound,
        "clip_limit": round_.clip_limit,
        "cursor": run.cursor,
        "pending": [list(one) for one in run.pending],
        "leases": [
            {
                "id": lease.id,
                "shard": lease.shard,
                "worker": lease.worker,
                "ranges": [list(one) for one in lease.ranges],
                "samples": lease.samples,
                "k_steps": lease.k_steps,
                "batch": lease.batch,
                "delta_scale": lease.delta_scale,
            }
            for lease in round_.leases
        ],
    }


def checkpoint_meta(run: Run, round_: Round, now_ms: int) -> dict[str, Any]:
    """What a checkpoint says of itself, JSON values only. Data of shards not accepted is pending again.

    So is that of the round ahead: a checkpoint must not depend on a table that may be gone.
    """
    accepted = round_.accepted()
    given_back = [one for lease in round_.leases if lease.state is not LeaseState.ACCEPTED for one in lease.ranges]
    ahead = [one for other in run.rounds if other is not round_ for one in other.ranges]
    losses = [(lease.loss, lease.samples) for lease in accepted if lease.loss is not None]
    weight = sum(samples for _, samples in losses)
    absmax = max((lease.absmax for lease in accepted), default=0.0)
    norms = [lease.norm for lease in accepted]
    return {
        **version_meta(run, round_.number),
        "digest": round_.digest,
        "pending": [list(one) for one in policy.merge_ranges(run.pending + given_back + ahead)],
        "attempt": round_.attempt,
        "pace": asdict(pace.measured(run, accepted)),
        "recent_absmax": [*run.recent_absmax, absmax][-policy.ROUNDS_REMEMBERED :],
        "recent_norms": [*run.recent_norms, statistics.median(norms)][-policy.ROUNDS_REMEMBERED :],
        "accepted": [lease.shard for lease in accepted],
        "counted": [lease.id for lease in accepted],
        "row": {
            **blank_row(round_.number),
            "workers": len({lease.worker for lease in accepted}),
            "train_loss": round(sum(loss * (samples / weight) for loss, samples in losses), 6) if weight else None,
            "samples": sum(lease.samples for lease in accepted),
            "bytes": sum(lease.delta_bytes for lease in accepted),
            "seconds": round((now_ms - round_.opened_ms) / 1000, 3),
        },
    }


def version_meta(run: Run, version: int) -> dict[str, Any]:
    """What the checkpoint of any version says, JSON values only: the run as it stands, no deltas, no row."""
    return {
        "run": run.id,
        "round": version,
        "version": version,
        "digest": "",
        "spec": run.spec.model_dump(mode="json"),
        "data": run.data,
        "n_train": run.n_train,
        "cursor": run.cursor,
        "pending": [list(one) for one in run.pending],
        "recent_absmax": run.recent_absmax,
        "recent_norms": run.recent_norms,
        "accepted": [],
        "counted": [],
        "attempt": run.attempt,
        "pace": asdict(run.pace),
        "lr_scale": run.lr_scale,
        "reverted": run.reverted,
        "running_ms": run.watch.running_ms,
        "row": None,
    }


def blank_row(number: int) -> dict[str, Any]:
    """The row of a round in which nobody did anything."""
    return {
        "round": number,
        "workers": 0,
        "train_loss": None,
        "eval_loss": None,
        "eval_accuracy": None,
        "samples": 0,
        "bytes": 0,
        "seconds": 0.0,
        "note": "",
    }


@dataclass(frozen=True)
class Saved:
    """A run as the shell found it on disk: newest good checkpoint's meta, phase from the store, tables that stand.

    `evaluations`: the last ones, in order, to count again what the run had counted.
    """

    run: str
    spec: RunSpec
    phase: RunPhase
    reason: Reason
    n_parameters: int
    meta: dict[str, Any]
    tables: list[dict[str, Any]]  # of the rounds after it that were open, in order
    names: dict[str, str]
    last_eval: Evaluation | None = None
    best_eval: Evaluation | None = None
    evaluations: list[Evaluation] = field(default_factory=list)
    finished: bool = False
    queue: list[Queued] = field(default_factory=list)
    model: ModelFile = field(default_factory=ModelFile)  # as it was found where it belongs


def restore(state: State, saved: Saved, now_ms: int) -> None:
    """Put a run back as it stood. Leases of an open round wait for their workers until LOST, counted from now."""
    meta = saved.meta
    state.enrolled = sorted(saved.names)
    run = Run(
        id=saved.run,
        spec=saved.spec,
        phase=saved.phase,
        reason=saved.reason,
        version=meta["version"],
        digest=meta["digest"],
        prepared=True,
        n_parameters=saved.n_parameters,
        n_train=meta["n_train"],
        data=meta["data"],
        cursor=meta["cursor"],
        pending=[(start, stop) for start, stop in meta["pending"]],
        recent_absmax=list(meta["recent_absmax"]),
        recent_norms=list(meta["recent_norms"]),
        closed_accepted={meta["version"]: list(meta["counted"])},
        attempt=meta.get("attempt", 0),  # a checkpoint of an earlier MAHE has none of these lines
        pace=Pace(**meta.get("pace", {})),
        last_eval=saved.last_eval,
        best_eval=saved.best_eval,
        lr_scale=meta.get("lr_scale", 1.0),
        reverted=meta.get("reverted", 0),
        watch=Watch(running_ms=meta.get("running_ms", 0), counted_ms=now_ms),
    )
    for measured in saved.evaluations:
        run.watch.note(measured.loss, counts=measured.version > run.reverted)
    run.finished = saved.finished or run.version >= run.spec.rounds
    if meta["row"] is not None and (run.last_eval is None or run.last_eval.version < run.version):
        run.rows[run.version] = meta["row"]  # its evaluation was lost with the master; the shell asks again
    run.holds_queue = run.phase is RunPhase.FAILED  # by what, nobody knows any more: the operator decides
    run.model = replace(saved.model, round=run.version - run.version % run.spec.model_every)
    state.queue = list(saved.queue)
    if run.phase in (RunPhase.RUNNING, RunPhase.WAITING):
        run.reason = because("RESTARTED", version=run.version)
    state.run = run
    if run.phase not in ACTIVE:
        return
    for table in saved.tables:
        if table["round"] == run.version + len(run.rounds) + 1 and _stands(run, table):
            _open_again(state, run, table, saved.names, now_ms)
    if run.rounds:
        run.rounds[0].phase = RoundPhase.COLLECTING


def _stands(run: Run, table: dict[str, Any]) -> bool:
    """Whether a table belongs to what is before it: one that was opened ahead, to just that attempt at its base.

    `run.attempt` is that of the newest version, or of the round that was opened again before. A version whose write
    failed may turn out to be durable after all, when the round has been begun anew since.
    """
    if _opened_at(run, table) < table["round"] - 1:
        return bool(table["attempt"] == run.attempt)
    return bool(table["attempt"] >= run.attempt)


def _opened_at(run: Run, table: dict[str, Any]) -> int:
    return int(table.get("opened_at", run.version))  # a table of before does not say


def _open_again(state: State, run: Run, table: dict[str, Any], names: dict[str, str], now_ms: int) -> None:
    """A round as its table says. One that was opened before the newest version knows less of the data than that."""
    run.attempt = table["attempt"]
    leases = [
        Lease(**{**lease, "ranges": [(start, stop) for start, stop in lease["ranges"]]}) for lease in table["leases"]
    ]
    round_ = Round(
        table["round"], table["attempt"], table["bound"], leases, now_ms, table.get("encoding", run.encoding)
    )
    round_.saved = True
    opened_at = _opened_at(run, table)
    if opened_at == run.version:
        run.cursor, run.pending = table["cursor"], [(start, stop) for start, stop in table["pending"]]
        run.pace = Pace(**table.get("pace", {}))
    else:
        run.pending = policy.without(run.pending, round_.ranges)
    round_.ahead = opened_at < round_.base_version
    round_.reason = because("REJOINING")
    run.rounds.append(round_)
    round_.clip_limit = table["clip_limit"]
    round_.units = run.spec.balance == "units"
    round_.hold_until_ms = now_ms + REJOIN_MS
    for lease in leases:
        lease.moved_ms = now_ms
        if not lease.worker:
            lease.state = LeaseState.FREE
            continue
        state.workers[lease.worker] = Worker(
            id=lease.worker,
            name=names.get(lease.worker, lease.worker),
            platform="?",
            cores=1,
            threads=1,
            memory_mib=1,
            samples_per_s=1.0,
            boot_id=NOT_REJOINED,
            last_heard_ms=now_ms,
            joined_ms=now_ms,
            link=Link.DETACHED,
            reason=because("NOT_REJOINED"),
        )
