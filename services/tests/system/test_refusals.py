"""What an operator asks and cannot have, of a real cluster (R11 to R18): refused with the reason, and the run goes on.

The numbers are those of the catalogue in the research notes; services/console/tests/test_bad_requests.py has the
requests that never come as far as the master.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.tests.system.cluster import Cluster, finished, linked, version

pytestmark = pytest.mark.system
JSON = {"Content-Type": "application/json"}
SPECS = [
    *(("R11", f'{{"inner": {{"name": "sgd", "lr": {lr}}}}}', "lr") for lr in ("0", "-1", "NaN", "1e9", "1e999", '"1"')),
    *(("R11", f'{{"outer": {{"name": "fedavg", "lr": {lr}}}}}', "lr") for lr in ("0", "-1", "NaN", "1e9")),
    *(("R12", f'{{"rounds": {rounds}}}', "rounds") for rounds in ("0", "-1", "1000000000000", "1.5", "null")),
    *(("R13", f'{{"dataset": "{name}"}}', "dataset") for name in ("nope", "../digits", "", "DIGITS")),
    *(("R13", f'{{"model": {{"family": "{name}"}}}}', "family") for name in ("nope", "", "__class__")),
    ("R13", '{"model": {"family": "mlp", "hidden": [100000000]}}', "hidden"),
    ("R13", '{"inner": {"name": "nope", "lr": 0.1}}', "name"),
]


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with two workers that has trained nothing yet, for those that change nothing."""
    with Cluster(tmp_path_factory.mktemp("refusals")) as cluster:
        cluster.start(workers=2)
        yield cluster


def asked(cluster: Cluster, method: str, path: str, body: str | None = None) -> tuple[int, dict[str, Any]]:
    """The status and body of one answer."""
    link = cluster.api
    headers = {"X-MAHE-Token": link.token, **(JSON if body is not None else {})}
    with httpx.Client(base_url=link.url, headers=headers, timeout=20, trust_env=False) as client:
        response = client.request(method, f"/api/v1/{path}", content=body)
        return response.status_code, response.json()


@pytest.mark.parametrize(("body", "field"), [one[1:] for one in SPECS], ids=[f"{one[0]} {one[1]}" for one in SPECS])
def test_a_value_out_of_range_is_refused_with_what_is_allowed(idle: Cluster, body: str, field: str) -> None:
    for path in ("runs", "estimate"):
        status, problem = asked(idle, "POST", path, body)
        assert status == 422, problem
        assert field in problem["errors"][0]["field"] + problem["detail"]
        words = ("allowed", "than or equal to", "should match", "valid integer", "should be", "from")
        assert any(word in problem["detail"] for word in words), problem["detail"]
    assert idle.api.get("/api/v1/runs")["items"] == []
    assert asked(idle, "POST", "estimate", '{"dataset": "digits"}')[0] == 200


def test_r15_r16_what_is_not_there_is_neither_stopped_nor_removed(idle: Cluster) -> None:
    workers = linked(idle.api.snapshot())
    for path in ("runs/run-99/stop", "runs/run-99/pause", "runs/run-99/resume"):
        status, problem = asked(idle, "POST", path)
        assert (status, problem["code"]) == (404, "RUN_UNKNOWN")
    for worker in ("w-none", "0" * 16):
        status, problem = asked(idle, "DELETE", f"workers/{worker}")
        assert (status, problem["code"]) == (404, "WORKER_UNKNOWN")
    assert asked(idle, "DELETE", "join-strings/999")[1]["code"] == "JOIN_UNKNOWN"
    assert linked(idle.api.snapshot()) == workers


def test_r18_no_route_deletes_a_data_set(idle: Cluster) -> None:
    """One that has such a route must refuse while a run uses the data: whoever adds it replaces this test."""
    paths = idle.api.get("/api/v1/openapi.json")["paths"]
    assert {path for path, methods in paths.items() if path.startswith("/api/v1/datasets") and "delete" in methods} == (
        set()
    )


def test_r14_r15_r17_a_second_start_waits_and_a_worker_is_removed_in_mid_round(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=2)
        first = cluster.run(dataset="digits", k_steps=2_000, rounds=3)
        status, second = asked(cluster, "POST", "runs", '{"dataset": "digits", "rounds": 1}')
        assert (status, second["position"]) == (201, 1), "R14: it waits for the first, which goes on"
        state = cluster.until(lambda state: bool((state["run"] or {}).get("rounds_open")), "a round to be open")
        assert state["run"]["id"] == first
        gone = next(worker["id"] for worker in state["workers"] if worker["name"] == "worker-2")
        assert asked(cluster, "DELETE", f"workers/{gone}") == (200, {"worker": gone})
        assert asked(cluster, "DELETE", f"workers/{gone}")[1]["code"] == "WORKER_UNKNOWN"
        assert asked(cluster, "POST", f"runs/{second['run']}/stop")[0] == 202
        state = cluster.until(finished, "R17: the run to finish with the worker that stayed")
        assert (state["run"]["id"], version(state), linked(state)) == (first, 3, ["worker-1"])
        status, problem = asked(cluster, "POST", f"runs/{first}/stop")
        assert (status, problem["code"]) == (409, "RUN_NOT_IN_PHASE"), "R15: it has ended already"
        assert cluster.api.get(f"/api/v1/runs/{first}/rounds")["items"][-1]["round"] == 3
