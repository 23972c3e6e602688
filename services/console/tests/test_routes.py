"""Each route: the command it becomes, the answer, and the problem when the master refuses."""

import hashlib
from typing import Any

import httpx
import pytest

from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole, wait_until
from services.console.tests.scripted_master import Script, ScriptedMaster, answers


def refuses(code: str, text: str, result: dict[str, Any] | None = None) -> Script:
    return lambda _: (False, code, text, result or {})


def test_state_is_the_snapshot_with_later_events(live: httpx.Client, master: ScriptedMaster) -> None:
    master.say("ROUND", "round=13 workers=4", cluster.history_row(13))
    master.say("PROGRESS", "", {"workers": [{"id": "w1", "step": 31}]})
    wait_until(lambda: live.get("/api/v1/state").json()["id"] == "1:2")
    state = live.get("/api/v1/state").json()
    assert state["link"]["state"] == "live"
    assert state["seq"] == 2
    assert state["snapshot"]["history"][-1]["round"] == 13
    assert state["snapshot"]["workers"][0]["step"] == 31
    assert [line["text"] for line in state["recent"]] == ["round=13 workers=4"]


def test_a_run_is_created_with_defaults(live: httpx.Client, master: ScriptedMaster) -> None:
    master.replies["create_run"] = answers({"run": "run-8"})
    response = live.post("/api/v1/runs", json={"dataset": "rings4", "rounds": 5})
    assert response.status_code == 201
    assert response.json() == {"run": "run-8", "position": None, "warnings": []}
    assert response.headers["location"] == "/api/v1/runs/run-8"
    spec = master.commands[-1]["spec"]
    assert (spec["dataset"], spec["rounds"], spec["batch"]) == ("rings4", 5, 32)


def spec_of(live: httpx.Client, master: ScriptedMaster, request: dict[str, Any]) -> dict[str, Any]:
    """The specification that the master is sent for a request."""
    master.replies["list_datasets"] = answers({"items": cluster.DATASETS})
    master.replies["create_run"] = answers({"run": "run-8", "warnings": ["too short"]})
    response = live.post("/api/v1/runs", json=request)
    assert response.status_code == 201, response.text
    assert response.json() == {"run": "run-8", "position": None, "warnings": ["too short"]}
    spec: dict[str, Any] = master.commands[-1]["spec"]
    return spec


def test_what_is_given_wins_over_the_preset_that_over_the_card_that_over_the_defaults(
    live: httpx.Client, master: ScriptedMaster
) -> None:
    spec = spec_of(live, master, {"dataset": "builtin:rings4", "preset": "thorough", "rounds": 70})
    assert (spec["rounds"], spec["k_steps"], spec["batch"], spec["seed"]) == (70, 100, 16, 7)
    assert spec["model"] == {"family": "mlp", "hidden": [32, 32]}
    assert spec["inner"] == {"name": "adamw", "lr": 0.01, "schedule": "cosine", "warmup": 0.05}
    assert spec["outer"] == {"name": "nesterov", "lr": 0.7, "mu": 0.6}
    spec = spec_of(live, master, {"dataset": "rings4"})
    assert (spec["rounds"], spec["k_steps"], spec["inner"]) == (20, 40, {"name": "adamw", "lr": 0.01})
    assert spec["outer"] == {"name": "fedavg", "lr": 1.0}


def test_a_preset_that_is_not_there_is_refused_by_name(live: httpx.Client, master: ScriptedMaster) -> None:
    response = live.post("/api/v1/runs", json={"preset": "fast"})
    problem = response.json()
    assert (response.status_code, problem["code"]) == (422, "BAD_SPEC")
    text = "field preset is 'fast', allowed are quick, standard, thorough, long; see GET /api/v1/presets"
    assert problem["detail"] == text
    assert problem["errors"] == [{"field": "preset", "code": "BAD_SPEC", "message": text}]
    assert master.commands == []


def test_a_value_that_only_the_whole_makes_wrong_is_refused_here(live: httpx.Client, master: ScriptedMaster) -> None:
    response = live.post("/api/v1/runs", json={"preset": "quick", "aggregator": "median", "balance": "units"})
    problem = response.json()
    assert (response.status_code, problem["code"]) == (422, "VALIDATION")
    assert problem["detail"] == "balance is units; aggregator=median weighs all alike: use equal"
    assert [fault["field"] for fault in problem["errors"]] == ["balance"]


