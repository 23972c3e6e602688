"""The whole state at once: where a page begins, and begins again after `resync`."""

from typing import Any

from fastapi import APIRouter

from services.console.answers.state import State
from services.console.context import ConsoleDep, told

router = APIRouter(tags=["state"])


@router.get(
    "/state",
    operation_id="getState",
    summary="The state as of event `id`, the link, the latest log lines",
    response_model=None,
    responses=told(State),
)
async def get_state(console: ConsoleDep) -> dict[str, Any]:
    """`snapshot` is null until the master has answered once; `link` says why. Go on with `/events?after=<id>`."""
    mirror = console.hub.mirror
    return {
        "link": console.hub.link.facts(),
        "id": mirror.id,
        "term": mirror.term,
        "seq": mirror.seq,
        "snapshot": mirror.snapshot,
        "recent": [
            {
                "id": f"{event.term}:{event.seq}",
                "time_ms": event.time_ms,
                "kind": event.kind,
                "text": event.text,
                "data": event.data if "code" in event.data else {},  # for a translation; the rest is in the state
            }
            for event in mirror.recent()
        ],
    }
