"""Folders on the PC of the master, for whoever looks for a place for a model."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from services.common.protocol.control import ListFolders
from services.console.answers import FolderFacts
from services.console.context import OF_THE_MASTER, ConsoleDep, problems, told

router = APIRouter(prefix="/folders", tags=["folders"])


@router.get(
    "",
    operation_id="browseFolder",
    summary="Folders and models in a folder on the master's PC",
    response_model=None,
    responses=told(FolderFacts) | OF_THE_MASTER | problems(403, 404),
)
async def list_folders(console: ConsoleDep, path: Annotated[str, Query(max_length=1024)] = "") -> dict[str, Any]:
    """An empty path is the master's data folder; `roots` are where looking may begin, `more`: not all are shown.

    FOLDER_NOT_ALLOWED: it lies elsewhere. FOLDER_UNKNOWN: it cannot be opened. In a container only the volume for
    data can be looked at.
    """
    return await console.ask(ListFolders(path=path))
