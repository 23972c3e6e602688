"""Folders on the PC of the master, for whoever looks for a place for a model."""

import os
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from services.common.protocol.control import ListFolders
from services.console.answers.choices import FolderFacts
from services.console.context import OF_THE_MASTER, ConsoleDep, problems, told
from services.console.dialog import find_program

router = APIRouter(prefix="/folders", tags=["folders"])


class PickRequest(BaseModel):
    """Where the dialog begins."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"path": ""}]})
    path: str = Field(
        default="", max_length=1024, description="A folder, in full; anything else: where the system begins by itself"
    )


class PickedFolder(BaseModel):
    """What came of the dialog."""

    path: str | None = Field(description="The folder, in full; null: the dialog was cancelled")


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


@router.post(
    "/pick",
    operation_id="pickFolder",
    summary="Let a person choose a folder in the system's own dialog",
    responses=problems(409, 422, 503),
)
async def pick_folder(console: ConsoleDep, request: Request, wanted: PickRequest) -> PickedFolder:
    """Answered when the dialog on this PC's screen is closed, at the latest after 4 minutes; hanging up closes it.

    NO_DIALOG: there is none (in a container, over SSH, without a screen or without a program for it); use
    `browseFolder`. DIALOG_OPEN: one is open already. DIALOG_TIMEOUT: nobody answered it.
    """
    program = find_program(wanted.path, console.settings, os.environ)

    async def hung_up() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return PickedFolder(path=await console.dialog.pick(program, hung_up) or None)
