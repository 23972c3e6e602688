"""The journal of a real master, before and after a kill -9, replays to the same decisions."""

from pathlib import Path

import pytest

from services.master.__main__ import run_replay
from services.tests.system.cluster import Cluster, finished, version

pytestmark = pytest.mark.system


def test_the_journals_of_a_real_run_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journals = [tmp_path / "first.journal", tmp_path / "second.journal"]
    with Cluster(tmp_path) as cluster:
        cluster.start_master(MAHE_MASTER_JOURNAL=str(journals[0]))
        for name in ("worker-1", "worker-2"):
            cluster.start_worker(name)
        cluster.start_console()
        cluster.run(dataset="digits", k_steps=200, batch=32, rounds=8, balance="units", units=3)
        cluster.until(lambda state: version(state) >= 2, "round 2")
        cluster.kill("master")
        cluster.start_master(MAHE_MASTER_JOURNAL=str(journals[1]))
        cluster.until(finished, "the run to finish")
    for journal in journals:
        assert run_replay(journal) == 0
    told = capsys.readouterr().err
    assert told.count("the same decisions") == 2
