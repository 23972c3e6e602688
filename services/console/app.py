"""The application: routes, error answers, the page. Builds only; `server.py` runs it."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from services.common.host.logs import Log
from services.console import page
from services.console.codes import status_of
from services.console.context import OF_THE_GUARD, Console
from services.console.guard import Guard
from services.console.openapi import DESCRIPTION, TAGS, describe
from services.console.problems import MEDIA_TYPE, Problem, problem_json
from services.console.routes import (
    datasets,
    estimate,
    events,
    folders,
    health,
    join_strings,
    metrics,
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
        description=DESCRIPTION,
        openapi_tags=TAGS,
        openapi_url=None,  # and so no docs that load scripts from a CDN: both are served here, see _add_page
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.console = console
    for module in (state, runs, estimate, presets, workers, datasets, folders, join_strings, events, support, ui_ready):
        app.include_router(module.router, prefix=API, responses=OF_THE_GUARD)
    app.include_router(health.router)
    app.include_router(metrics.router)
    description = describe(app)
    _add_page(app, console.token, json.dumps(description, ensure_ascii=False).encode())
    _add_errors(app, log, _allowed_methods(description))
    return Guard(app, hosts, console.token, log, console.hub.tally.refuse)


def _add_page(app: FastAPI, token: str, description: bytes) -> None:
    assets = page.load_assets()
    described = page.asset(description, ".json")

    @app.get("/", include_in_schema=False)
    async def get_page() -> Response:
        return page.index(token)

    @app.get("/docs", include_in_schema=False)
    async def get_docs(request: Request) -> Response:
        return page.asset_response(assets[page.DOCS], request)

    @app.get(f"{API}/openapi.json", include_in_schema=False)
    @app.get("/docs/openapi.json", include_in_schema=False)
    async def get_description(request: Request) -> Response:
        return page.asset_response(described, request)

    @app.get("/static/{path:path}", include_in_schema=False)
    async def get_asset(path: str, request: Request) -> Response:
        asset = assets.get(path)
        if asset is None:
            raise HTTPException(404)
        return page.asset_response(asset, request)


def _add_errors(app: FastAPI, log: Log, allowed: list[tuple[re.Pattern[str], str]]) -> None:
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
        if error.status_code == 400:  # FastAPI's word for bytes that are no text, or brackets without an end
            fault = {"field": "", "code": "json_invalid", "message": "not JSON in UTF-8, or nested too deep"}
            return _answer(request, "VALIDATION", _sentence(fault), [fault])
        code = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}.get(error.status_code, "HTTP")
        headers = error.headers
        if error.status_code == 405:
            headers = {"allow": next((methods for path, methods in allowed if path.match(request.url.path)), "GET")}
        detail = f"{request.method} {request.url.path[:200]}: {error.detail}; the paths are in {API}/openapi.json"
        return _answer(request, code, detail, status=error.status_code, headers=headers)

    @app.exception_handler(Exception)
    async def on_fault(request: Request, error: Exception) -> Response:
        log("ERROR", f"{request.method} {request.url.path[:200]}: {type(error).__name__}: {error}")
        return _answer(request, "INTERNAL", "a fault in the console; its log has a line about it")


def _allowed_methods(description: Mapping[str, Any]) -> list[tuple[re.Pattern[str], str]]:
    """For the header Allow, the methods of each path: a route knows only its own. The page's paths take GET alone."""
    paths = description["paths"].items()
    return [(compile_path(path)[0], ", ".join(sorted(map(str.upper, methods)))) for path, methods in paths]


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
    request.app.state.console.hub.tally.refuse(code)
    status = status or status_of(code)
    body = problem_json(status, code, detail, request.url.path, errors)
    return Response(body, status, headers, MEDIA_TYPE)
