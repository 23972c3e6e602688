"""The route that estimates a run: the body and the refusals of starting one, and what of the state it reckons with."""

from typing import Any, get_args

import httpx
import pytest

from services.common.learning import Workload, benchmark_workload, expected_samples_per_s
from services.common.protocol.encodings import encoded_bytes
from services.common.protocol.estimate import HintCode
from services.common.protocol.round_time import default_fixed_s
from services.common.protocol.worth import LeftOutCode, VerdictCode
from services.console.page import load_assets
from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import wait_until
from services.console.tests.scripted_master import ScriptedMaster, answers

URL = "/api/v1/estimate"
DIGITS = 8970  # parameters of the digits' model: the run of the scripted cluster
DIGITS_RUN = {"dataset": "digits", "k_steps": 1000, "rounds": 100}


@pytest.fixture
def catalog(live: httpx.Client, master: ScriptedMaster) -> httpx.Client:
    """A client of a console that knows the catalog and the four scripted workers, two of which can train."""
    master.replies["list_datasets"] = answers({"items": cluster.DATASETS})
    return live


def ask(client: httpx.Client, **request: Any) -> dict[str, Any]:
    response = client.post(URL, json=request)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def show(client: httpx.Client, master: ScriptedMaster, *workers: dict[str, Any], **run: Any) -> None:
    """The console has these changes in its state."""
    for one in workers:
        master.say("WORKER", "", one)
    master.say("RUN", "", {**cluster.run(12), **run})
    newest = master.say("INFO", "shown")
    wait_until(lambda: client.get("/api/v1/state").json()["seq"] >= newest)


def test_it_is_filled_in_as_a_run_is_and_starts_nothing(catalog: httpx.Client, master: ScriptedMaster) -> None:
    found = ask(catalog, dataset="builtin:rings4", preset="quick")
    # The preset's 10 rounds of 50 steps, the card's batch of 16; the two workers that are linked and not paused.
    assert (found["workers"], found["samples_per_round"], found["samples_total"]) == (2, 1600, 16_000)
    assert found["epochs"] == 10.0
    n = 2 * 32 + 32 + 32 * 32 + 32 + 32 * 4 + 4
    assert found["bytes_per_round"] == 2 * 2 * encoded_bytes("int8", n)
    assert (found["verdict"]["code"], len(found["verdict"]["speedups"])) == ("ONE_PC_IS_ENOUGH", 2)
    assert [command["name"] for command in master.commands] == ["list_datasets"]


def test_the_speed_of_a_worker_that_has_trained_is_its_own(catalog: httpx.Client) -> None:
    found = ask(catalog, **DIGITS_RUN)
    assert found["compute_s"] == pytest.approx(2 * 1000 * 32 / (900 + 1800))  # the model and batch of the last run
    assert found["sync_s"] == pytest.approx(default_fixed_s(DIGITS, 2))
    assert found["minutes"] == pytest.approx(100 * (found["compute_s"] + found["sync_s"]) / 60)
    assert [hint["code"] for hint in found["hints"]] == ["OVER_TRAINED", "LINK_NOT_MEASURED"]


def test_the_score_of_one_that_has_not_is_scaled_to_the_model(catalog: httpx.Client, master: ScriptedMaster) -> None:
    show(catalog, master, cluster.worker(1, "lab-pc-01", measured=False), {"id": "w2", "gone": True})
    found = ask(catalog, **DIGITS_RUN, model={"family": "mlp", "hidden": [512, 512]})
    wanted = Workload(n_parameters=64 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10, layers=3, batch=32)
    assert found["compute_s"] == pytest.approx(1000 * 32 / expected_samples_per_s(900.0, benchmark_workload(), wanted))
    assert "SPEED_NOT_MEASURED" in [hint["code"] for hint in found["hints"]]


def test_links_count_once_the_master_tells_them(catalog: httpx.Client, master: ScriptedMaster) -> None:
    one_way = encoded_bytes("int8", DIGITS)
    show(catalog, master, cluster.worker(1, "lab-pc-01", link_bytes_per_s=1e4))
    found = ask(catalog, **DIGITS_RUN)  # of the other PC and the master nothing is known
    assert found["sync_s"] == pytest.approx(default_fixed_s(DIGITS, 2) + 2 * one_way / 1e4)
    assert "LINK_NOT_MEASURED" in [hint["code"] for hint in found["hints"]]
    show(catalog, master, cluster.worker(2, "lab-pc-02", link_bytes_per_s=2e4))
    found = ask(catalog, **DIGITS_RUN)
    assert found["sync_s"] == pytest.approx(default_fixed_s(DIGITS, 2) + 2 * 2 * one_way / 2e4)
    assert "LINK_NOT_MEASURED" not in [hint["code"] for hint in found["hints"]]
    show(catalog, master, *(cluster.worker(i, f"lab-pc-0{i}", link_bytes_per_s=None) for i in (1, 2)))
    assert ask(catalog, **DIGITS_RUN)["sync_s"] == pytest.approx(default_fixed_s(DIGITS, 2))


