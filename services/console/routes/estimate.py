"""The estimate of a run before it is started: steps, samples, epochs, bytes, minutes, and whether more PCs help."""

import asyncio
import json
from typing import Any

from fastapi import APIRouter

from services.common.learning import (
    Model,
    Workload,
    benchmark_workload,
    build_model,
    expected_samples_per_s,
    faults_of,
    workload,
)
from services.common.protocol.estimate import Conditions, Estimate, Pc, estimate
from services.common.protocol.round_time import split_sync
from services.common.protocol.spec import RunSpec
from services.console.context import OF_THE_MASTER, ConsoleDep
from services.console.run_request import Card, RunRequest, bad_spec, card_of, complete

router = APIRouter(prefix="/estimate", tags=["runs"])
Dict = dict[str, Any]


@router.post(
    "",
    operation_id="estimateRun",
    summary="What a run would amount to with the PCs present",
    responses=OF_THE_MASTER,
)
async def estimate_run(console: ConsoleDep, request: RunRequest) -> Estimate:
    """The body is that of `createRun`, and so are the refusals; nothing is started.

    Speeds are those measured in training, else worked out from each PC's micro-benchmark. Once links are measured the
    time for sending counts; until then a hint says that it is left out.
    """
    spec, cards = await complete(console, request)
    faults = faults_of(spec, cards)
    if faults:
        raise bad_spec(faults)
    card = cards[spec.dataset.removeprefix("builtin:")]
    model = _model(spec.model, card)
    conditions = _conditions(console.snapshot(), spec, model, card, cards)
    return await asyncio.to_thread(estimate, spec, conditions)  # with a thousand PCs and units it takes seconds


def _model(model: Dict, card: Card) -> Model:
    return build_model(model, card["dimensions"], card["classes"])


def _conditions(snapshot: Dict, spec: RunSpec, model: Model, card: Card, cards: dict[str, Card]) -> Conditions:
    """What the mirror knows. What a master does not tell (yet) is taken as not measured."""
    run = snapshot.get("run") or {}
    wanted = workload(model, spec.batch)
    trained = _trained(run, cards) or wanted
    present = [worker for worker in snapshot.get("workers", []) if _can_train(worker)]
    link, fixed_s = (snapshot.get("master") or {}).get("link_bytes_per_s"), None
    if link is None and run.get("sync_ms") is not None and run.get("n_parameters"):
        link, fixed_s = _exchange(run, model, len(present))
    return Conditions(
        n_train=card["train"],
        n_parameters=model.n_parameters,
        pcs=tuple(_pc(worker, trained, wanted) for worker in present),
        bytes_per_s=link,
        fixed_s=fixed_s,
    )


def _can_train(worker: Dict) -> bool:
    here = worker["link"] == "LINKED" and worker["agent"] != "paused" and not worker.get("quarantined")
    return here and worker["samples_per_s"] > 0


def _pc(worker: Dict, trained: Workload, wanted: Workload) -> Pc:
    """A worker that has trained was measured on the present run's model, the others on the benchmark's."""
    measured = worker.get("measured", False)
    on = trained if measured else benchmark_workload()
    speed = expected_samples_per_s(worker["samples_per_s"], on, wanted)
    return Pc(str(worker["name"]), speed, worker.get("link_bytes_per_s"), measured)


def _trained(run: Dict, cards: dict[str, Card]) -> Workload | None:
    """What the workers of the present, or last, run trained; None when it is not known here."""
    card = card_of(cards, run["spec"]["dataset"]) if run else None
    return workload(_model(run["spec"]["model"], card), run["spec"]["batch"]) if card else None


def _exchange(run: Dict, model: Model, workers: int) -> tuple[float | None, float | None]:
    """Link and fixed time by the exchange that the present, or last, run measured; the latter for its own size only."""
    sent = RunSpec.model_validate_json(json.dumps({**run["spec"], "encoding": run["encoding"]}))
    link, fixed_s = split_sync(run["sync_ms"] / 1000, sent, run["n_parameters"], workers)
    return link, fixed_s if run["n_parameters"] == model.n_parameters else None
