"""Nobody but this console's own page gets in: every route x foreign Host, foreign Origin, no token, wrong type."""

import re
from typing import Any

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from services.common.host.logs import Log
from services.console.app import build
from services.console.context import Console
from services.console.guard import BODY_BYTES_MAX
from services.console.hub import Hub, LinkState
from services.console.tests.conftest import RunningConsole

# Without a token, and telling nothing but the page, what the API is, and figures that name nobody.
OPEN = {"/", "/static/{path:path}", "/docs", "/docs/openapi.json", "/healthz", "/readyz", "/metrics"}
STRANGE = [("GET", "/no/such/path"), ("POST", "/"), ("OPTIONS", "/api/v1/runs"), ("GET", "/api"), ("GET", "/api/v1/no")]
FOREIGN_HOSTS = [  # R20, and R21: names that begin, or end, like one of ours
    *("evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1.evil.example:{port}", "", "127.0.0.1:{port}0"),
    *("localhost.evil.example", "localhost.evil.example:{port}", "localhost:{port}.evil.example", "localhost.:{port}"),
    *(
        "evil.example:{port}@127.0.0.1:{port}",
        "xlocalhost:{port}",
        "127.1:{port}",
        "2130706433:{port}",
        "0.0.0.0:{port}",
    ),
]
FOREIGN_ORIGINS = [
    "http://evil.example",
    "null",
    "https://127.0.0.1",
    "http://127.0.0.1:1",
    "http://localhost.evil.example",
]


def refused(response: httpx.Response, status: int, code: str) -> None:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    if response.request.method != "HEAD":  # whose answer has no body
        assert response.json()["code"] == code
    assert response.headers["x-content-type-options"] == "nosniff"


def routes() -> list[tuple[str, str]]:
    """(method, path) of every route of the application: a new one is in every test here by itself."""
    nothing: Any = None
    console = Console(Hub(LinkState("connecting", 0, None)), nothing, "token", nothing, nothing)
    app: Any = build(console, frozenset(), Log("console"))._app
    found = [(method, str(one.path)) for one in iter_route_contexts(app.routes) for method in sorted(one.methods or ())]
    assert ("GET", "/api/v1/state") in found
    return found


def filled(path: str) -> str:
    """A path that leads to this route, if the guard lets it through."""
    return re.sub(r"\{\w+(:path)?\}", "7", path)


def test_the_routes_are_those_that_the_api_describes_and_the_page(client: httpx.Client) -> None:
    schema = client.get("/api/v1/openapi.json").json()
    described = {(method.upper(), path) for path, methods in schema["paths"].items() for method in methods}
    page = {("GET", path) for path in (*OPEN, "/api/v1/openapi.json")}
    assert {route for route in routes() if route[0] != "HEAD"} == described | page
    operations = [one["operationId"] for methods in schema["paths"].values() for one in methods.values()]
    assert len(set(operations)) == len(operations)
    assert {path for _, path in routes() if not path.startswith("/api/")} == OPEN


def test_every_route_refuses_strangers(client: httpx.Client, console: RunningConsole) -> None:
    port = console.host.rpartition(":")[2]
    for method, path in [*routes(), *STRANGE]:
        for host in FOREIGN_HOSTS:
            headers = {"Host": host.format(port=port)}
            refused(client.request(method, filled(path), headers=headers), 403, "HOST_REJECTED")
        for origin in FOREIGN_ORIGINS:
            refused(client.request(method, filled(path), headers={"Origin": origin}), 403, "ORIGIN_REJECTED")
        for site in ("cross-site", "same-site"):
            refused(client.request(method, filled(path), headers={"Sec-Fetch-Site": site}), 403, "ORIGIN_REJECTED")


def test_every_route_but_the_open_ones_wants_the_token(client: httpx.Client, console: RunningConsole) -> None:
    guarded = [route for route in [*routes(), *STRANGE] if route[1].startswith("/api")]
    assert len(guarded) > len(OPEN)
    with httpx.Client(base_url=console.url, trust_env=False) as bare:
        for method, path in guarded:
            refused(bare.request(method, filled(path)), 403, "TOKEN_REJECTED")
            for token in ("", "x" * 43, console.token[:-1], console.token + "x"):
                answer = bare.request(method, filled(path), headers={"X-MAHE-Token": token})
                refused(answer, 403, "TOKEN_REJECTED")
        assert bare.get("/healthz").status_code == 200


@pytest.mark.parametrize("given", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_every_route_refuses_another_content_type(client: httpx.Client, given: str) -> None:
    for method, path in routes():
        response = client.request(method, filled(path), content=b"{}", headers={"Content-Type": given})
        refused(response, 415, "CONTENT_TYPE")


def test_a_body_without_a_type_is_refused(client: httpx.Client) -> None:
    refused(client.post("/api/v1/runs", content=b"{}"), 415, "CONTENT_TYPE")


def test_a_large_body_is_refused_with_and_without_a_length(client: httpx.Client) -> None:
    body = b" " * (BODY_BYTES_MAX + 1)
    headers = {"Content-Type": "application/json"}
    refused(client.post("/api/v1/runs", content=body, headers=headers), 413, "BODY_TOO_LARGE")
    refused(client.post("/api/v1/runs", content=iter([body]), headers=headers), 413, "BODY_TOO_LARGE")


def test_its_own_page_is_let_in(client: httpx.Client, console: RunningConsole) -> None:
    port = console.host.rpartition(":")[2]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", f"LOCALHOST:{port}"):
        headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
        assert client.get("/api/v1/state", headers=headers).status_code == 200


def test_a_link_elsewhere_may_open_the_page_and_nothing_else(client: httpx.Client) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.get("/", headers=link).status_code == 200
    refused(client.get("/healthz", headers=link), 403, "ORIGIN_REJECTED")
    refused(client.get("/", headers={**link, "Sec-Fetch-Dest": "iframe"}), 403, "ORIGIN_REJECTED")
    refused(client.get("/", headers={**link, "Sec-Fetch-Mode": "no-cors"}), 403, "ORIGIN_REJECTED")


def test_no_answer_lets_another_origin_read_it(client: httpx.Client, console: RunningConsole) -> None:
    for path in ("/", "/static/js/main.js", "/healthz", "/api/v1/state", "/nothing"):
        headers = client.get(path, headers={"Origin": f"http://{console.host}"}).headers
        assert "access-control-allow-origin" not in headers
        assert headers["cross-origin-resource-policy"] == "same-origin"
        policy = headers["content-security-policy"]
        assert re.match(r"default-src 'none'; script-src 'self' 'sha256-[\w+/=]+'; style-src 'self';", policy)
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
