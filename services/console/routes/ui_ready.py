"""A page says that it is ready: now INIT may begin, as somebody sees its lines."""

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from services.console.context import ConsoleDep
from services.console.init import InitState

router = APIRouter(tags=["state"])


class UiReady(BaseModel):
    """How far INIT is."""

    term: int | None = Field(description="The master's term; null: it has not answered yet, and is asked when it does")
    init: InitState = Field(description="waiting: the master is asked now; running: its lines come; done: in this term")


@router.post(
    "/ui-ready",
    operation_id="uiReady",
    summary="A page is open: the master may make the checks of INIT",
    status_code=202,
    responses={200: {"model": UiReady, "description": "INIT is done in this term: `/state` has what it found"}},
)
async def ui_ready(console: ConsoleDep, response: Response) -> UiReady:
    """As often as you like, from as many pages as there are: the master makes its checks once in a term.

    Their lines come on the event stream (kinds INIT, WARN, ERROR), each with a `code` and values; READY is the last.
    """
    console.init.page_ready()
    mirror, init = console.hub.mirror, console.init.state
    response.status_code = 200 if init == "done" and console.hub.link.state == "live" else 202
    return UiReady(term=None if mirror.snapshot is None else mirror.term, init=init)
