"""Who does not belong is refused with a clear line at its own side and a counted one at the master; work goes on."""

import secrets
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zmq
from zmq.utils import z85

from services.common.protocol.join_string import JoinString, format_join_string, parse_join_string
from services.launch import places
from services.tests.system.cluster import Cluster, finished, linked

pytestmark = pytest.mark.system


def local_join(cluster: Cluster) -> JoinString:
    return parse_join_string(places.local_join_file(cluster.home / "master").read_text())


def refused(state: dict[str, Any]) -> int:
    return int(state["refused"]["count"])


def with_join(join: JoinString) -> dict[str, Any]:
    return {"MAHE_WORKER_JOIN_FILE": "", "MAHE_JOIN": format_join_string(join)}


def test_wrong_secret_wrong_master_key_and_http(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=1)
        join = local_join(cluster)

        cluster.start_worker("wrong-secret", **with_join(replace(join, secret=secrets.token_bytes(32))))
        cluster.until_log("wrong-secret", "this master does not know the key")
        cluster.until(lambda state: refused(state) == 1, "the refused key to be counted")
        cluster.until_log("master", "[AUTH] refused 1, last: a key that is not enrolled")

        other_key = z85.decode(zmq.curve_keypair()[0])
        cluster.start_worker("wrong-key", **with_join(replace(join, server_key=other_key)))
        cluster.until_log("wrong-key", "this master has another key")
        state = cluster.until(lambda state: refused(state) >= 2, "the failed handshake to be counted")
        assert state["refused"]["last"] == "a worker with another master's key"
        cluster.kill("wrong-key")
        cluster.kill("wrong-secret")

        with suppress(ConnectionResetError), socket.create_connection(("127.0.0.1", cluster.port)) as browser:
            browser.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            browser.settimeout(5)
            while browser.recv(1000):
                pass  # until the master hangs up
        cluster.until(lambda state: "a browser?" in state["refused"]["last"], "the HTTP request to be counted")

        cluster.run(dataset="digits", rounds=2)
        cluster.until(finished, "the run to finish with the worker that belongs")


def test_a_join_string_that_is_used_up_or_revoked(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=0)
        made = cluster.api.post("/api/v1/join-strings", {"label": "lab", "uses": 1, "expires_s": 60})
        env = {"MAHE_WORKER_JOIN_FILE": "", "MAHE_JOIN": made["join_string"]}
        cluster.start_worker("first", **env)
        cluster.until(lambda state: linked(state) == ["first"], "the first worker to join")
        cluster.start_worker("second", **env)
        cluster.until_log("second", "this join string is used up; get a new one from the page")
        cluster.delete(f"/api/v1/join-strings/{made['id']}")
        cluster.start_worker("third", **env)
        cluster.until_log("third", "this master does not know the key")
        assert linked(cluster.api.snapshot()) == ["first"], "revoking never touches enrolled workers"


def test_a_removed_worker_stays_parked_over_a_restart_until_it_gets_a_new_join_string(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=1)
        worker = cluster.api.snapshot()["workers"][0]["id"]
        cluster.delete(f"/api/v1/workers/{worker}")
        cluster.until_log("worker-1", "[PARKED]")
        assert cluster.api.snapshot()["workers"] == []
        cluster.kill("worker-1")
        cluster.start_worker("worker-1")
        cluster.until_log("worker-1", "[PARKED]")
        made = cluster.api.post("/api/v1/join-strings", {})
        cluster.kill("worker-1")
        cluster.start_worker("worker-1", MAHE_WORKER_JOIN_FILE="", MAHE_JOIN=made["join_string"])
        state = cluster.until(lambda state: linked(state) == ["worker-1"], "it to join anew")
        assert state["workers"][0]["id"] != worker
