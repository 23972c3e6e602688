"""Figures for Prometheus: their names, that they are right, and that no count ever goes down."""

import re
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from services.console import talk
from services.console.tally import CODE_REST, CODES_MAX, SECONDS, Tally
from services.console.tests import scripted_cluster as cluster
from services.console.tests.conftest import RunningConsole, wait_until
from services.console.tests.scripted_master import ScriptedMaster

UNITS = ("seconds", "bytes", "ratio")
OTHER_UNITS = re.compile(r"(milli|micro|nano)|_(ms|us|minutes|hours|kb|mb|mib|percent|bits)(_|$)")
LABELS = {"state", "phase", "direction", "code", "version", "le"}
SERIES_MAX = 100
HOSTILE = 'x"} 1\nmahe_rounds_total 99\n# \\'


def families(text: str) -> dict[str, Metric]:
    return {one.name: one for one in text_string_to_metric_families(text)}


def value(text: str, name: str, **labels: str) -> float:
    """The one sample of this name and these labels."""
    found = [
        sample.value
        for one in text_string_to_metric_families(text)
        for sample in one.samples
        if sample.name == name and sample.labels == labels
    ]
    assert len(found) == 1, f"{name} {labels}: {found}"
    return float(found[0])


def faults(text: str) -> Iterator[str]:
    """What is against the conventions of Prometheus, or ours."""
    for family in text_string_to_metric_families(text):
        if not re.fullmatch(r"mahe_[a-z][a-z0-9_]*", family.name):
            yield f"{family.name}: not mahe_ and words in small letters"
        if not family.documentation:
            yield f"{family.name}: no help"
        if family.type not in ("gauge", "counter", "histogram"):
            yield f"{family.name}: of type {family.type}"
        if OTHER_UNITS.search(family.name):
            yield f"{family.name}: not in base units"
        if any(f"_{unit}_" in family.name for unit in UNITS):
            yield f"{family.name}: the unit does not stand at the end"
        for sample in family.samples:
            if (family.type == "counter") != sample.name.endswith("_total"):
                yield f"{sample.name}: _total is for counters, and for them all"
            if family.name.endswith("_ratio") and not 0 <= sample.value <= 1:
                yield f"{sample.name}: {sample.value} is no ratio"
            if not set(sample.labels) <= LABELS:
                yield f"{sample.name}: labels {sorted(sample.labels)}, allowed are {sorted(LABELS)}"


