"""What the console is told: numbered events in a ring, a snapshot of everything, and rows of rounds. Used by the loop.

Log lines are the events that have a text. Progress of workers is gathered and told once a second.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from services.common.host.logs import clean_text
from services.common.protocol.control import Event
from services.master.core.coordinator import Coordinator
from services.master.core.view import state_view, worker_view
from services.master.shell.store import wall_ms

EVENTS_KEPT = 10_000
LEASES_KEPT = 50_000  # in all events together: a RUN event lists those of the open round
HISTORY_KEPT = 1_000
PROGRESS_EVERY_MS = 1_000
PROGRESS_WORKERS = 40  # per event: an event must fit a header, also when each has a long reason


@dataclass
class Bulletin:
    """One per master."""

    term: int
    log: Callable[[str, str], object]  # (kind, text)
    facts: dict[str, Any]  # about the master, constant
    coordinator: Coordinator
    init: dict[str, Any] = field(default_factory=dict)  # how far INIT is, and what it has found
    history: dict[int, dict[str, Any]] = field(default_factory=dict)  # rows of the current run by round
    created_ms: dict[str, int] = field(default_factory=dict)  # of the current run and of those that wait
    refused: int = 0
    refused_last: str = ""
    seq: int = 0
    events: deque[Event] = field(default_factory=deque)
    _leases: int = 0
    unsaved: list[tuple[int, str, str]] = field(default_factory=list)
    _progress: dict[str, tuple[object, ...]] = field(default_factory=dict)
    _progress_ms: int = 0

    def post(self, kind: str, text: str, data: dict[str, Any]) -> None:
        """Tell the console, and the log when there is a text."""
        text = clean_text(text)
        if kind == "ROUND":
            self.history[data["round"]] = data
            self.history.pop(data["round"] - HISTORY_KEPT, None)
        if kind == "RUN":
            data = self._dated(data)
        if kind == "QUEUE":
            data = {"queue": [self._dated(one) for one in data["queue"]]}
        self.seq += 1
        now = wall_ms()
        self._leases += _leases_in(data)
        while self.events and (len(self.events) == EVENTS_KEPT or self._leases > LEASES_KEPT):
            self._leases -= _leases_in(self.events.popleft().data)
        self.events.append(Event(term=self.term, seq=self.seq, time_ms=now, kind=kind, text=text, data=data))
        if text:
            self.log(kind, text)
            self.unsaved.append((now, kind, text))

    def refuse(self, sentence: str) -> None:
        """Somebody or something was refused: counted, shown, not an alarm."""
        self.refused += 1
        self.refused_last = clean_text(sentence)

    def start_run(self, run: str, rows: list[dict[str, Any]]) -> None:
        """Another run is the current one."""
        while next(iter(self.created_ms), run) != run:  # those before it are over
            self.created_ms.pop(next(iter(self.created_ms)))
        self.history = {row["round"]: row for row in rows}

    def snapshot(self, now_ms: int) -> dict[str, Any]:
        """Everything as of event `seq`."""
        view = state_view(self.coordinator.state, now_ms)
        if view["run"] is not None:
            view["run"] = self._dated(view["run"])
        view["queue"] = [self._dated(one) for one in view["queue"]]
        refused = {"count": self.refused, "last": self.refused_last}
        rows = [self.history[key] for key in sorted(self.history)]
        return {**view, "master": self.facts, "init": self.init, "refused": refused, "history": rows}

    def _dated(self, run: dict[str, Any]) -> dict[str, Any]:
        return {**run, "created_at_ms": self.created_ms.get(run["id"], 0)}

    def tick(self, now_ms: int) -> None:
        """Once a second: the workers whose figures changed."""
        if now_ms - self._progress_ms < PROGRESS_EVERY_MS:
            return
        self._progress_ms = now_ms
        state = self.coordinator.state
        changed = []
        for worker in state.by_id():
            figures = (worker.agent, worker.step, worker.samples_per_s, worker.link, worker.accepted_rounds)
            if self._progress.get(worker.id) != figures:
                self._progress[worker.id] = figures
                changed.append(worker_view(worker, state.run, now_ms))
        for start in range(0, len(changed), PROGRESS_WORKERS):
            self.post("PROGRESS", "", {"workers": changed[start : start + PROGRESS_WORKERS]})

    def after(self, seq: int) -> list[Event] | None:
        """Events after `seq`, or None when some of them are not kept any more."""
        if seq > self.seq or (self.events and seq < self.events[0].seq - 1):
            return None
        missing = self.seq - seq
        return [self.events[at] for at in range(len(self.events) - missing, len(self.events))]


def _leases_in(data: dict[str, Any]) -> int:
    return sum(len(round_["leases"]) for round_ in data.get("rounds_open", ()))
