"""The data set catalog."""

from typing import Any

from fastapi import APIRouter

from services.common.protocol.control import ListDatasets
from services.console.context import ConsoleDep

router = APIRouter(prefix="/datasets", tags=["datasets"])


@router.get("", operation_id="listDatasets", summary="Data sets with size and recommended values")
async def list_datasets(console: ConsoleDep) -> dict[str, Any]:
    """Their names go into a run's `dataset`."""
    return await console.ask(ListDatasets())
