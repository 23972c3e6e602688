"""The data set catalog."""

from fastapi import APIRouter

from services.common.protocol.control import ListDatasets
from services.console.answers.choices import DatasetList
from services.console.context import OF_THE_MASTER, ConsoleDep, told
from services.console.lists import LIMIT, Cursor, Limit, ListPage, cut

router = APIRouter(prefix="/datasets", tags=["datasets"])


@router.get(
    "",
    operation_id="listDatasets",
    summary="Data sets with size and recommended values",
    response_model=None,
    responses=told(DatasetList) | OF_THE_MASTER,
)
async def list_datasets(console: ConsoleDep, limit: Limit = LIMIT, cursor: Cursor = None) -> ListPage:
    """Their names go into a run's `dataset`."""
    answer = await console.ask(ListDatasets())
    return cut("datasets", answer.get("items", []), "name", limit, cursor)