def test_the_presets_are_told_and_described(client: httpx.Client) -> None:
    answer = client.get("/api/v1/presets").json()
    assert [one["id"] for one in answer["items"]] == ["quick", "standard", "thorough", "long"]
    assert [one["sets"]["k_steps_max"] for one in answer["items"]][:3] == [50, 200, 500]
    assert answer["learning_rates"]["adamw"] == 0.001
    schemas = client.get("/api/v1/openapi.json").json()["components"]["schemas"]
    for name in ("RunRequest", "RunStarted", "Preset"):
        bare = [field for field, facts in schemas[name]["properties"].items() if not facts.get("description")]
        assert not bare, f"{name} says nothing of {bare}"
    assert schemas["RunRequest"]["properties"]["preset"]["enum"] == ["quick", "standard", "thorough", "long", None]


@pytest.mark.parametrize("action", ["pause", "resume", "stop"])
def test_a_run_is_steered(live: httpx.Client, master: ScriptedMaster, action: str) -> None:
    master.replies[f"{action}_run"] = lambda command: (True, "OK", "", {"run": command["run"]})
    response = live.post(f"/api/v1/runs/run-7/{action}")
    assert (response.status_code, response.json()) == (202, {"run": "run-7"})
    assert master.commands[-1] == {"name": f"{action}_run", "run": "run-7"}


def test_a_second_run_waits_and_its_place_is_told(live: httpx.Client, master: ScriptedMaster) -> None:
    waits = {"id": "run-8", "phase": "QUEUED", "position": 1, "reason": "position 1 of 1; starts when run-7 ends"}
    master.replies["create_run"] = answers({"run": "run-8", "warnings": [], "position": 1})
    response = live.post("/api/v1/runs", json={})
    assert (response.status_code, response.json()["position"]) == (201, 1)
    master.replies["get_run"] = answers(waits)
    assert live.get("/api/v1/runs/run-8").json() == waits
    master.say("QUEUE", "run run-8 is queued", {"queue": [waits]})
    wait_until(lambda: live.get("/api/v1/state").json()["snapshot"].get("queue") == [waits])


def test_folders_are_listed_or_refused(live: httpx.Client, master: ScriptedMaster) -> None:
    live.get("/api/v1/folders", params={"path": "models/新 <b>"})
    assert master.commands[-1] == {"name": "list_folders", "path": "models/新 <b>"}
    master.replies["list_folders"] = refuses("FOLDER_NOT_ALLOWED", "field path is '/etc'")
    assert live.get("/api/v1/folders", params={"path": "/etc"}).status_code == 403


def test_one_run_is_found_in_the_state_or_at_the_master(live: httpx.Client, master: ScriptedMaster) -> None:
    assert live.get("/api/v1/runs/run-7").json()["version"] == 12
    assert master.commands == []
    master.replies["get_run"] = answers({"id": "run-1", "version": 30})
    assert live.get("/api/v1/runs/run-1").json()["version"] == 30
    assert master.commands == [{"name": "get_run", "run": "run-1"}]
    master.replies["get_run"] = refuses("RUN_UNKNOWN", "run run-2 does not exist")
    missing = live.get("/api/v1/runs/run-2")
    assert (missing.status_code, missing.json()["code"]) == (404, "RUN_UNKNOWN")


def test_a_worker_is_removed_and_join_strings_are_made_and_revoked(live: httpx.Client, master: ScriptedMaster) -> None:
    master.replies["remove_worker"] = answers({"worker": "w3"})
    assert live.delete("/api/v1/workers/w3").json() == {"worker": "w3"}
    master.replies["create_join_string"] = answers({"id": 2, "join_string": cluster.JOIN_STRING})
    made = live.post("/api/v1/join-strings", json={"label": "lab", "uses": 3})
    assert (made.status_code, made.json()["join_string"]) == (201, cluster.JOIN_STRING)
    wanted = {"name": "create_join_string", "label": "lab", "expires_s": 3600, "uses": 3}
    assert master.commands[-1] == wanted
    master.replies["revoke_join_string"] = answers({"id": 2})
    assert live.delete("/api/v1/join-strings/2").json() == {"id": 2}


@pytest.mark.parametrize(
    "code, status",
    [
        ("QUEUE_FULL", 409),
        ("RUN_NOT_IN_PHASE", 409),
        ("RUN_UNKNOWN", 404),
        ("BAD_SPEC", 422),
        ("CHECKPOINT", 503),
        ("INTERNAL", 500),
        ("OF_A_LATER_VERSION", 400),
    ],
)
def test_a_refusal_keeps_its_code_and_sentence(
    live: httpx.Client, master: ScriptedMaster, code: str, status: int
) -> None:
    master.replies["create_run"] = refuses(code, "no, because of this")
    response = live.post("/api/v1/runs", json={})
    problem = response.json()
    assert response.status_code == problem["status"] == status
    assert response.headers["content-type"] == "application/problem+json"
    assert (problem["code"], problem["detail"], problem["instance"]) == (code, "no, because of this", "/api/v1/runs")
    assert problem["type"] == f"urn:mahe:problem:{code}"


