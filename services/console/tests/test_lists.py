"""Lists: one shape for all, page by page to the end, and a cursor only for the list that gave it."""

from typing import Any

import httpx
import pytest

from services.console.lists import cut
from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import wait_until
from services.console.tests.scripted_master import ScriptedMaster, answers

LISTS = ["runs", "runs/run-7/rounds", "runs/run-7/checkpoints", "datasets", "workers", "join-strings", "presets"]


def pages(client: httpx.Client, path: str, limit: int) -> list[list[dict[str, Any]]]:
    """All pages of a list."""
    found, cursor = [], None
    while True:
        params = {"limit": limit} | ({} if cursor is None else {"cursor": cursor})
        answer = client.get(f"/api/v1/{path}", params=params)
        assert answer.status_code == 200, answer.text
        assert set(answer.json()) == {"items", "next_cursor"}
        found.append(answer.json()["items"])
        cursor = answer.json()["next_cursor"]
        if cursor is None:
            return found


def test_every_list_has_the_same_shape(live: httpx.Client) -> None:
    """A route that answers with `items` and is not in LISTS fails here, too."""
    for path in LISTS:
        assert {"items", "next_cursor"} <= set(live.get(f"/api/v1/{path}").json())
    paths = live.get("/api/v1/openapi.json").json()["paths"]
    described = {path for path, methods in paths.items() if methods.get("get", {}).get("operationId", "")[:4] == "list"}
    assert described == {f"/api/v1/{path.replace('run-7', '{run}')}" for path in LISTS}


def test_runs_are_paged_backwards_by_the_master(live: httpx.Client, master: ScriptedMaster) -> None:
    def runs(command: dict[str, Any]) -> tuple[bool, str, str, dict[str, Any]]:
        first = min(7, (command["before"] or 8) - 1)
        numbers = list(range(first, max(0, first - command["limit"]), -1))
        return (
            True,
            "OK",
            "",
            {"items": [{"number": n} for n in numbers], "next": numbers[-1] if numbers[-1] > 1 else None},
        )

    master.replies["list_runs"] = runs
    assert [[run["number"] for run in page] for page in pages(live, "runs", 3)] == [[7, 6, 5], [4, 3, 2], [1]]
    assert [command["before"] for command in master.commands] == [None, 5, 2]
    assert live.get("/api/v1/runs").json()["next_cursor"] is None
    assert master.commands[-1]["limit"] == 50


def test_rounds_and_join_strings_are_paged_forwards_by_the_master(live: httpx.Client, master: ScriptedMaster) -> None:
    for name, path in (("list_rounds", "runs/run-7/rounds"), ("list_join_strings", "join-strings")):
        master.replies[name] = answers({"items": [{"id": 5}], "next": 5})
        cursor = live.get(f"/api/v1/{path}", params={"limit": 1}).json()["next_cursor"]
        master.replies[name] = answers({"items": [{"id": 6}], "next": None})
        assert live.get(f"/api/v1/{path}", params={"cursor": cursor}).json() == {
            "items": [{"id": 6}],
            "next_cursor": None,
        }
        assert [command["after"] for command in master.commands[-2:]] == [0, 5]


def test_what_is_known_whole_is_cut_by_its_key(live: httpx.Client, master: ScriptedMaster) -> None:
    assert [[one["id"] for one in page] for page in pages(live, "workers", 3)] == [["w1", "w2", "w3"], ["w4"]]
    items = [{"round": number, "bytes": 1, "sha256": "0" * 64, "best": False} for number in (12, 9, 100)]
    master.replies["list_checkpoints"] = answers({"items": items})
    found = pages(live, "runs/run-7/checkpoints", 2)
    assert [[one["round"] for one in page] for page in found] == [[9, 12], [100]]
    master.replies["list_datasets"] = answers({"items": cluster.DATASETS})
    assert [len(page) for page in pages(live, "datasets", 1)] == [1, 1]


def test_nothing_is_left_out_when_an_item_goes_meanwhile(live: httpx.Client, master: ScriptedMaster) -> None:
    first = live.get("/api/v1/workers", params={"limit": 2}).json()
    master.say("WORKER", "", {"id": "w2", "gone": True})
    wait_until(lambda: len(live.get("/api/v1/workers").json()["items"]) == 3)
    rest = live.get("/api/v1/workers", params={"cursor": first["next_cursor"]}).json()
    assert [one["id"] for one in rest["items"]] == ["w3", "w4"]


def test_numbers_are_in_order_of_their_value() -> None:
    items = [{"id": number} for number in (100, 9, 20)]
    assert [one["id"] for one in cut("x", items, "id", 50, None).items] == [9, 20, 100]


@pytest.mark.parametrize(
    "cursor", ["", "12", "!!!", "cnVuczo", "cnVuczp4", "%F0%9F%A6%8A", "cnVuczo5OTk5OTk5OTk5OTk5OTk5OTk"]
)
def test_a_cursor_of_ones_own_making_is_refused(client: httpx.Client, cursor: str) -> None:
    response = client.get(f"/api/v1/runs?cursor={cursor}")
    problem = response.json()
    assert (response.status_code, problem["code"]) == (422, "BAD_CURSOR")
    assert [fault["field"] for fault in problem["errors"]] == ["cursor"]


def test_a_cursor_of_another_list_is_refused(live: httpx.Client, master: ScriptedMaster) -> None:
    master.replies["list_rounds"] = answers({"items": [{"round": 1}], "next": 1})
    cursor = live.get("/api/v1/runs/run-7/rounds").json()["next_cursor"]
    for path in ("runs", "runs/run-8/rounds", "workers", "join-strings"):
        assert live.get(f"/api/v1/{path}", params={"cursor": cursor}).json()["code"] == "BAD_CURSOR"
