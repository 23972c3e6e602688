"""Two rounds in flight on a real cluster: workers go on with the next round, and the model learns as it should."""

from pathlib import Path

import pytest

from services.tests.system.cluster import Cluster, finished, version

pytestmark = pytest.mark.system
ACCURACY = 0.9
SPEC = {"dataset": "digits", "rounds": 12, "k_steps": 40, "batch": 32, "min_workers": 2, "rounds_in_flight": 2}
INNER = {"name": "momentum", "lr": 0.05, "momentum": 0.9}


def test_rounds_overlap_and_a_restarted_master_goes_on_with_both(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start_master()
        for name in ("ada", "bob"):
            cluster.start_worker(name)
        cluster.start_console()
        cluster.until(lambda state: len(state["workers"]) == 2, "two workers")
        cluster.run(inner=INNER, **SPEC)
        cluster.until(lambda state: version(state) >= 3, "three rounds")
        cluster.kill("master")
        cluster.start_master()
        state = cluster.until(finished, "all rounds")
        log = cluster.log("ada")
    assert "comes after round 1" in log
    assert "starts again" not in cluster.log("master")
    assert state["run"]["best_eval"]["accuracy"] > ACCURACY
