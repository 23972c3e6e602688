"""Real processes, and a learning rate that is too high: the run goes back, and learns; or it fails and says why."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.tests.system.cluster import Cluster, finished

pytestmark = pytest.mark.system
# FedProx pulls a worker back by lr x prox of its way at each step: from 2 on it swings further each time.
HUGE: dict[str, Any] = {
    "dataset": "digits",
    "inner": {"name": "sgd", "lr": 0.2, "prox": 10.0},
    "k_steps": 200,
    "rounds": 6,
    "min_workers": 3,
}


def test_a_rate_that_is_too_high_is_halved_and_the_run_ends_well(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=3)
        run = cluster.run(**HUGE)
        state = cluster.until(lambda state: finished(state) or state["run"]["phase"] == "FAILED", "the run to end")
        shown = state["run"]
        assert (shown["phase"], shown["version"]) == ("STOPPED", HUGE["rounds"]), shown["reason"]
        assert (shown["reverted"], shown["lr_scale"]) == (1, 0.5)
        assert "diverged: round 1 failed once on 3 workers" in cluster.log("master")
        rows = cluster.api.get(f"/api/v1/runs/{run}/rounds?limit=500")["items"]
        assert [row["round"] for row in rows] == list(range(1, HUGE["rounds"] + 1))
        assert "back to version 0, as none is evaluated, and the learning rate is halved" in rows[0]["note"]
        assert rows[-1]["eval_loss"] < rows[0]["eval_loss"], "it learns"
        best = cluster.home / "best.npz"
        best.write_bytes(cluster.download(f"/api/v1/runs/{run}/checkpoints/best"))
        with np.load(best, allow_pickle=False) as checkpoint:
            assert np.isfinite(checkpoint["parameters"]).all()


def test_one_that_is_too_high_even_then_fails_with_what_to_do(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=3)
        cluster.run(**{**HUGE, "inner": {"name": "sgd", "lr": 1.0, "prox": 10.0}})
        state = cluster.until(lambda state: state["run"]["phase"] == "FAILED", "the run to fail")
        reason = state["run"]["reason"]
        assert reason.startswith("diverged, and it went back once before, with version 1: round 2 failed once")
        assert reason.endswith("start a new run with a learning rate below 0.5")


def test_a_run_stops_when_its_time_is_over(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=1)
        cluster.run(dataset="gauss3", rounds=1_000_000, k_steps=50, minutes_max=0.05)
        state = cluster.until(lambda state: state["run"]["finished"], "the run to end")
        version = state["run"]["version"]
        assert version > 1
        assert state["run"]["reason"] == f"stopped after 0.05 minutes, as asked, at version {version}"
