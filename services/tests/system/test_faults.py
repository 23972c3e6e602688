"""Real processes on this PC, killed and cut: the run completes, nothing closed is lost, every wait says its reason."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.launch.console_client import TOKEN_HEADER
from services.master.shell.checkpoints import is_sealed
from services.tests.system.cluster import Cluster, finished, lease_states, linked, version

pytestmark = pytest.mark.system
LONG: dict[str, Any] = {"dataset": "digits", "k_steps": 400, "batch": 32, "rounds": 6}  # rounds of about half a second


def test_rings_train_end_to_end_after_min_workers_are_there(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=1)
        items = cluster.api.get("/api/v1/datasets")["items"]
        card = next(item for item in items if item["name"] == "rings4")
        assert (card["dimensions"], card["classes"]) == (2, 4)
        cluster.run(dataset="builtin:rings4", min_workers=2, **card["recommended"])
        state = cluster.until(lambda state: state["run"]["phase"] == "WAITING", "the run to wait")
        cluster.until(lambda state: "start one more" in state["run"]["reason"], "the reason")
        assert "is WAITING: 1 of 2 workers; start one more" in cluster.log("master")
        cluster.start_worker("worker-2")
        state = cluster.until(finished, "the run to finish")
        assert state["run"]["last_eval"]["accuracy"] > 0.9
        rows = cluster.api.get(f"/api/v1/runs/{state['run']['id']}/rounds?limit=500")["items"]
        assert [row["round"] for row in rows] == list(range(1, card["recommended"]["rounds"] + 1))
        assert {row["workers"] for row in rows} == {2}


def test_a_worker_killed_in_mid_round(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=2)
        cluster.run(**{**LONG, "k_steps": 4_000})  # on a fast PC a round of LONG is over before it is stopped
        cluster.until(lambda state: version(state) >= 1 and "worker-2" in lease_states(state), "round 2")
        cluster.signal_trainer("worker-2", "SIGSTOP")  # it surely has not submitted when it dies
        cluster.until(lambda state: lease_states(state).get("worker-2") == "OUT", "its lease")
        cluster.signal_trainer("worker-2", "SIGKILL")
        cluster.kill("worker-2")
        state = cluster.until(finished, "the run to finish without it")
        assert state["run"]["version"] == LONG["rounds"]
        assert "closes early" in cluster.log("master")


def test_a_trainer_killed_in_mid_round_is_noticed_by_its_agent(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=1)
        cluster.run(**LONG)
        cluster.until(lambda state: version(state) >= 1, "round 1")
        cluster.signal_trainer("worker-1", "SIGKILL")
        cluster.until(finished, "the run to finish with a new trainer")


def test_a_start_that_is_asked_for_again_is_the_same_run_whatever_was_killed_meanwhile(tmp_path: Path) -> None:
    def ask(number: int) -> str:
        headers = {TOKEN_HEADER: cluster.api.token, "Idempotency-Key": f"start {number}"}
        url = f"{cluster.api.url}api/v1/runs"
        answer = httpx.post(url, json={"rounds": number}, headers=headers, timeout=30, trust_env=False)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["run"])

    with Cluster(tmp_path) as cluster:
        cluster.start(workers=0)
        first = [ask(number) for number in (1, 2, 3)]
        assert len(set(first)) == 3
        cluster.kill("master")
        cluster.start_master()
        assert [ask(number) for number in (1, 2, 3)] == first
        for name, start in (("console", cluster.start_console), ("master", cluster.start_master)):
            cluster.kill(name)
            start()
        assert [ask(number) for number in (3, 2, 1)] == first[::-1]
        assert len(cluster.api.runs(10)) == 3


def test_a_master_killed_in_mid_round_resumes_by_itself_and_uses_held_deltas(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=2)
        cluster.run(**{**LONG, "balance": "equal"})
        cluster.until(lambda state: version(state) >= 2 and "worker-2" in lease_states(state), "round 3")
        cluster.signal_trainer("worker-2", "SIGSTOP")
        one_in = {"worker-1": "ACCEPTED", "worker-2": "OUT"}
        state = cluster.until(lambda state: lease_states(state) == one_in, "one delta of two")
        durable = version(state)
        cluster.kill("master")
        time.sleep(1)
        cluster.start_master()
        cluster.signal_trainer("worker-2", "SIGCONT")
        cluster.until(lambda state: len(linked(state)) == 2, "both workers to rejoin by themselves")
        state = cluster.until(finished, "the run to finish by itself")
        log = cluster.log("master")
        assert f"is taken up at version {durable}" in log
        assert "starts again" not in log, "the table of the open round stands, nothing is assigned anew"
        rows = cluster.api.get(f"/api/v1/runs/{state['run']['id']}/rounds?limit=500")["items"]
        assert [row["round"] for row in rows] == list(range(1, LONG["rounds"] + 1)), "no closed round is lost"
        assert rows[durable]["workers"] == 2, "the held delta and the late one both count"


def test_two_masters_on_one_data_folder(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster, Cluster(tmp_path) as second:
        cluster.start_master()
        service = second._group.start("second", "services.master", {"MAHE_MASTER_DATA": str(tmp_path / "master")})
        assert service.process.wait(20) == 1
        assert "another master uses the data folder" in second.log("second")
        second._group.forget(service)


def test_everything_stops_cleanly_on_sigterm(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=1)
        cluster.run(**LONG)
        cluster.until(lambda state: version(state) >= 1, "round 1")
        for name in ("worker-1", "console", "master"):
            service = cluster.services[name]
            began = time.monotonic()
            os.kill(service.process.pid, signal.SIGTERM)
            assert service.process.wait(10) == 0, cluster.log(name)
            assert time.monotonic() - began < 5
            cluster._group.forget(service)
        assert "Traceback" not in cluster.log("master") + cluster.log("worker-1") + cluster.log("console")


def test_all_workers_are_removed_at_once_and_stay_away(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=2)
        cluster.delete("/api/v1/workers")
        cluster.until(lambda state: not state["workers"], "the workers to be gone")
        for name in ("worker-1", "worker-2"):
            cluster.until_log(name, "stays away until it is started with a new join string")


def test_runs_that_wait_begin_one_after_the_other_also_when_the_master_is_killed(tmp_path: Path) -> None:
    short: dict[str, Any] = {"dataset": "gauss3", "k_steps": 5, "batch": 32, "rounds": 3}
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=1)
        cluster.run(**LONG)
        names = [cluster.run(**short, model_path=f"models/{number}.npz") for number in (2, 3)]
        cluster.until(lambda state: version(state) >= 1, "round 1")
        cluster.kill("master")
        cluster.start_master()
        state = cluster.until(lambda state: bool(state.get("queue")), "the master to be back")
        assert [one["id"] for one in state["queue"]] == names
        state = cluster.until(lambda state: finished(state) and state["run"]["id"] == names[1], "the last to finish")
        assert state["queue"] == []
        for number in (2, 3):
            path = tmp_path / "master" / "models" / f"{number}.npz"
            cluster.until(lambda _, path=path: path.exists(), "the model")  # type: ignore[misc]
            assert is_sealed(path.read_bytes())
        for run in cluster.api.get("/api/v1/runs")["items"]:
            assert run["finished"], run["id"]
            rows = cluster.api.get(f"/api/v1/runs/{run['id']}/rounds?limit=500")["items"]
            assert [row["round"] for row in rows] == list(range(1, run["spec"]["rounds"] + 1))
            assert rows[-1]["eval_loss"] is not None, "the last version is evaluated before the next run begins"
