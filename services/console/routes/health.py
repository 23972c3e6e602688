"""For whoever watches the process: alive, and ready. Without a token, and telling nothing but that."""

from typing import Any

from fastapi import APIRouter, Response

from services.console.answers.health import Health, Readiness
from services.console.context import OF_THE_GUARD, ConsoleDep, told

router = APIRouter(tags=["health"], responses=OF_THE_GUARD)


@router.get(
    "/healthz",
    operation_id="getHealth",
    summary="The process is alive",
    response_model=None,
    responses=told(Health),
)
async def get_health() -> dict[str, str]:
    """Depends on nothing."""
    return {"status": "alive"}


@router.get(
    "/readyz",
    operation_id="getReadiness",
    summary="The master answers, and INIT is done",
    response_model=None,
    responses=told(Readiness) | told(Readiness, 503),
)
async def get_readiness(console: ConsoleDep, response: Response) -> dict[str, Any]:
    """503 while a check fails; each says why."""
    link, init = console.hub.link, console.init
    checks: list[dict[str, Any]] = [
        {
            "name": "master_link",
            "ok": link.state == "live",
            **link.facts(),
        },
        {"name": "init", "ok": init.state == "done", "state": init.state, "reason": init.reason()},
    ]
    ready = all(check["ok"] for check in checks)
    response.status_code = 200 if ready else 503
    return {"ready": ready, "checks": checks}
