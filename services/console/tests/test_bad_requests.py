"""The catalogue of bad requests (R1 to R10, R19, R22, R23, R27): a clear refusal, nothing done, the next one answered.

The numbers are those of the catalogue in the research notes; R20 and R21 are in test_guard, R24 to R26 in test_events,
those about a cluster that trains in services/tests/system/test_refusals.py.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from services.console import slow_senders
from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole, wait_until
from services.console.tests.scripted_master import ScriptedMaster, answers
from services.console.tests.test_guard import filled, routes
from services.console.tests.wire import answer_to, connected, head, read_all, status_of

JSON = "Content-Type: application/json"
GOOD = b'{"dataset": "digits", "rounds": 3}'
BODIES: list[tuple[str, bytes]] = [
    ("R1 no bytes", b""),
    ("R1 blanks", b"  \n"),
    ("R2 half an object", b'{"rounds": 3'),
    ("R2 a form", b"rounds=3"),
    ("R2 no text", b"\xff\xfe\x00{"),
    *(("R3 " + word, word.encode()) for word in ("null", "[]", "NaN", "Infinity", "-Infinity", "3", '"x"', "true")),
    ("R4 100,000 deep", b"[" * 100_000),
    ("R4 30,000 deep", b'{"model":' + b"[" * 30_000 + b"]" * 30_000 + b"}"),
    ("R5 11 MB", b" " * 11_000_000),
    ("R8 unknown field", b'{"colour": "red"}'),
    ("R8 a field of objects", b'{"__proto__": {}, "constructor": 1}'),
    *(("R9 " + text, text.encode()) for text in ('{"rounds": "3"}', '{"uses": "3"}')),
    ("R10 2^63", b'{"rounds": 9223372036854775808, "uses": 9223372036854775808}'),
    ("R10 -2^63", b'{"rounds": -9223372036854775808, "uses": -9223372036854775808}'),
    ("R10 4,300 digits", b'{"seed": ' + b"9" * 4_400 + b', "uses": ' + b"9" * 4_400 + b"}"),
]
ASKING = ("list_", "get_")  # how the names of commands begin that change nothing


@pytest.fixture
def ready(live: httpx.Client, master: ScriptedMaster) -> Iterator[httpx.Client]:
    """The client; in the end nothing has changed, and a good request is carried out."""
    master.replies["list_datasets"] = answers({"items": cluster.DATASETS})
    master.replies["create_run"] = answers({"run": "run-8"})
    before = live.get("/api/v1/state").json()
    yield live
    assert live.get("/api/v1/state").json() == before
    assert not done(master), "a refused request was carried out"
    good = live.post("/api/v1/runs", content=GOOD, headers={"Content-Type": "application/json"})
    assert good.status_code == 201
    assert done(master) == ["create_run"]


def done(master: ScriptedMaster) -> list[str]:
    """The commands that change something."""
    return [command["name"] for command in master.commands if not command["name"].startswith(ASKING)]


def taking_a_body(client: httpx.Client) -> list[str]:
    """Paths of all operations with a body, as they are described."""
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    found = [path for path, methods in paths.items() if "requestBody" in methods.get("post", {})]
    assert {"/api/v1/runs", "/api/v1/estimate", "/api/v1/join-strings"} <= set(found)
    return found


def is_a_problem(response: httpx.Response, *statuses: int) -> None:
    """A refusal with a code and a sentence, and nothing of the inside in it."""
    assert response.status_code in statuses, (response.request.url, response.text[:300])
    problem = response.json()
    assert problem["code"] and problem["detail"]
    assert "Traceback" not in response.text and "services/" not in response.text


@pytest.mark.parametrize("body", [body for _, body in BODIES], ids=[case for case, _ in BODIES])
def test_a_bad_body_is_refused_wherever_one_is_taken(ready: httpx.Client, body: bytes) -> None:
    for path in taking_a_body(ready):
        response = ready.post(path, content=body, headers={"Content-Type": "application/json"})
        is_a_problem(response, 413 if len(body) > 65_536 else 422)


@pytest.mark.parametrize(
    ("case", "lines", "body", "statuses"),
    [
        ("R5 11 MB in pieces", ["Transfer-Encoding: chunked"], b"abcdef\r\n" + b" " * 200_000, {413, 0}),
        ("R6 none", [], GOOD, {422, 0}),  # answered before the rest is read: the answer may be lost on its way
        ("R6 less than is sent", ["Content-Length: 3"], GOOD, {422}),
        ("R6 more than is sent", ["Content-Length: 500"], GOOD, {400, 0}),
        ("R6 no number", ["Content-Length: abc"], GOOD, {400}),
        ("R6 negative", ["Content-Length: -1"], GOOD, {400}),
        ("R6 two", ["Content-Length: 34", "Content-Length: 3"], GOOD, {400}),
        ("R6 beyond all", ["Content-Length: 99999999999999999999"], GOOD, {400, 413}),
        ("R6 pieces cut", ["Transfer-Encoding: chunked"], b"22\r\n" + GOOD, {400, 0}),
        ("R6 pieces without a size", ["Transfer-Encoding: chunked"], b"zz\r\n" + GOOD, {400}),
        ("R6 both", ["Transfer-Encoding: chunked", "Content-Length: 3"], b"zz\r\n" + GOOD, {400}),
    ],
)
def test_a_length_that_lies_starts_nothing(
    ready: httpx.Client, console: RunningConsole, case: str, lines: list[str], body: bytes, statuses: set[int]
) -> None:
    request = head(console, "POST", "/api/v1/runs", JSON, *lines) + body
    assert status_of(answer_to(console, request, and_end=True)) in statuses, case


def test_r7_another_type_is_refused_wherever_a_body_is_taken(ready: httpx.Client) -> None:
    for path in taking_a_body(ready):
        for given in ("text/plain", "application/xml", "application/json5", "text/json", "*/*", "application/json/x"):
            is_a_problem(ready.post(path, content=GOOD, headers={"Content-Type": given}), 415)
        for encoded in ("gzip", "br"):
            headers = {"Content-Type": "application/json", "Content-Encoding": encoded}
            is_a_problem(ready.post(path, content=b"\x1f\x8b\x08", headers=headers), 422)


PARTS = [
    "..",
    "%2e%2e",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "..\\",
    "..%5c..%5c",
    "C:x",
    "C%3A%5Cx",
    "%2fabs",
    "a%23..%2f",
]
PARTS += ["%00", "run-7%00.npz", "x" * 5_000, "%ff%fe", "%E2%80%AE", "%0d%0aX-Evil:1", "~", "$(x)", "%", "%2"]


@pytest.mark.parametrize("part", PARTS, ids=[f"R19 {part[:24]}" for part in PARTS])
def test_a_path_leads_nowhere_else(ready: httpx.Client, console: RunningConsole, part: str) -> None:
    for method, path in [*routes(), ("GET", "/static/js/{x:path}"), ("GET", "/{x}"), ("GET", "/api/v1/{x}")]:
        if "{" not in path:
            continue
        target = filled(path).replace("7", part)
        answer = answer_to(console, head(console, method, target))
        assert status_of(answer) in {400, 404, 405, 422}, (method, target[:80], answer[:80])
        assert b"root:" not in answer and b"X-Evil" not in answer.partition(b"\r\n\r\n")[0]
    for target in (f"/static/{part}", f"//{part}", f"/{part}/../static/../token"):
        answer = answer_to(console, head(console, "GET", target))
        assert status_of(answer) in {400, 404}
        assert console.token.encode() not in answer


@pytest.mark.parametrize("path", ["/etc", "../..", "..\\..", "C:x", "\\\\host\\share", "a#../", "x" * 1_024, "\u202e"])
def test_r19_a_folder_of_the_master_is_told_by_the_master_alone(
    ready: httpx.Client, master: ScriptedMaster, path: str
) -> None:
    """The console opens none itself: it hands the text on, and the refusal back."""
    master.replies["list_folders"] = lambda command: (False, "FOLDER_NOT_ALLOWED", f"field path {command['path']}", {})
    is_a_problem(ready.get("/api/v1/folders", params={"path": path}), 403)
    assert master.commands[-1] == {"name": "list_folders", "path": path}


def test_r19_a_folder_with_a_nul_or_of_5000_characters_is_refused(ready: httpx.Client, master: ScriptedMaster) -> None:
    master.replies["list_folders"] = lambda _: (False, "FOLDER_UNKNOWN", "it cannot be opened", {})
    is_a_problem(ready.get("/api/v1/folders", params={"path": "x" * 5_000}), 422)
    is_a_problem(ready.get("/api/v1/folders", params={"path": "a\0b"}), 404, 422)


@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "_method"])
def test_r22_no_header_changes_the_method(ready: httpx.Client, name: str) -> None:
    for path in ("/api/v1/workers", "/api/v1/runs", "/api/v1/join-strings"):
        assert ready.get(path, headers={name: "DELETE"}, params={"_method": "DELETE"}).status_code == 200
    is_a_problem(ready.post("/api/v1/workers", headers={name: "DELETE"}), 405)


def test_r23_each_route_takes_its_own_methods_and_no_other(ready: httpx.Client, console: RunningConsole) -> None:
    taken: dict[str, set[str]] = {}
    for method, path in routes():
        taken.setdefault(path, set()).add(method)
    for path, methods in taken.items():
        for method in {"HEAD", "OPTIONS", "TRACE", "DELETE", "PUT", "PATCH", "CONNECT", "GET", "POST", "X"} - methods:
            answer = answer_to(console, head(console, method, filled(path)))
            assert status_of(answer) == 405, (method, path, answer[:200])
            assert b"access-control" not in answer.lower()
            assert console.token.encode() not in answer, "TRACE gives back what it was sent"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> float:
    """The limit, made short."""
    monkeypatch.setattr(slow_senders, "REQUEST_S", 1.0)
    monkeypatch.setattr(slow_senders, "LOOK_S", 0.1)
    return 1.0


def test_r27_the_limit_for_a_request_is_below_ten_seconds() -> None:
    assert slow_senders.REQUEST_S + slow_senders.LOOK_S < 10


@pytest.mark.parametrize("part", ["nothing", "head", "body", "after an answer"])
def test_r27_a_slow_request_is_cut_and_its_half_is_not_carried_out(
    hasty: float, ready: httpx.Client, console: RunningConsole, part: str
) -> None:
    whole = head(console, "POST", "/api/v1/runs", JSON, f"Content-Length: {len(GOOD) + 100}") + GOOD
    trickled = {"nothing": b"", "head": whole[:40], "body": whole, "after an answer": whole[:40]}[part]
    with connected(console) as connection:
        if part == "after an answer":
            connection.sendall(head(console, "GET", "/healthz").replace(b"Connection: close\r\n", b""))
            while b"alive" not in connection.recv(4_096):
                pass
        connection.sendall(trickled)
        connection.settimeout(0.2)
        began = time.monotonic()
        while time.monotonic() < began + 20 * hasty:
            try:
                if not connection.recv(4_096):
                    return
            except TimeoutError:
                if trickled:
                    connection.sendall(b" ")  # it goes on, a byte at a time
            except ConnectionError:
                return
        raise AssertionError("it is still open")


def test_r27_500_idle_connections_end_and_the_console_answers_meanwhile(
    hasty: float, ready: httpx.Client, console: RunningConsole
) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(connected(console)) for _ in range(500)]
        assert ready.get("/api/v1/state").status_code == 200
        assert [read_all(one) for one in idle] == [b""] * 500


def test_r27_whoever_only_reads_has_no_limit(
    hasty: float, live: httpx.Client, master: ScriptedMaster, console: RunningConsole
) -> None:
    with live.stream("GET", "/api/v1/events") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: hello"
        time.sleep(2.5 * hasty)
        master.say("INFO", "still there")
        wait_until(lambda: "still there" in next(lines))
