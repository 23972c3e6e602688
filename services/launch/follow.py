"""Follows one run to its end: prints its events, looks at its state, and says how it ended."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from services.common.errors import MaheError
from services.launch.console_client import Event, EventStream, Link
from services.launch.lines import say

QUIET = {"PROGRESS"}  # droppable, for the page
STATE_S = 1.0
STUCK_S = 60.0  # with nobody there to start one more worker
LINK_LOST_S = 20.0
UNSEEN_S = 20.0  # a console may show a new run a little later
DRAIN_S = 0.5
EVALUATION_S = 15.0


@dataclass(frozen=True)
class Ending:
    """How a run ended: `finished` when it closed all its rounds or had enough, and how in any case."""

    finished: bool
    reason: str
    loss: float | None
    accuracy: float | None


class Follower:
    """Follows the run `run`. `watch` raises when it is no use; `attended`: somebody sits there and can help."""

    def __init__(self, link: Link, run: str, watch: Callable[[], None], *, attended: bool) -> None:
        self._link = link
        self._run = run
        self._watch = watch
        self._attended = attended
        self._looked = self._answered = self._seen = time.monotonic()
        self._last: dict[str, Any] = {}  # the run when it was seen last
        self._ended: float | None = None
        self._waiting_since: float | None = None

    def follow(self, events: EventStream) -> Ending:
        """Print until the end. Raises MaheError when the console is gone, or nothing will come any more."""
        while True:
            self._watch()
            event = events.next(STATE_S / 4)
            self._show(event)
            if time.monotonic() - self._looked >= STATE_S or (event is not None and event.kind == "RUN"):
                ending = self._look()
                if ending is not None:
                    self._drain(events)
                    return ending

    def _look(self) -> Ending | None:
        self._looked = time.monotonic()
        try:
            run = self._link.snapshot().get("run") or {}
        except MaheError:
            if self._looked - self._answered > LINK_LOST_S:
                raise
            return None
        self._answered = self._looked
        if run.get("id") != self._run:
            return self._look_elsewhere(str(run.get("id") or ""))
        self._seen, self._last = self._looked, run
        phase, reason = str(run.get("phase")), str(run.get("reason") or "")
        if run.get("finished") or phase in {"STOPPED", "FAILED"}:
            return ending_of(run) if self._measured(run) else None
        self._check_stuck(phase, reason)
        return None

    def _look_elsewhere(self, other: str) -> Ending | None:
        """The console shows `other`: our run is not there yet, or was replaced, which happens only after its end."""
        unseen = self._looked - self._seen > UNSEEN_S
        if other and (self._last or unseen):
            try:
                ended = self._link.get(f"/api/v1/runs/{self._run}")
            except MaheError:
                ended = {}
            ending = ending_of({**self._last, **ended})
            advice = "watch that one on the page" if self._attended else "start the demo again with --stay to see both"
            reason = f"run {self._run} was replaced by run {other}; {advice}"
            return ending if ending.finished else Ending(False, reason, ending.loss, ending.accuracy)
        if unseen:
            raise MaheError(f"the console does not show run {self._run}; look at the master's log", code="RUN_LOST")
        return None

    def _measured(self, run: dict[str, Any]) -> bool:
        """Whether the last version is evaluated (that may come after the end), or it is no use to wait for it."""
        self._ended = self._ended or self._looked
        version = (run.get("last_eval") or {}).get("version", 0)
        return version >= run.get("version", 0) or self._looked - self._ended > EVALUATION_S

    def _check_stuck(self, phase: str, reason: str) -> None:
        if phase != "WAITING" or self._attended:
            self._waiting_since = None
        elif self._waiting_since is None:
            self._waiting_since = self._looked
        elif self._looked - self._waiting_since > STUCK_S:
            raise MaheError(f"the run has waited {STUCK_S:.0f} s, and nobody is here to help: {reason}", code="STUCK")

    @staticmethod
    def _drain(events: EventStream) -> None:
        """Events that the end overtook."""
        while (event := events.next(DRAIN_S)) is not None:
            Follower._show(event)

    @staticmethod
    def _show(event: Event | None) -> None:
        if event is not None and event.text and event.kind not in QUIET:  # one without text only moves the page
            say(event.kind, event.text)


def ending_of(run: dict[str, Any]) -> Ending:
    """The ending that the state of a run tells."""
    evaluated = run.get("last_eval") or {}
    reason = str(run.get("reason") or run.get("phase"))
    return Ending(bool(run.get("finished")), reason, evaluated.get("loss"), evaluated.get("accuracy"))
