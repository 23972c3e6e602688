"""Nobody but this console's own page gets in: every route x foreign Host, foreign Origin, no token, wrong type."""

import httpx
import pytest

from services.console.guard import BODY_BYTES_MAX
from services.console.tests.conftest import RunningConsole

PATHS = {
    "/api/v1/state": ["GET"],
    "/api/v1/runs": ["GET", "POST"],
    "/api/v1/runs/{run}": ["GET"],
    "/api/v1/runs/{run}/pause": ["POST"],
    "/api/v1/runs/{run}/resume": ["POST"],
    "/api/v1/runs/{run}/stop": ["POST"],
    "/api/v1/runs/{run}/rounds": ["GET"],
    "/api/v1/runs/{run}/checkpoints": ["GET"],
    "/api/v1/runs/{run}/checkpoints/{version}": ["GET"],
    "/api/v1/datasets": ["GET"],
    "/api/v1/folders": ["GET"],
    "/api/v1/presets": ["GET"],
    "/api/v1/estimate": ["POST"],
    "/api/v1/workers": ["GET", "DELETE"],
    "/api/v1/workers/{worker}": ["DELETE"],
    "/api/v1/join-strings": ["GET", "POST"],
    "/api/v1/join-strings/{number}": ["DELETE"],
    "/api/v1/events": ["GET"],
    "/api/v1/ui-ready": ["POST"],
}
API = [(method, path) for path, methods in PATHS.items() for method in methods]
OPEN = [("GET", "/"), ("GET", "/static/js/main.js"), ("GET", "/healthz"), ("GET", "/readyz")]
FOREIGN_ORIGINS = ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"]


def refused(response: httpx.Response, status: int, code: str) -> None:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] == code
    assert response.headers["x-content-type-options"] == "nosniff"


def filled(path: str) -> str:
    return path.replace("{run}", "run-7").replace("{worker}", "w1").replace("{number}", "3")


def test_the_table_holds_every_route(client: httpx.Client) -> None:
    schema = client.get("/api/v1/openapi.json").json()
    found = {(method.upper(), path) for path, methods in schema["paths"].items() for method in methods}
    assert found == {*API, ("GET", "/healthz"), ("GET", "/readyz")}
    operations = [one["operationId"] for methods in schema["paths"].values() for one in methods.values()]
    assert len(set(operations)) == len(operations)


def test_every_route_refuses_strangers(client: httpx.Client, console: RunningConsole) -> None:
    port = console.host.rpartition(":")[2]
    for method, path in [*API, *OPEN, ("GET", "/no/such/path"), ("POST", "/"), ("OPTIONS", "/api/v1/runs")]:
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil.example:{port}", ""):
            refused(client.request(method, filled(path), headers={"Host": host}), 403, "HOST_REJECTED")
        for origin in FOREIGN_ORIGINS:
            refused(client.request(method, filled(path), headers={"Origin": origin}), 403, "ORIGIN_REJECTED")
        for site in ("cross-site", "same-site"):
            refused(client.request(method, filled(path), headers={"Sec-Fetch-Site": site}), 403, "ORIGIN_REJECTED")


def test_every_api_route_wants_the_token(client: httpx.Client, console: RunningConsole) -> None:
    for method, path in [*API, ("GET", "/api/v1/openapi.json"), ("GET", "/api"), ("GET", "/api/v1/nothing")]:
        for token in ("", "x" * 43, console.token[:-1], console.token + "x"):
            refused(client.request(method, filled(path), headers={"X-MAHE-Token": token}), 403, "TOKEN_REJECTED")
    with httpx.Client(base_url=console.url, trust_env=False) as bare:
        refused(bare.get("/api/v1/state"), 403, "TOKEN_REJECTED")
        assert bare.get("/healthz").status_code == 200


@pytest.mark.parametrize("given", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_every_api_route_refuses_another_content_type(client: httpx.Client, given: str) -> None:
    for method, path in API:
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
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
