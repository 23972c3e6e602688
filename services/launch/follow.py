"""Follows one run to its end: shows its rounds and log lines, looks at its state, and says how it ended.

Rounds are shown in order and each once, also when the console was started again meanwhile: what the events lost is read
from the list of rounds. Not for how it looks (display.py).
"""

import time
from collections.abc import Callable
from typing import Any

from services.common.errors import MaheError
from services.launch.console_client import RESYNC, Event, EventStream, Link
from services.launch.display import Display, workers_text
from services.launch.ending import Ending, ending_of
from services.launch.rounds import Ledger
from services.launch.summary import master_silence, run_of

QUIET = {"PROGRESS"}  # droppable, for the page
OURS = {"STUCK", "RUN_LOST"}  # errors that no waiting mends
STATE_S = 1.0
STUCK_S = 60.0  # with nobody there to start one more worker
LINK_LOST_S = 60.0
UNSEEN_S = 20.0  # a console may show a new run a little later
DRAIN_S = 0.5
DRAIN_ALL_S = 3.0
EVALUATION_S = 15.0


class Follower:
    """Follows the run `run`. `watch` raises when it is no use; `attended`: somebody sits there and can help."""

    def __init__(
        self,
        link: Link,
        run: str,
        watch: Callable[[], None],
        shown: Display,
        *,
        attended: bool,
        last: int | None = None,
    ) -> None:
        """`last`: the newest round that needs not be shown, of a run that goes on; None: the run is yet to begin."""
        self._link = link
        self._run = run
        self._watch = watch
        self._shown = shown
        self._attended = attended
        self._ledger = Ledger(last or 0)
        self._current = last is not None  # whether the events are about our run
        self._gap = False
        self._looked = self._answered = self._seen = time.monotonic()
        self._last: dict[str, Any] = {}  # the run when it was seen last
        self._ended: float | None = None
        self._waiting_since: float | None = None

    def follow(self, events: EventStream) -> Ending:
        """Show it until the end. Raises MaheError when the console is gone, or nothing will come any more."""
        try:
            while True:
                self._watch()
                event = events.next(STATE_S / 4)
                self._show(event)
                news = event is not None and event.kind in {"RUN", RESYNC}
                if news or time.monotonic() - self._looked >= STATE_S:
                    ending = self._look()
                    if ending is not None:
                        self._drain(events)
                        self._tell_rounds(everything=True)
                        return ending
        finally:
            self._shown.close()

    def _look(self) -> Ending | None:
        self._looked = time.monotonic()
        try:
            return self._examine()
        except MaheError as error:
            if error.code in OURS or self._looked - self._answered > LINK_LOST_S:
                raise
            self._shown.state(run_of({"id": self._run, **self._last}), "", error.sentence)
            return None

    def _examine(self) -> Ending | None:
        self._link = self._link.fresh()
        state = self._link.get("/api/v1/state")
        self._answered = self._looked
        snapshot = state.get("snapshot") or {}
        run = snapshot.get("run") or {}
        if any(waiting["id"] == self._run for waiting in snapshot.get("queue") or []):
            self._seen = self._looked
            return None
        if run.get("id") != self._run:
            return self._look_elsewhere(str(run.get("id") or ""))
        self._seen, self._last = self._looked, run
        if self._gap:
            self._catch_up()
            self._gap, self._current = False, True
        summary = run_of(run)
        self._shown.state(summary, workers_text(snapshot.get("workers") or []), master_silence(state["link"]))
        if summary.ended:
            return self._finish(run) if self._measured(run) else None
        self._check_stuck(summary.phase, summary.reason)
        return None

    def _look_elsewhere(self, other: str) -> Ending | None:
        """The console shows `other`: our run is not there yet, waits for its turn, or was replaced after its end."""
        unseen = self._looked - self._seen > UNSEEN_S
        if not other and not unseen:
            return None
        found = self._find()
        if found and not run_of(found).ended:
            self._seen = self._looked
            self._shown.state(run_of(found), "", "")
            return None
        if found or (other and (self._last or unseen)):
            ending = self._finish({**self._last, **found}) if found else ending_of(self._last)
            advice = "watch that one on the page" if self._attended else "start the demo again with --stay to see both"
            reason = f"run {self._run} was replaced by run {other}; {advice}"
            return ending if ending.finished else Ending(False, reason, ending.loss, ending.accuracy)
        if unseen:
            raise MaheError(f"the console does not show run {self._run}; look at the master's log", code="RUN_LOST")
        return None

    def _find(self) -> dict[str, Any]:
        try:
            return self._link.run(self._run)
        except MaheError as error:
            if error.code != "RUN_UNKNOWN":
                raise
            return {}

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

    def _finish(self, run: dict[str, Any]) -> Ending:
        """Nothing is lost, whatever became of the events."""
        self._catch_up()
        return ending_of(run)

    def _catch_up(self) -> None:
        for row in self._link.rounds(self._run, self._ledger.last):
            self._ledger.note(row)
        self._tell_rounds()

    def _drain(self, events: EventStream) -> None:
        """Events that the end overtook; another run may have begun, whose events have no end."""
        until = time.monotonic() + DRAIN_ALL_S
        while time.monotonic() < until and (event := events.next(DRAIN_S)) is not None:
            self._show(event)

    def _show(self, event: Event | None) -> None:
        if event is None:
            return
        if event.kind == RESYNC:
            self._gap = True
        elif event.kind == "ROUND":
            if self._current:
                self._ledger.note(event.data, event.text)
                if not self._gap:  # else what is missing comes first
                    self._tell_rounds()
        elif event.kind == "RUN" and "id" in event.data:
            self._current = event.data["id"] == self._run
            if self._current and event.text:
                self._shown.line(event.kind, event.text)
        elif event.text and event.kind not in QUIET:  # one without text only moves the page
            self._shown.line(event.kind, event.text)

    def _tell_rounds(self, *, everything: bool = False) -> None:
        for row, text in self._ledger.take(everything=everything):
            self._shown.round(self._run, row, text)
