"""What every route needs, made once per process and found on the application."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header, Request

from services.common.protocol.control import RunCommand, ShellCommand
from services.console.hub import Hub
from services.console.init import Initiator
from services.console.link import Link
from services.console.problems import ProblemBody, unreachable
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

    async def ask(self, command: RunCommand | ShellCommand, key: str | None = None) -> dict[str, Any]:
        """The master's answer to a command; with an idempotency key it is carried out once. Raises Problem."""
        return await self.link.command(command, key)

    def snapshot(self) -> dict[str, Any]:
        """The last known state; raises Problem before the first one."""
        snapshot = self.hub.mirror.snapshot
        if snapshot is None:
            raise unreachable(f"no state yet: {self.hub.link.reason}")
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
        "answer comes again, as long as this master runs",
    ),
]
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "model": ProblemBody,
        "description": "RFC 9457 problem; `code` is stable",
        "content": {"application/problem+json": {}},
    }
}
