"""INIT: the checks of `checks`, once in a term, in a thread of their own; what they find goes to the bulletin.

New runs wait for it, and start it when nobody has. Workers, and a run that is taken up again, never do.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from services.common.errors import MaheError
from services.master.shell.bulletin import Bulletin
from services.master.shell.checks import Check, Look, looked

HOLD_MS = 4_000  # a run waits so long, then it is refused: less than a console, or `mahe`, waits for the answer
HELD_MAX = 64  # commands that wait
STOP_S = 2.0
KINDS = {"ok": "INIT", "warn": "WARN", "error": "ERROR"}

Asked = tuple[str, Any]
"""A command that waits: (cmd_id, command)."""


class Initialisation:
    """Belongs to the loop. Each check's result leaves another thread by `put`, and is to be given to `take`.

    `clock` is monotonic, in ms. Without checks it is done from the first.
    """

    def __init__(
        self,
        bulletin: Bulletin,
        checks: Mapping[str, Look],
        put: Callable[[Check], object],
        clock: Callable[[], int],
    ) -> None:
        self._bulletin, self._checks, self._put, self._clock = bulletin, checks, put, clock
        self._found: list[Check] = []
        self._held: dict[str, tuple[int, Any]] = {}  # by cmd_id: since when, what
        self._thread: threading.Thread | None = None
        bulletin.init = self.view()

    @property
    def done(self) -> bool:
        """Whether all checks have been made."""
        return len(self._found) == len(self._checks)

    def view(self) -> dict[str, Any]:
        """For the console: `state` is waiting, running or done; the checks so far."""
        state = "done" if self.done else "waiting" if self._thread is None else "running"
        checks = [{"code": one.code, "level": one.level, "values": one.values, "text": one.text} for one in self._found]
        return {"state": state, "checks": checks}

    def begin(self) -> None:
        """Make the checks, unless that has been asked for before."""
        if self.done or self._thread is not None:
            return
        self._thread = threading.Thread(target=self._look, name="init", daemon=True)
        self._post("INIT", "", {"code": "BEGIN"})
        self._thread.start()

    def hold(self, cmd_id: str, command: Any) -> None:
        """Keep a command until INIT is done, and begin it. Raises MaheError when too many wait already."""
        self.begin()
        if len(self._held) >= HELD_MAX:
            raise self._not_ready()
        self._held[cmd_id] = (self._clock(), command)

    def check(self) -> None:
        """Raises MaheError NOT_READY when no run may start, because of what INIT has found."""
        for one in self._found:
            if one.blocks:
                raise MaheError(f"INIT has found that {one.text}", code="NOT_READY")

    def take(self, check: Check) -> list[Asked]:
        """One check is made; with the last one, the commands that waited, in order."""
        self._found.append(check)
        self._post(KINDS[check.level], check.text, {"code": check.code, **check.values})
        if not self.done:
            return []
        levels = [one.level for one in self._found]
        warnings, errors = levels.count("warn"), levels.count("error")
        text = f"ready (warnings: {warnings}, errors: {errors})" if warnings or errors else "ready"
        self._post("INIT", text, {"code": "READY", "warnings": warnings, "errors": errors})
        held, self._held = self._held, {}
        return [(cmd_id, command) for cmd_id, (_, command) in held.items()]

    def overdue(self) -> list[tuple[str, MaheError]]:
        """The commands that have waited too long, each with what to answer."""
        now_ms = self._clock()
        late = [cmd_id for cmd_id, (since_ms, _) in self._held.items() if now_ms - since_ms >= HOLD_MS]
        for cmd_id in late:
            del self._held[cmd_id]
        return [(cmd_id, self._not_ready()) for cmd_id in late]

    def stop(self) -> None:
        """The master ends; a check that a disk holds up is left behind."""
        if self._thread is not None:
            self._thread.join(STOP_S)

    def _look(self) -> None:
        for what, look in self._checks.items():
            self._put(looked(what, look))

    def _not_ready(self) -> MaheError:
        waits_for = ", ".join(list(self._checks)[len(self._found) :])
        return MaheError(f"INIT is not done, it still checks {waits_for}; try again in a moment", code="NOT_READY")

    def _post(self, kind: str, text: str, data: dict[str, Any]) -> None:
        self._bulletin.init = self.view()
        self._bulletin.post(kind, text, {**data, "init": self._bulletin.init})
