"""The console's copy of the master's state: the last snapshot with every later event applied, and the latest events.

Pure: no clock, no sockets, one owner (the event loop). The page applies the same events in the same way (`store.js`).
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from services.common.protocol.control import Event

EVENTS_KEPT_MAX = 10_000
HISTORY_MAX = 1_000
RECENT_LINES_MAX = 200

Dict = dict[str, Any]


class Mirror:
    """State as of event (`term`, `seq`), and a ring of the events up to it."""

    def __init__(self) -> None:
        self.snapshot: Dict | None = None
        self.term = 0
        self.seq = 0
        self._ring: deque[Event] = deque(maxlen=EVENTS_KEPT_MAX)

    @property
    def id(self) -> str | None:
        """`term:seq` of the newest event that is in the state; None before the first snapshot."""
        return None if self.snapshot is None else f"{self.term}:{self.seq}"

    def replace(self, term: int, seq: int, snapshot: Dict) -> None:
        """Take a whole state. What the ring holds of another term, or does not reach up to `seq`, is dropped."""
        newest = self._ring[-1] if self._ring else None
        if newest is not None and (newest.term, newest.seq) != (term, seq):
            self._ring.clear()
        self.term, self.seq, self.snapshot = term, seq, snapshot

    def apply(self, event: Event) -> bool:
        """Take the next event; False when it is old, of another term, or there is no state to apply it to."""
        if self.snapshot is None or event.term != self.term or event.seq <= self.seq:
            return False
        self.seq = event.seq
        self._ring.append(event)
        if isinstance(event.data.get("init"), dict):  # its lines are of several kinds
            self.snapshot["init"] = event.data["init"]
        change = _CHANGES.get(event.kind)
        if change is not None:
            change(self.snapshot, event.data)
        return True

    def after(self, term: int, seq: int) -> list[Event] | None:
        """The events after (term, seq), oldest first; None when some of them are no longer, or never were, here."""
        if self.snapshot is None or term != self.term or seq > self.seq:
            return None
        oldest = self._ring[0].seq if self._ring else self.seq + 1
        if seq < oldest - 1:
            return None
        return [event for event in self._ring if event.seq > seq]

    def recent(self, lines_max: int = RECENT_LINES_MAX) -> list[Event]:
        """The last events that are log lines (they have a text), oldest first."""
        lines: list[Event] = []
        for event in reversed(self._ring):
            if event.text:
                lines.append(event)
                if len(lines) == lines_max:
                    break
        return lines[::-1]


def _on_run(snapshot: Dict, data: Dict) -> None:
    before = snapshot.get("run") or {}
    if not data:
        return
    if before.get("id") != data.get("id"):
        snapshot["history"] = []
    snapshot["run"] = data


def _on_queue(snapshot: Dict, data: Dict) -> None:
    """The runs that wait, all of them, as they are now."""
    if isinstance(data.get("queue"), list):
        snapshot["queue"] = data["queue"]


def _on_round(snapshot: Dict, data: Dict) -> None:
    """A history row, new or again with its evaluation: merged by round, kept in order."""
    if "round" not in data:
        return
    history: list[Dict] = snapshot.setdefault("history", [])
    for at in range(len(history) - 1, -1, -1):
        if history[at]["round"] == data["round"]:
            history[at] = {**history[at], **data}
            return
        if history[at]["round"] < data["round"]:
            history.insert(at + 1, data)
            break
    else:
        history.insert(0, data)
    del history[:-HISTORY_MAX]


def _on_worker(snapshot: Dict, data: Dict) -> None:
    if "id" not in data:
        return
    workers: list[Dict] = snapshot.setdefault("workers", [])
    at = next((i for i, worker in enumerate(workers) if worker["id"] == data["id"]), None)
    if data.get("gone"):
        if at is not None:
            del workers[at]
    elif at is None:
        workers.append(data)
        workers.sort(key=lambda worker: str(worker["id"]))
    else:
        workers[at] = {**workers[at], **data}


def _on_progress(snapshot: Dict, data: Dict) -> None:
    """Part of the fields of some workers; one that is not known (any more) is left out."""
    workers: list[Dict] = snapshot.setdefault("workers", [])
    places = {worker["id"]: at for at, worker in enumerate(workers)}
    for part in data.get("workers", []):
        at = places.get(part.get("id"))
        if at is not None:
            workers[at] = {**workers[at], **part}


def _on_auth(snapshot: Dict, data: Dict) -> None:
    if isinstance(data.get("refused"), dict):
        snapshot["refused"] = data["refused"]


_CHANGES: dict[str, Callable[[Dict, Dict], None]] = {
    "RUN": _on_run,
    "QUEUE": _on_queue,
    "ROUND": _on_round,
    "WORKER": _on_worker,
    "PROGRESS": _on_progress,
    "AUTH": _on_auth,
}