def test_a_measured_exchange_tells_what_other_bytes_take(catalog: httpx.Client, master: ScriptedMaster) -> None:
    for sync_ms in (400, 5):  # slower, and faster, than the usual work of the master alone
        show(catalog, master, sync_ms=sync_ms)
        found = ask(catalog, **DIGITS_RUN)
        assert found["sync_s"] == pytest.approx(sync_ms / 1000)
        assert "LINK_NOT_MEASURED" not in [hint["code"] for hint in found["hints"]]
    assert ask(catalog, **DIGITS_RUN, encoding="int4")["sync_s"] == pytest.approx(0.005), (
        "few bytes: it is not the link"
    )


def test_a_slow_exchange_of_many_bytes_is_the_links(catalog: httpx.Client, master: ScriptedMaster) -> None:
    n = 1_000_000
    show(catalog, master, sync_ms=400, n_parameters=n)
    one_way, workers = encoded_bytes("int8", n), 2
    link = 2 * workers * one_way / (0.4 - default_fixed_s(n, workers))
    sends_s = workers * 2 * encoded_bytes("int4", DIGITS) / link
    found = ask(catalog, **DIGITS_RUN, encoding="int4")["sync_s"]
    assert found == pytest.approx(default_fixed_s(DIGITS, 2) + sends_s, rel=1e-3)


def test_nobody_here_and_nothing_trained_yet(catalog: httpx.Client, master: ScriptedMaster) -> None:
    gone = [{"id": f"w{number}", "gone": True} for number in (1, 2, 3, 4)]
    show(catalog, master, *gone)
    found = ask(catalog, dataset="digits")
    assert (found["minutes"], found["workers"], found["verdict"]["code"]) == (None, 1, "NO_PC")
    assert "WAITS_FOR_PCS" in [hint["code"] for hint in found["hints"]]


@pytest.mark.parametrize(
    "request_, status, code, field, words",
    [
        ({"preset": "fast"}, 422, "BAD_SPEC", "preset", "allowed are quick, standard, thorough, long"),
        ({"k_steps": 0}, 422, "VALIDATION", "k_steps", "greater than or equal to 1"),
        ({"aggregator": "median"}, 422, "VALIDATION", "balance", "use equal"),
        ({"dataset": "cats"}, 422, "BAD_SPEC", "dataset", "field dataset is 'cats', allowed are digits, rings4"),
        ({"model": {"family": "cnn"}}, 422, "BAD_SPEC", "model.family", "allowed: linear, mlp, softmax"),
        ({"inner": {"name": "sgd", "lr": 99}}, 422, "BAD_SPEC", "inner.lr", "a number from 1e-08 to 10"),
        ({"model": {"family": "mlp", "hidden": [4096] * 8}}, 422, "BAD_SPEC", "model", "use a smaller one"),
    ],
)
def test_it_refuses_what_cannot_be_started(
    catalog: httpx.Client, request_: dict[str, Any], status: int, code: str, field: str, words: str
) -> None:
    response = catalog.post(URL, json=request_)
    problem = response.json()
    assert (response.status_code, problem["code"]) == (status, code)
    assert words in problem["detail"]
    assert [fault["field"] for fault in problem["errors"]] == [field]


def test_every_field_of_the_answer_is_described(client: httpx.Client) -> None:
    schemas = client.get("/api/v1/openapi.json").json()["components"]["schemas"]
    for name in ("Estimate", "Verdict", "LeaveOut", "Hint"):
        bare = [field for field, facts in schemas[name]["properties"].items() if not facts.get("description")]
        assert not bare, f"{name} says nothing of {bare}"


def test_the_page_has_a_sentence_for_every_code() -> None:
    """In English; that Chinese has the same keys is a test of the page."""
    text = load_assets()["i18n/en.json"].body.decode()
    wanted = [f"estimate.hint.{code}" for code in get_args(HintCode)]
    wanted += [f"estimate.verdict.{code}" for code in get_args(VerdictCode)]
    wanted += [f"estimate.leave.{code}" for code in get_args(LeftOutCode)]
    assert [key for key in wanted if f'"{key}":' not in text] == []
