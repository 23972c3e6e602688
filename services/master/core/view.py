"""State as plain dictionaries, for the page, the log and tests. The shell adds wall-clock times; here are none."""

import statistics
from dataclasses import asdict
from typing import Any

from services.common.protocol.messages import Reason, because, text_of, told
from services.master.core.policy import queue_verdict
from services.master.core.state import QUEUED, LeaseState, Round, Run, State, Worker

LEASES_SHOWN = 100  # an event must fit a header


def state_view(state: State, now_ms: int) -> dict[str, Any]:
    """Run and workers as the console shows them."""
    return {
        "term": state.term,
        "run": run_view(state.run) if state.run else None,
        "queue": queue_view(state),
        "workers": [worker_view(worker, state.run, now_ms) for worker in state.by_id()],
    }


def queue_view(state: State) -> list[dict[str, Any]]:
    """The runs that wait, in order, each with its position (1: the next) and what it waits for."""
    waits_for = queue_verdict(state)[1]
    view = []
    for position, queued in enumerate(state.queue, start=1):
        view.append(
            {
                "id": queued.id,
                "name": queued.spec.name,
                "dataset": queued.spec.dataset,
                "rounds_total": queued.spec.rounds,
                "phase": QUEUED,
                "position": position,
                **_why(because("POSITION", position=position, total=len(state.queue), why=waits_for)),
            }
        )
        waits_for = because("STARTS_AFTER", run=queued.id)
    return view


def run_view(run: Run) -> dict[str, Any]:
    """A run with its phase, reason, open rounds and evaluations."""
    recent = run.recent_ms
    return {
        "id": run.id,
        "name": run.spec.name,
        "spec": run.spec.model_dump(mode="json"),
        "phase": run.phase.value,
        **_why(run.reason),
        "finished": run.finished,
        "version": run.version,
        "reverted": run.reverted,
        "lr_scale": run.lr_scale,
        "rounds_total": run.spec.rounds,
        "n_parameters": run.n_parameters,
        "n_train": run.n_train,
        "rounds_per_minute": round(60_000 * len(recent) / max(1, sum(recent)), 1) if recent else None,
        "k_steps": run.k_steps,
        "encoding": run.encoding,
        "rounds_in_flight": run.rounds_in_flight,
        "sync_ms": round(statistics.median(run.pace.sync_ms)) if run.pace.sync_ms else None,
        "step_ms": round(statistics.median(run.pace.step_ms), 3) if run.pace.step_ms else None,
        "rounds_open": [_round_view(round_) for round_ in run.rounds],
        "last_eval": asdict(run.last_eval) if run.last_eval else None,
        "best_eval": asdict(run.best_eval) if run.best_eval else None,
        "model_path": run.spec.model_path,
        "model_file": run.model.file,
        "model_version": run.model.version,
        "model_reason": text_of(run.model.reason),
        "model_reason_said": told(run.model.reason),
    }


def worker_view(worker: Worker, run: Run | None, now_ms: int) -> dict[str, Any]:
    """A worker with its state, reason and share of the newest open round."""
    return {
        "id": worker.id,
        "name": worker.name,
        "link": worker.link.value,
        "agent": worker.agent,
        "owner": worker.owner,
        **_why(worker.reason),
        "quarantined": worker.quarantined,
        "cores": worker.cores,
        "threads": worker.threads,
        "memory_mib": worker.memory_mib,
        "platform": worker.platform,
        "samples_per_s": round(worker.samples_per_s, 1),
        "link_bytes_per_s": worker.link_bytes_per_s and round(worker.link_bytes_per_s),
        "measured": worker.measured,
        **_part(worker, run),
        "step": worker.step,
        "steps_total": worker.steps_total,
        "progress_age_ms": worker.progress_age_ms,
        "last_heard_ms_ago": max(0, now_ms - worker.last_heard_ms),
        "accepted_rounds": worker.accepted_rounds,
        "samples_total": worker.samples_total,
        "clipped_rounds": worker.clipped_rounds,
        "mismatches": worker.mismatches_total,
    }


def _why(reason: Reason | None) -> dict[str, Any]:
    """In English, and as code and values for those who have sentences of their own."""
    return {"reason": text_of(reason), "reason_said": told(reason)}


def _part(worker: Worker, run: Run | None) -> dict[str, Any]:
    """What it has of the newest open round: its share of the samples, local steps and batch."""
    if run is None or not run.rounds:
        return {"share": None, "k_steps": None, "batch": None}
    round_ = run.rounds[-1]
    leases = round_.of(worker.id)
    return {
        "share": round(sum(lease.samples for lease in leases) / round_.samples, 4),
        "k_steps": leases[0].k_steps if leases else None,
        "batch": leases[0].batch if leases else None,
    }


def _round_view(round_: Round) -> dict[str, Any]:
    return {
        "round": round_.number,
        "phase": round_.phase.value,
        **_why(round_.reason),
        "accepted": sum(lease.state is LeaseState.ACCEPTED for lease in round_.leases),
        "leases": [
            {
                "worker": lease.worker,
                "shard": lease.shard,
                "samples": lease.samples,
                "k_steps": lease.k_steps,
                "batch": lease.batch,
                "state": lease.state.value,
                "reason": text_of(lease.reason),
            }
            for lease in round_.leases[:LEASES_SHOWN]
        ],
        "leases_total": len(round_.leases),
    }
