"""A file for whoever helps with a fault."""

from fastapi import APIRouter, Request, Response

from services.console.context import ConsoleDep
from services.console.support import SupportBundle, bundle_name, make_bundle

router = APIRouter(tags=["support"])


@router.get(
    "/support-bundle",
    operation_id="getSupportBundle",
    summary="State, latest log lines, settings and versions in one file, without secrets",
    responses={200: {"description": "To be saved under the name that content-disposition tells"}},
)
async def get_support_bundle(console: ConsoleDep, request: Request, response: Response) -> SupportBundle:
    """Also while the master does not answer. Tokens, keys and join strings read `(hidden)`, user folders `~`."""
    bundle = make_bundle(console, str(request.app.version))
    response.headers["content-disposition"] = f'attachment; filename="{bundle_name(bundle.made_at_ms)}"'
    return bundle
