"""One of four real workers sends poison: it is named in the log and in the API, and the others' run goes on."""

import re
from pathlib import Path
from typing import Any

import pytest

from services.tests.system.cluster import Cluster, finished, linked
from services.tests.system.poisoned_trainer import VARIABLE

pytestmark = pytest.mark.system
HONEST = ("worker-1", "worker-2", "worker-3")
SPEC: dict[str, Any] = {"dataset": "digits", "k_steps": 20, "balance": "equal", "aggregator": "clip"}
ALL = 4  # as min_workers no round opens without the poisoned one, or closes while it may still submit


def start(cluster: Cluster, attack: str) -> None:
    cluster.start_master()
    cluster.start_worker("poisoned", "services.tests.system.poisoned_agent", **{VARIABLE: attack})
    for name in HONEST:
        cluster.start_worker(name)
    cluster.start_console()
    cluster.until(lambda state: len(linked(state)) == ALL, "all to join")


def by_name(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {worker["name"]: worker for worker in state["workers"]}


def told(cluster: Cluster, pattern: str) -> list[str]:
    return re.findall(rf"\[DELTA\] round \d+ shard \d+: the delta of (\S+) {pattern}", cluster.log("master"))


def test_a_worker_that_sends_minus_ten_times_its_delta_counts_for_little_and_is_named(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        start(cluster, "x-10")
        cluster.run(**SPEC, rounds=10, min_workers=ALL)
        state = cluster.until(finished, "the run to finish")
        assert state["run"]["last_eval"]["accuracy"] > 0.8
        lines = told(cluster, r"counts for 0\.\d+ of itself: its norm is \S+, the limit is \S+")
        assert set(lines) == {"poisoned"}

        def all_counted(state: dict[str, Any]) -> bool:
            return bool(by_name(state)["poisoned"]["clipped_rounds"] == len(lines))

        workers = by_name(cluster.until(all_counted, "the API to say what the log says"))
        assert workers["poisoned"]["clipped_rounds"] == workers["poisoned"]["accepted_rounds"], "in each of its rounds"
        assert [workers[name]["clipped_rounds"] for name in HONEST] == [0, 0, 0]


def test_a_worker_that_sends_nan_is_refused_set_aside_after_three_rounds_and_named(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        start(cluster, "nan")
        run = cluster.run(**SPEC, rounds=5, min_workers=ALL)
        state = cluster.until(lambda state: by_name(state)["poisoned"]["quarantined"], "the quarantine")
        assert "3 rounds in a row with a bad delta while others were good" in by_name(state)["poisoned"]["reason"]
        assert told(cluster, r"is refused \(DELTA_NOT_FINITE\): .*NaN") == ["poisoned"] * 3
        assert "[WARN] poisoned gets no more work: in quarantine: 3 rounds in a row" in cluster.log("master")
        cluster.start_worker("worker-4")
        state = cluster.until(finished, "the run to finish")
        rows = cluster.api.get(f"/api/v1/runs/{run}/rounds")["items"]
        assert [row["workers"] for row in rows] == [3, 3, 3, ALL, ALL]
        assert [name for name, worker in by_name(state).items() if worker["quarantined"]] == ["poisoned"]
        assert state["run"]["last_eval"]["accuracy"] > 0.6
