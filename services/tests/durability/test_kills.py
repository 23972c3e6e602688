"""kill -9 of real processes at failpoints: the old version or the new, never neither; the run completes by itself.

Every step of a checkpoint, and of the rest one of each kind; `python -m services.tests.durability` takes all of them.
"""

from pathlib import Path

import pytest

from services.common.host import failpoints
from services.tests.durability.lives import Lives
from services.tests.system.cluster import Cluster

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(240)]  # real processes, for too long for `make test`

STARTS = ["keys.before-rename", "store.term.committed", "join-file.before-folder-fsync"]
MASTER = [
    "store.enrol.committed",
    "store.run-added.committed",
    *(f"checkpoint.{step}" for step in failpoints.FILE_STEPS),
    "store.assignment.before-commit",
    "store.assignment.committed",
    "store.round.before-commit",
    "round.before-announce",
    "prune.before-remove",
]
WORKER = [
    "identity.before-folder-fsync",
    "anchor.before-write",
    "anchor.before-rename",
    "residual.before-write",
    "delta.before-fsync",
    "note.before-rename",
    "forget.before-residual",
    "forget.before-delta",
]


def test_killed_from_failpoint_to_failpoint(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        lives = Lives(cluster)
        lives.first_starts(STARTS)
        lives.play(iter(MASTER), iter(WORKER), rounds=30)
        lives.removals(["store.revoke.committed", "parked.before-folder-fsync"])
    print(f"[KILLS] {len(lives.hit)} kills, the slowest start took {lives.slowest_s:.1f} s")
    assert len(lives.hit) == len(STARTS) + len(MASTER) + len(WORKER) + 2
