"""What every route needs, made once per process and found on the application."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Header, Request
from pydantic import BaseModel

from services.common.protocol.control import RunCommand, ShellCommand
from services.console.dialog import FolderDialog
from services.console.hub import Hub
from services.console.init import Initiator
from services.console.link import Link
from services.console.problems import MEDIA_TYPE, TITLES, ProblemBody, unreachable
from services.console.settings import ConsoleSettings

KEY_CHARACTERS_MAX = 255


@dataclass(frozen=True)
class Console:
    """The shared parts of one console."""

    hub: Hub
    link: Link
    token: str
    init: Initiator
    settings: ConsoleSettings
    dialog: FolderDialog = field(default_factory=FolderDialog)

    async def ask(self, command: RunCommand | ShellCommand, key: str | None = None) -> dict[str, Any]:
        """The master's answer to a command; with an idempotency key it is carried out once. Raises Problem."""
        return await self.link.command(command, key)

    def snapshot(self) -> dict[str, Any]:
        """The last known state; raises Problem before the first one."""
        snapshot = self.hub.mirror.snapshot
        if snapshot is None:
            raise unreachable(f"no state yet: {self.hub.link.text}")
        return snapshot


def _console(request: Request) -> Console:
    console: Console = request.app.state.console
    return console


ConsoleDep = Annotated[Console, Depends(_console)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=KEY_CHARACTERS_MAX,
        description="Any text that no other request has: asked again with it, nothing is done twice and the first "
        "answer comes again, as long as this master runs; a run that was started is known longer",
    ),
]
Responses = dict[int | str, dict[str, Any]]
"""What an operation may answer, by status, as FastAPI's `responses` takes it."""


def problems(*statuses: int) -> Responses:
    """The refusals that an operation may give: it gives no other."""
    schema = {"$ref": f"#/components/schemas/{ProblemBody.__name__}"}
    return {status: {"description": TITLES[status], "content": {MEDIA_TYPE: {"schema": schema}}} for status in statuses}


def told(model: type[BaseModel], status: int = 200) -> Responses:
    """The answer as it is described, and not checked; give `response_model=None` with it."""
    return {status: {"model": model, "description": (model.__doc__ or "").partition("\n")[0]}}


def raw(media_type: str, description: str) -> Responses:
    """An answer that is no JSON."""
    return {200: {"description": description, "content": {media_type: {"schema": {"type": "string"}}}}}


OF_THE_GUARD = problems(403, 413, 415)
"""Every request may be refused so."""
OF_THE_MASTER = problems(400, 422, 502, 503)
"""Refusals of whatever is asked of the master: 400 and 502 when it is of another version."""
