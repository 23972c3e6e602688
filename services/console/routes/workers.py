"""Workers: who is there, and sending one away."""

from typing import Any

from fastapi import APIRouter

from services.common.protocol.control import RemoveAllWorkers, RemoveWorker
from services.common.protocol.messages import WorkerId
from services.console.answers.workers import WorkerList, WorkerName, WorkerNames
from services.console.context import OF_THE_MASTER, ConsoleDep, problems, told
from services.console.lists import LIMIT, Cursor, Limit, ListPage, cut

router = APIRouter(prefix="/workers", tags=["workers"])


@router.get(
    "",
    operation_id="listWorkers",
    summary="All workers with state, reason and speed",
    response_model=None,
    responses=told(WorkerList) | problems(422, 503),
)
async def list_workers(console: ConsoleDep, limit: Limit = LIMIT, cursor: Cursor = None) -> ListPage:
    """By id, as last told by the master; `state.link` says how fresh that is."""
    return cut("workers", console.snapshot().get("workers", []), "id", limit, cursor)


@router.delete(
    "",
    operation_id="removeAllWorkers",
    summary="Revoke all workers' keys and park them",
    response_model=None,
    responses=told(WorkerNames) | OF_THE_MASTER,
)
async def remove_all_workers(console: ConsoleDep) -> dict[str, Any]:
    """A clean start: each needs a new join string to come back. Revoke the join strings, too, if you mean it."""
    return await console.ask(RemoveAllWorkers())


@router.delete(
    "/{worker}",
    operation_id="removeWorker",
    summary="Revoke a worker's key and park it",
    response_model=None,
    responses=told(WorkerName) | OF_THE_MASTER | problems(404, 409),
)
async def remove_worker(console: ConsoleDep, worker: WorkerId) -> dict[str, Any]:
    """It needs a new join string to come back."""
    return await console.ask(RemoveWorker(worker=worker))
