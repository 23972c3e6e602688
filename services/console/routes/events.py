"""The event stream: server-sent events with ids, resumable, never waiting for a slow reader.

Events: `hello` (at once), `event` (one of the master's, with id `term:seq`), `link` (the link changed), `resync` (get
`/state` again), `bye` (the console stops). A comment line every HEARTBEAT_S shows that the stream lives.
"""

import re
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from services.console.context import ConsoleDep, problems, raw
from services.console.hub import BYE, RESYNC, Hub, event_frame, frame
from services.console.problems import Problem

HEARTBEAT_S = 15.0
HEARTBEAT = b": \n\n"
_ID = re.compile(r"^(\d{1,16}):(\d{1,16})$")
router = APIRouter(tags=["events"])


@router.get(
    "/events",
    operation_id="streamEvents",
    summary="What happens, as server-sent events",
    response_class=Response,
    responses=raw("text/event-stream", "Server-sent events without an end") | problems(422, 503),
)
async def stream_events(
    console: ConsoleDep,
    after: Annotated[str | None, Query(description="Id of the last event known, `term:seq`")] = None,
    last_event_id: Annotated[str | None, Header(description="The same; it goes before `after`")] = None,
) -> Response:
    """Without an id: from now on. With one: from there, or `resync` when that is too long ago."""
    resume = _parse(last_event_id or after)
    refusal = console.hub.refuse_stream()
    if refusal is not None:
        raise refusal
    return StreamingResponse(
        _stream(console.hub, resume),
        media_type="text/event-stream",
        headers={"x-accel-buffering": "no"},
    )


def _parse(text: str | None) -> tuple[int, int] | None:
    if not text:
        return None
    match = _ID.match(text)
    if match is None:
        fault = {"field": "after", "code": "EVENT_ID", "message": "two whole numbers, term:seq"}
        raise Problem(f"the event id is {text[:40]!r}, which is not term:seq", code="EVENT_ID", errors=[fault])
    return int(match[1]), int(match[2])


async def _stream(hub: Hub, resume: tuple[int, int] | None) -> AsyncGenerator[bytes, None]:
    if hub.refuse_stream() is not None:  # others came, or the console stops, since this was asked
        yield BYE
        return
    # No await between these: what is replayed is not queued, and what is queued is not replayed.
    subscription = hub.subscribe()
    start = _start(hub, resume)
    try:
        yield start
        while True:
            items = await subscription.take(HEARTBEAT_S)
            yield b"".join(items) or HEARTBEAT
            if BYE in items:
                return
    finally:
        hub.unsubscribe(subscription)


def _start(hub: Hub, resume: tuple[int, int] | None) -> bytes:
    hello = frame("hello", {"id": hub.mirror.id, "link": hub.link.facts(), "heartbeat_s": HEARTBEAT_S})
    if resume is None:
        return hello
    missed = hub.mirror.after(*resume)
    return hello + (RESYNC if missed is None else b"".join(event_frame(event) for event in missed))
