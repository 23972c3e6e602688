"""Join strings: made for another PC, listed without their secret, revoked."""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from services.common.protocol.control import CreateJoinString, ListJoinStrings, RevokeJoinString
from services.common.protocol.messages import Count, Name
from services.console.answers.workers import JoinStringList, JoinStringMade, JoinStringNumber
from services.console.context import OF_THE_MASTER, ConsoleDep, IdempotencyKey, problems, told
from services.console.lists import LIMIT, Cursor, Limit, ListPage, after_of, page_of

router = APIRouter(prefix="/join-strings", tags=["join strings"])


class JoinRequest(BaseModel):
    """What a new join string is for, how long and how often it can be used."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"label": "lab", "expires_s": 3600, "uses": 20}]}
    )
    label: Name = "page"
    expires_s: Annotated[int, Field(ge=60, le=30 * 24 * 3600)] = 3600
    uses: Annotated[int, Field(ge=1, le=1000)] = 20


@router.get(
    "",
    operation_id="listJoinStrings",
    summary="The join strings that stand, without their secret",
    response_model=None,
    responses=told(JoinStringList) | OF_THE_MASTER,
)
async def list_join_strings(console: ConsoleDep, limit: Limit = LIMIT, cursor: Cursor = None) -> ListPage:
    """A join string is shown whole only once, when it is made."""
    name = "join-strings"
    return page_of(name, await console.ask(ListJoinStrings(limit=limit, after=after_of(name, cursor) or 0)))


@router.post(
    "",
    operation_id="createJoinString",
    summary="Make a join string for another PC",
    status_code=201,
    response_model=None,
    responses=told(JoinStringMade, 201) | OF_THE_MASTER | problems(409),
)
async def create_join_string(
    console: ConsoleDep, wanted: JoinRequest, idempotency_key: IdempotencyKey = None
) -> dict[str, Any]:
    """On the other PC: `mahe join <join_string>`."""
    command = CreateJoinString(label=wanted.label, expires_s=wanted.expires_s, uses=wanted.uses)
    return await console.ask(command, idempotency_key)


@router.delete(
    "/{number}",
    operation_id="revokeJoinString",
    summary="A join string stops working",
    response_model=None,
    responses=told(JoinStringNumber) | OF_THE_MASTER | problems(404),
)
async def revoke_join_string(console: ConsoleDep, number: Count) -> dict[str, Any]:
    """Workers that have joined with it stay."""
    return await console.ask(RevokeJoinString(id=number))
