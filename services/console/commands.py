"""Commands on their way: each sent until its reply comes or its deadline passes, always under the same id.

Used only in the link's thread. The master keeps replies by id, so sending again never does a thing twice.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from services.common.protocol.control import Command, ControlError, Reply
from services.console.problems import Problem, key_reused, unreachable

COMMAND_S = 10.0
RETRY_SENT_S = 2.0
RETRY_UNSENT_S = 0.2
PENDING_MAX = 256

Outcome = dict[str, Any] | Problem
Send = Callable[[Command], bool]


@dataclass
class Pending:
    """One command without its reply. `done` is called exactly once, and so is each of `others`.

    These asked for the same under the same id meanwhile.
    """

    command: Command
    deadline: float
    done: Callable[[Outcome], None]
    next_try: float = 0.0
    sent: bool = False
    others: list[Callable[[Outcome], None]] = field(default_factory=list)

    def end(self, outcome: Outcome) -> None:
        """Tell everybody who waits."""
        for tell in (self.done, *self.others):
            tell(outcome)


class CommandDesk:
    """The commands without a reply, by id."""

    def __init__(self) -> None:
        self._pending: dict[str, Pending] = {}

    def add(self, pending: Pending) -> None:
        """Take a command on, or refuse it: PENDING_MAX wait already, or its id is that of another one."""
        command = pending.command
        same = self._pending.get(command.cmd_id)
        if sum(1 + len(one.others) for one in self._pending.values()) >= PENDING_MAX:
            pending.done(unreachable(f"{PENDING_MAX} commands wait for the master already; try again later"))
        elif same is None:
            self._pending[command.cmd_id] = pending
        elif same.command == command:
            same.others.append(pending.done)
        else:
            pending.done(key_reused(f"the key of a {same.command.command.name} that still waits for its answer"))

    def tick(self, now: float, send: Send | None, reason: str) -> None:
        """Send what is due, if there is a connection, and give up what is over its deadline."""
        for cmd_id, pending in list(self._pending.items()):
            if now >= pending.deadline:
                del self._pending[cmd_id]
                pending.end(_given_up(pending, reason))
            elif send is not None and now >= pending.next_try:
                went = send(pending.command)
                pending.sent = pending.sent or went
                pending.next_try = now + (RETRY_SENT_S if went else RETRY_UNSENT_S)

    def on_reply(self, reply: Reply, payload: bytes) -> None:
        """The answer to a command; one nobody waits for is left alone."""
        pending = self._pending.pop(reply.cmd_id, None)
        if pending is None:
            return
        try:
            result = json.loads(payload)
        except ValueError:
            pending.end(unreachable("the master's answer is not JSON; use the same MAHE on both sides"))
            return
        if not isinstance(result, dict):
            result = {}
        if reply.ok:
            pending.end(result)
        else:
            errors = result.get("errors")
            pending.end(Problem(reply.text, code=reply.code, errors=errors if isinstance(errors, list) else ()))

    def on_error(self, error: ControlError) -> None:
        """A message was refused: the command whose id it names ends with that."""
        pending = self._pending.pop(error.cmd_id or "", None)
        if pending is not None:
            pending.end(Problem(error.text, code=error.code))

    def close(self) -> None:
        """The link ends: nobody waits any longer."""
        for pending in self._pending.values():
            pending.end(unreachable("the console stops; whether the command was carried out is not known"))
        self._pending.clear()


def _given_up(pending: Pending, reason: str) -> Problem:
    what = pending.command.command.name
    if pending.sent:
        return unreachable(
            f"no answer to {what} in time ({reason}); it may still be carried out: look before repeating it"
        )
    return unreachable(f"{what} could not be sent: {reason}")
