"""Figures for Prometheus. Without a token, as a scraper has none: they name no PC, no run and no person."""

from fastapi import APIRouter, Request, Response

from services.console.context import OF_THE_GUARD, ConsoleDep, raw
from services.console.metrics import MEDIA_TYPE, Figures

router = APIRouter(tags=["health"], responses=OF_THE_GUARD)


@router.get(
    "/metrics",
    operation_id="getMetrics",
    summary="Figures for Prometheus",
    response_class=Response,
    responses=raw("text/plain", "Text format 0.0.4"),
)
async def get_metrics(console: ConsoleDep, request: Request) -> Response:
    """Counters count since this console started. Figures of the master are left out while it does not answer."""
    return Response(Figures(console, request.app.version).exposition(), media_type=MEDIA_TYPE)
