"""The application: routes, error answers, the page. Builds only; `server.py` runs it."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from services.common.host.logs import Log
from services.console import page
from services.console.codes import status_of
from services.console.context import PROBLEMS, Console
from services.console.guard import Guard
from services.console.problems import MEDIA_TYPE, Problem, problem_json
from services.console.routes import (
    datasets,
    estimate,
    events,
    folders,
    health,
    join_strings,
    presets,
    runs,
    state,
    support,
    ui_ready,
    workers,
)

API = "/api/v1"
VERSION = "0.1.0"


def build(console: Console, hosts: frozenset[str], log: Log) -> Guard:
    """The whole ASGI application behind its guard; the link runs as long as its lifespan."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        console.link.start(asyncio.get_running_loop())
        initiating = asyncio.create_task(console.init.run())
        yield
        initiating.cancel()
        await console.link.stop()

    app = FastAPI(
        title="MAHE console",
        version=VERSION,
        description="Everything the page does. Each request under /api carries the header X-MAHE-Token.",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # they load scripts from a CDN
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.console = console
    for module in (state, runs, estimate, presets, workers, datasets, folders, join_strings, events, support, ui_ready):
        app.include_router(module.router, prefix=API, responses=PROBLEMS)
    app.include_router(health.router)
    _add_page(app, console.token)
    _add_errors(app, log)
    return Guard(app, hosts, console.token, log)


def _add_page(app: FastAPI, token: str) -> None:
    assets = page.load_assets()

    @app.get("/", include_in_schema=False)
    async def get_page() -> Response:
        return page.index(token)

    @app.get("/static/{path:path}", include_in_schema=False)
    async def get_asset(path: str, request: Request) -> Response:
        asset = assets.get(path)
        if asset is None:
            raise HTTPException(404)
        return page.asset_response(asset, request)


def _add_errors(app: FastAPI, log: Log) -> None:
    @app.exception_handler(Problem)
    async def on_problem(request: Request, problem: Problem) -> Response:
        return _answer(request, problem.code, problem.sentence, problem.errors)

    @app.exception_handler(RequestValidationError)
    async def on_invalid(request: Request, error: RequestValidationError) -> Response:
        faults = [_fault(one) for one in error.errors()]
        detail = "; ".join(map(_sentence, faults[:5]))
        return _answer(request, "VALIDATION", detail, faults)

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> Response:
        code = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}.get(error.status_code, "HTTP")
        detail = f"{request.method} {request.url.path[:200]}: {error.detail}; the paths are in {API}/openapi.json"
        return _answer(request, code, detail, status=error.status_code, headers=error.headers)

    @app.exception_handler(Exception)
    async def on_fault(request: Request, error: Exception) -> Response:
        log("ERROR", f"{request.method} {request.url.path[:200]}: {type(error).__name__}: {error}")
        return _answer(request, "INTERNAL", "a fault in the console; its log has a line about it")


def _fault(error: Mapping[str, Any]) -> dict[str, str]:
    """One field, without the part of the request it came in."""
    where = [str(part) for part in error["loc"] if part not in {"body", "query", "path", "header"}]
    if error["type"] == "json_invalid":
        where = []
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "value_error" and not where:  # a rule of ours over several fields: it begins with the first
        where = [message.partition(" ")[0]]
    return {"field": ".".join(where), "code": str(error["type"]), "message": message}


def _sentence(fault: Mapping[str, str]) -> str:
    field, message = fault["field"] or "the body", fault["message"]
    return message if message.startswith(f"{field} ") else f"{field}: {message}"


def _answer(
    request: Request,
    code: str,
    detail: str,
    errors: Sequence[Mapping[str, Any]] = (),
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    status = status or status_of(code)
    body = problem_json(status, code, detail, request.url.path, errors)
    return Response(body, status, headers, MEDIA_TYPE)
