"""What every open page shares: the mirror, the tally, the state of the link, and one bounded queue per event stream.

Everything here runs in the event loop; the link's thread reaches it through `call_soon_threadsafe`.
"""

import asyncio
import json
from collections import deque
from dataclasses import dataclass
from typing import Any, Literal

from services.common.protocol.control import Event
from services.common.protocol.reasons import Reason, text_of, told
from services.console.mirror import Mirror
from services.console.problems import Problem
from services.console.tally import Tally

STREAMS_MAX = 64
QUEUE_MAX = 1_000
RETRY_MS = 1_000  # what a reader waits before it connects again

LinkWord = Literal["live", "stale", "connecting"]


@dataclass(frozen=True)
class LinkState:
    """Live, stale since a time, or connecting, with its reason. `since_ms`: wall clock, for display only."""

    state: LinkWord
    since_ms: int
    reason: Reason | None  # None: it is live

    @property
    def text(self) -> str:
        """The reason in English; empty when it is live."""
        return text_of(self.reason)

    def facts(self) -> dict[str, Any]:
        """As the API tells it."""
        return {"state": self.state, "since_ms": self.since_ms, "reason": self.text, "reason_said": told(self.reason)}


def frame(event: str, data: Any, event_id: str | None = None) -> bytes:
    """One server-sent event (HTML standard 9.2). JSON never holds a line break, so one data line is enough."""
    head = f"id: {event_id}\n" if event_id is not None else ""
    return f"{head}event: {event}\ndata: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


def event_frame(event: Event) -> bytes:
    """An event of the master; its id is `term:seq`."""
    body = event.model_dump(include={"time_ms", "kind", "text", "data"})
    return frame("event", body, f"{event.term}:{event.seq}")


RESYNC = frame("resync", {"get": "/api/v1/state"})
BYE = f"retry: {RETRY_MS}\n".encode() + frame("bye", {"reason": "the console stops"})


class Subscription:
    """The queue of one stream. A reader that falls QUEUE_MAX behind loses the queue and is told to resync."""

    def __init__(self) -> None:
        self._items: deque[bytes] = deque()
        self._filled = asyncio.Event()

    def offer(self, item: bytes) -> None:
        """Queue one frame, never waiting."""
        if len(self._items) >= QUEUE_MAX:
            self._items.clear()
            self._items.append(RESYNC)
        self._items.append(item)
        self._filled.set()

    async def take(self, timeout_s: float) -> list[bytes]:
        """All that is queued, as soon as there is something; empty after `timeout_s` of silence."""
        try:
            await asyncio.wait_for(self._filled.wait(), timeout_s)
        except TimeoutError:
            return []
        items = list(self._items)
        self._items.clear()
        self._filled.clear()
        return items


class Hub:
    """The shared state, and who listens to it."""

    def __init__(self, link: LinkState) -> None:
        self.mirror = Mirror()
        self.tally = Tally()
        self.link = link
        self.closing = False
        self.snapshot_came = asyncio.Event()  # for one reader, who clears it
        self._subscriptions: dict[int, Subscription] = {}

    @property
    def streams(self) -> int:
        """How many streams are open."""
        return len(self._subscriptions)

    def refuse_stream(self) -> Problem | None:
        """Why no stream can be opened now; None when one can."""
        if self.closing:
            return Problem("the console stops; try again when it is back", code="STOPPING")
        if self.streams >= STREAMS_MAX:
            return Problem(
                f"{self.streams} event streams are open, allowed are {STREAMS_MAX}; close other tabs",
                code="STREAMS_FULL",
            )
        return None

    def subscribe(self) -> Subscription:
        """A new stream's queue; whoever takes one unsubscribes in the end."""
        subscription = Subscription()
        self._subscriptions[id(subscription)] = subscription
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """The stream has ended."""
        self._subscriptions.pop(id(subscription), None)

    def on_link(self, link: LinkState) -> None:
        """The link to the master changed."""
        self.link = link
        self._tell(frame("link", link.facts()))

    def on_snapshot(self, term: int, seq: int, snapshot: dict[str, Any]) -> None:
        """A whole state came: what the streams had is no longer a base for deltas."""
        self.mirror.replace(term, seq, snapshot)
        self.tally.look(term, snapshot)
        self.snapshot_came.set()
        self._tell(RESYNC)

    def on_event(self, event: Event) -> None:
        """The next event of the master."""
        if self.mirror.apply(event):
            self.tally.look(event.term, self.mirror.snapshot or {})
            self._tell(event_frame(event))

    def close(self) -> None:
        """Say goodbye on every stream and take no new one."""
        self.closing = True
        self._tell(BYE)

    def _tell(self, item: bytes) -> None:
        for subscription in self._subscriptions.values():
            subscription.offer(item)
