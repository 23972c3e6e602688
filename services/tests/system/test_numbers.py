"""One round of a real cluster against its recomputation: shards, batches, sign, weights and sum are what they say."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.common.learning import LocalTask, build_inner, build_model, describe, load, run_local_steps
from services.tests.system.cluster import Cluster, finished

pytestmark = pytest.mark.system
MODEL = {"family": "mlp", "hidden": [16]}
INNER = {"name": "sgd", "lr": 0.1}
SEED = 11


def parameters(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as archive:
        return archive["parameters"]


def test_version_1_is_version_0_minus_the_weighted_mean_of_the_deltas(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start_master()
        for name, score in (("fast", "3000"), ("slow", "1000")):
            cluster.start_worker(name, MAHE_WORKER_SCORE=score)
        cluster.start_console()
        cluster.until(lambda state: len(state["workers"]) == 2, "two workers")
        spec = {"model": MODEL, "inner": INNER, "rounds": 1, "k_steps": 10, "batch": 50, "seed": SEED}
        run = cluster.run(dataset="digits", min_workers=2, encoding="fp32", aggregator="mean", **spec)
        cluster.until(finished, "the round")
        folder = tmp_path / "master" / "runs" / run
        with sqlite3.connect(tmp_path / "master" / "master.sqlite") as store:
            table = json.loads(store.execute("SELECT body FROM assignments").fetchone()[0])
        store.close()
        anchor, version_1 = parameters(folder / "ckpt-0.npz"), parameters(folder / "ckpt-1.npz")

    assert sorted(lease["samples"] for lease in table["leases"]) == [250, 750], "scores of 3:1 on 1,000 samples"
    dataset = load(describe("digits"))
    model = build_model(MODEL, dataset.x_train.shape[1], dataset.classes)
    assert np.array_equal(anchor, model.initial_parameters(SEED))
    mean = np.zeros(len(anchor), dtype=np.float64)
    for lease in table["leases"]:
        ranges = tuple((start, stop) for start, stop in lease["ranges"])
        task = LocalTask(SEED, 1, lease["shard"], ranges, lease["batch"], lease["k_steps"], lease["delta_scale"])
        result = run_local_steps(
            model, build_inner(INNER, len(anchor)), anchor, dataset, task, lambda step, loss: False
        )
        assert result.samples == lease["samples"]
        mean += result.delta.astype(np.float64) * lease["samples"] / 1000
    assert np.abs(mean).max() > 1e-3, "something was learnt"
    assert np.allclose(version_1, anchor - mean, rtol=0, atol=1e-6)