def test_names_units_and_types_are_as_prometheus_wants_them(live: httpx.Client) -> None:
    response = live.get("/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert len(families(response.text)) == 18
    assert list(faults(response.text)) == []


@pytest.mark.parametrize(
    "line",
    [
        "rounds 1",
        "# TYPE mahe_rounds counter\nmahe_rounds 1",
        "# HELP mahe_rounds_total x\n# TYPE mahe_rounds_total gauge\nmahe_rounds_total 1",
        "# HELP mahe_step_ms x\n# TYPE mahe_step_ms gauge\nmahe_step_ms 1",
        "# HELP mahe_bytes_sent x\n# TYPE mahe_bytes_sent gauge\nmahe_bytes_sent 1",
        "# HELP mahe_ratio x\n# TYPE mahe_ratio gauge\nmahe_ratio 96",
        '# HELP mahe_x x\n# TYPE mahe_x gauge\nmahe_x{run="digits-1"} 1',
    ],
)
def test_the_lint_finds_faults(line: str) -> None:
    assert list(faults(line))


def test_the_figures_are_those_of_the_master(live: httpx.Client, master: ScriptedMaster) -> None:
    for number in (13, 14, 14):  # a row comes again with its evaluation
        master.say("ROUND", f"round={number}", cluster.history_row(number, evaluated=number == 13))
    wait_until(lambda: live.get("/api/v1/state").json()["seq"] == 3)
    text = live.get("/metrics").text
    assert value(text, "mahe_build_info", version="0.1.0") == 1
    assert value(text, "mahe_master_up") == 1
    assert value(text, "mahe_rounds_total") == 2
    assert value(text, "mahe_samples_total") == 12_800
    assert value(text, "mahe_sync_bytes_total", direction="up") == 602_960
    avoided = 2 * (4 * 50 * 8970 * 4 - 301_480)  # 4 workers, 50 local steps, fp32
    assert value(text, "mahe_sync_avoided_bytes_total") == avoided
    assert value(text, "mahe_round_duration_seconds_bucket", le="1.0") == 0
    assert value(text, "mahe_round_duration_seconds_bucket", le="2.5") == 2
    assert value(text, "mahe_round_duration_seconds_bucket", le="+Inf") == 2
    assert value(text, "mahe_round_duration_seconds_sum") == pytest.approx(3.6)
    states = {"training": 2, "paused": 1, "lost": 1, "idle": 0, "quarantined": 0}
    assert {state: value(text, "mahe_workers", state=state) for state in states} == states
    assert value(text, "mahe_run_phase", phase="running") == 1
    assert value(text, "mahe_run_phase", phase="failed") == 0
    assert (value(text, "mahe_run_version"), value(text, "mahe_run_rounds")) == (12, 30)
    assert value(text, "mahe_train_loss") == cluster.history_row(14)["train_loss"]
    assert value(text, "mahe_eval_accuracy_ratio") == cluster.history_row(12)["eval_accuracy"]
    assert "mahe_sync_duration_seconds" in families(text)  # not measured: a family without a sample
    assert families(text)["mahe_sync_duration_seconds"].samples == []


def test_problems_are_counted_by_code_and_streams_are_seen(live: httpx.Client) -> None:
    live.get("/api/v1/nothing")
    live.get("/api/v1/state", headers={"X-MAHE-Token": "wrong"})
    live.get("/api/v1/state", headers={"X-MAHE-Token": "wrong"})
    with live.stream("GET", "/api/v1/events") as stream:
        lines = stream.iter_lines()
        next(lines)
        text = live.get("/metrics").text
    assert value(text, "mahe_errors_total", code="NOT_FOUND") == 1
    assert value(text, "mahe_errors_total", code="TOKEN_REJECTED") == 2
    assert value(text, "mahe_sse_clients") == 1


def test_no_token_is_needed_and_nothing_of_anyone_is_told(
    live: httpx.Client, master: ScriptedMaster, console: RunningConsole
) -> None:
    master.say("WORKER", "", cluster.worker(9, HOSTILE))
    wait_until(lambda: live.get("/api/v1/state").json()["seq"] == 1)
    with httpx.Client(base_url=console.url, trust_env=False) as bare:
        text = bare.get("/metrics").text
        assert bare.get("/metrics", headers={"Host": "evil.example"}).status_code == 403
    assert value(text, "mahe_rounds_total") == 0
    for secret in (console.token, cluster.RUN_ID, "lab-pc-01", "digits", "192.168.1.20", "mahe_rounds_total 99"):
        assert secret not in text


def test_a_thousand_workers_are_no_more_series_than_four(live: httpx.Client, master: ScriptedMaster) -> None:
    few = live.get("/metrics").text
    workers = [cluster.worker(number, f"pc-{number}") for number in range(1, 1001)]
    for worker in workers:
        master.say("WORKER", "", worker)
    wait_until(lambda: live.get("/api/v1/state").json()["seq"] == 1000)
    many = live.get("/metrics").text
    assert value(many, "mahe_workers", state="training") >= 999
    assert len(many.splitlines()) == len(few.splitlines()) < SERIES_MAX + 3 * len(families(few))


def test_without_a_master_there_are_no_figures_of_it(
    live: httpx.Client, master: ScriptedMaster, console: RunningConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talk, "STALE_S", 0.3)
    monkeypatch.setattr(talk, "SUBSCRIBE_S", 0.1)
    master.say("ROUND", "", cluster.history_row(13))
    wait_until(lambda: value(live.get("/metrics").text, "mahe_rounds_total") == 1)
    master.mute = True
    wait_until(lambda: value(live.get("/metrics").text, "mahe_master_up") == 0)
    text = live.get("/metrics").text
    assert "mahe_workers" not in families(text)
    assert "mahe_train_loss" not in families(text)
    assert value(text, "mahe_rounds_total") == 1
    assert list(faults(text)) == []


def test_a_console_without_any_master_answers(client: httpx.Client) -> None:
    text = client.get("/metrics").text
    assert (value(text, "mahe_master_up"), value(text, "mahe_rounds_total")) == (0, 0)


def snapshot(run: str, closed: int) -> dict[str, object]:
    rows = [cluster.history_row(number) for number in range(1, closed + 1)]
    return {"run": {"id": run, "k_steps": 50, "n_parameters": 10}, "history": rows}


def test_counts_never_go_down() -> None:
    """Another run, a master that starts again, one that lost a version, one whose data is gone."""
    tally, seen = Tally(), [0]
    for term, state, rounds in (
        (3, snapshot("digits-1", 5), 0),  # closed before anybody looked
        (3, snapshot("digits-1", 7), 2),
        (3, snapshot("digits-1", 7), 2),
        (4, snapshot("digits-1", 6), 2),  # the master is back without its newest version
        (4, snapshot("digits-1", 8), 3),
        (4, snapshot("digits-2", 0), 3),
        (4, snapshot("digits-2", 4), 7),
        (4, {"run": None, "history": []}, 7),
        (1, snapshot("digits-1", 2), 9),  # a master with an empty folder
    ):
        tally.look(term, state)
        assert tally.rounds == rounds
        seen.append(tally.samples)
    assert seen == sorted(seen)
    assert tally.samples == 9 * 6400


def test_a_tally_that_begins_with_nothing_counts_the_first_round() -> None:
    tally = Tally()
    tally.look(1, {"run": None, "history": []})
    tally.look(1, snapshot("digits-1", 1))
    assert tally.rounds == 1


def test_the_codes_that_are_counted_have_a_limit() -> None:
    tally = Tally()
    for number in range(CODES_MAX + 50):
        tally.refuse(f"CODE_{number}")
    tally.refuse("CODE_0")
    assert len(tally.refusals) == CODES_MAX + 1
    assert (tally.refusals["CODE_0"], tally.refusals[CODE_REST]) == (2, 50)


def test_a_very_long_round_has_a_class() -> None:
    tally = Tally()
    tally.look(1, {})
    tally.look(1, {"run": {"id": "r"}, "history": [{"round": 1, "seconds": 2 * SECONDS[-1]}]})
    assert tally.rounds == tally.round_seconds[float("inf")] == 1