def test_faults_of_fields_come_from_here_and_from_the_master(live: httpx.Client, master: ScriptedMaster) -> None:
    response = live.post("/api/v1/runs", json={"k_steps": 0, "rounds": "many", "colour": "red"})
    assert response.status_code == 422
    assert {fault["field"] for fault in response.json()["errors"]} == {"k_steps", "rounds", "colour"}
    fault = {"field": "inner.lr", "code": "RANGE", "message": "from 0 to 10"}
    master.replies["create_run"] = refuses("BAD_SPEC", "lr is 99", {"errors": [fault]})
    assert live.post("/api/v1/runs", json={}).json()["errors"] == [fault]


@pytest.mark.parametrize(
    "method, path, status, code",
    [
        ("GET", "/api/v1/nothing", 404, "NOT_FOUND"),
        ("GET", "/static/../settings.py", 404, "NOT_FOUND"),
        ("GET", "/static/%2e%2e/settings.py", 404, "NOT_FOUND"),
        ("GET", "/static/index.html", 404, "NOT_FOUND"),
        ("PUT", "/api/v1/runs", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/api/v1/runs/NOT%20ONE", 422, "VALIDATION"),
        ("GET", "/api/v1/runs?limit=0", 422, "VALIDATION"),
        ("GET", "/api/v1/runs?limit=501", 422, "VALIDATION"),
        ("DELETE", "/api/v1/join-strings/x", 422, "VALIDATION"),
        ("GET", "/api/v1/events?after=yesterday", 422, "EVENT_ID"),
        ("GET", "/redoc", 404, "NOT_FOUND"),
        ("GET", "/static/docs.html/", 404, "NOT_FOUND"),
    ],
)
def test_every_error_is_a_problem(client: httpx.Client, method: str, path: str, status: int, code: str) -> None:
    response = client.request(method, path)
    assert response.headers["content-type"] == "application/problem+json"
    assert set(response.json()) == {"type", "title", "status", "detail", "instance", "code", "errors"}
    assert (response.status_code, response.json()["code"]) == (status, code)


@pytest.mark.parametrize(
    "path, allowed",
    [("/api/v1/runs", "GET, POST"), ("/api/v1/workers", "DELETE, GET"), ("/api/v1/workers/w1", "DELETE")],
)
def test_a_wrong_method_is_told_the_right_ones(client: httpx.Client, path: str, allowed: str) -> None:
    assert client.put(path).headers["allow"] == allowed


def test_the_description_is_served_to_programs_and_to_its_page(client: httpx.Client, console: RunningConsole) -> None:
    described = client.get("/api/v1/openapi.json")
    with httpx.Client(base_url=console.url, trust_env=False) as bare:  # the page has no token
        assert bare.get("/docs/openapi.json").json() == described.json()
        page = bare.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert console.token not in page.text
    assert described.json()["components"]["securitySchemes"]["token"]["name"] == "x-mahe-token"


NO_JSON = [b"{", b"\xff\xfe{}", b"[" * 60_000, b'{"model": ' * 6_000, b"NaN", b"null", b"[]"]
NOT_AS_DESCRIBED = [
    *(b'{"rounds": 1e999}', b'{"rounds": ' + b"9" * 5_000 + b"}", b'{"rounds": true}', b'{"rounds_in_flight": 1.0}'),
    *(b'{"name": "\\ud800"}', b'{"label": "\\ud800"}', b'{"preset": "\\ud800"}', b'{"rounds_in_flight": true}'),
]
WITHIN = [
    *(b'{"model": {"family": "mlp", "hidden": [NaN]}}', b'{"model": {"family": "\\ud800"}}'),
    *(b'{"inner": {"name": "sgd", "lr": NaN}}', b'{"inner": {"name": "\\ud800"}}', b'{"outer": {"lr": -Infinity}}'),
]


def test_a_body_that_is_not_as_described_is_a_problem(live: httpx.Client, master: ScriptedMaster) -> None:
    master.replies["list_datasets"] = answers({"items": cluster.DATASETS})
    for path in ("/api/v1/runs", "/api/v1/estimate", "/api/v1/join-strings"):
        for body in NO_JSON + NOT_AS_DESCRIBED:
            response = live.post(path, content=body, headers={"Content-Type": "application/json"})
            assert response.headers["content-type"] == "application/problem+json", (path, body[:40])
            assert (response.status_code, response.json()["code"]) in ((422, "VALIDATION"), (422, "BAD_SPEC"))


def test_what_json_cannot_say_is_no_fault_of_the_console(live: httpx.Client, master: ScriptedMaster) -> None:
    """Models and optimizers are data by name: what is in them comes as far as the master, or is refused."""
    master.replies["list_datasets"] = answers({"items": cluster.DATASETS})
    master.replies["create_run"] = refuses("BAD_SPEC", "no such value")
    for path in ("/api/v1/runs", "/api/v1/estimate"):
        for body in WITHIN:
            response = live.post(path, content=body, headers={"Content-Type": "application/json"})
            assert response.status_code in (200, 422), (path, body, response.text)


def test_a_command_that_cannot_be_sent_is_refused_and_the_next_one_is_answered(
    live: httpx.Client, master: ScriptedMaster
) -> None:
    """A body of just 64 KiB becomes a command of more; half a character cannot be written at all."""
    master.replies["create_run"] = answers({"run": "run-8"})
    long = live.post("/api/v1/runs", json={"model": {"family": "x" * 65_400}})
    assert (long.status_code, long.json()["code"]) == (413, "FRAME_TOO_LARGE")
    headers = {"Content-Type": "application/json"}
    half = live.post("/api/v1/runs", content=b'{"outer": {"name": "\\udfff"}}', headers=headers)
    assert (half.status_code, half.json()["code"]) == (422, "BAD_SPEC")
    assert live.post("/api/v1/runs", json={}).status_code == 201


def test_a_checkpoint_is_streamed_in_chunks(live: httpx.Client, master: ScriptedMaster) -> None:
    content = bytes(range(256)) * 9000  # nine chunks, the last one short
    sha256 = master.keep_file(content)
    item = {"round": 12, "bytes": len(content), "sha256": sha256, "best": True}
    master.replies["list_checkpoints"] = answers({"items": [item]})
    response = live.get("/api/v1/runs/run-7/checkpoints/12")
    assert response.headers["content-disposition"] == 'attachment; filename="ckpt-12.npz"'
    assert response.headers["content-length"] == str(len(content))
    assert hashlib.sha256(response.content).hexdigest() == sha256
    assert live.get("/api/v1/runs/run-7/checkpoints/11").json()["code"] == "CHECKPOINT_UNKNOWN"


def test_the_best_and_the_latest_checkpoint_have_a_name(live: httpx.Client, master: ScriptedMaster) -> None:
    files = {number: bytes([number]) * 1000 for number in (9, 11, 12)}
    kept = {number: master.keep_file(content) for number, content in files.items()}

    def told(best: int) -> Any:
        items = [{"round": one, "bytes": 1000, "sha256": sha, "best": one == best} for one, sha in kept.items()]
        return answers({"items": items[::-1]})

    master.replies["list_checkpoints"] = told(best=11)
    for name, number in (("best", 11), ("latest", 12), ("9", 9)):
        response = live.get(f"/api/v1/runs/run-7/checkpoints/{name}")
        assert (response.status_code, response.content) == (200, files[number])
        assert response.headers["content-disposition"] == f'attachment; filename="ckpt-{number}.npz"'
    master.replies["list_checkpoints"] = told(best=0)
    response = live.get("/api/v1/runs/run-7/checkpoints/best")
    assert (response.status_code, response.json()["code"]) == (404, "CHECKPOINT_UNKNOWN")
    assert "no version of it is evaluated; wait, or ask for latest" in response.json()["detail"]
    master.replies["list_checkpoints"] = answers({"items": []})
    assert "keeps no checkpoint yet" in live.get("/api/v1/runs/run-7/checkpoints/latest").json()["detail"]
    assert live.get("/api/v1/runs/run-7/checkpoints/worst").status_code == 422


def test_a_file_that_is_gone_is_a_404(live: httpx.Client, master: ScriptedMaster) -> None:
    item = {"round": 1, "bytes": 10, "sha256": "0" * 64, "best": False}
    master.replies["list_checkpoints"] = answers({"items": [item]})
    response = live.get("/api/v1/runs/run-7/checkpoints/1")
    assert (response.status_code, response.json()["code"]) == (404, "FILE_GONE")


def test_a_file_with_other_bytes_ends_early(
    live: httpx.Client, master: ScriptedMaster, capfd: pytest.CaptureFixture[str]
) -> None:
    content = b"y" * 700_000
    master.files["1" * 64] = content
    item = {"round": 1, "bytes": len(content) + 1, "sha256": "1" * 64, "best": False}
    master.replies["list_checkpoints"] = answers({"items": [item]})
    with pytest.raises(httpx.RemoteProtocolError):
        live.get("/api/v1/runs/run-7/checkpoints/1")
    errors = capfd.readouterr().err
    assert "ended early: the file that came is not the one asked for" in errors
    assert "Traceback" not in errors
