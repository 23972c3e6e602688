"""kill -9 of real processes at each failpoint: the old version or the new, never neither; the run completes."""

import time
from pathlib import Path

import pytest

from services.tests.durability.lives import Lives, run_points, start_points, worker_points
from services.tests.system.cluster import Cluster

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


def test_killed_at_every_failpoint(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        lives = Lives(cluster)
        began = time.monotonic()
        lives.first_starts(start_points())
        middle = time.monotonic()
        lives.play(iter(run_points()), iter(worker_points()), rounds=60)
        print(f"[KILLS] {len(lives.hit)} kills, starts {middle - began:.1f} s, run {time.monotonic() - middle:.1f} s")
    assert set(lives.hit) == {*start_points(), *run_points(), *worker_points()}
