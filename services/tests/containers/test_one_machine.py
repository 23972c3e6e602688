"""compose.yaml on one machine: what `docker compose up` gives, keeps and forgets."""

import contextlib
import http.client
import re
import socket

import pytest

from services.common.errors import MaheError
from services.common.host.machine import addresses
from services.tests.containers.stack import Stack, docker, started
from services.tests.system.cluster import finished, linked

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]

SHORT = {"dataset": "spiral3", "rounds": 2, "k_steps": 10}


def reaches(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), 2).close()
    except OSError:
        return False
    return True


def test_up_is_healthy_idle_and_open_to_this_machine_only() -> None:
    with Stack() as stack:
        stack.up()
        state = stack.until(lambda state: len(linked(state)) == 2, "two workers to join")
        assert state["run"] is None
        first = started(stack.containers())
        assert len(first) == 4
        stack.up()
        assert started(stack.containers()) == first
        assert stack.api.get("/api/v1/runs")["items"] == []

        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", stack.console_port, timeout=5)) as page:
            page.request("GET", "/")
            assert page.getresponse().status == 200
        assert reaches("127.0.0.1", stack.port)
        for address in addresses():
            assert reaches(address, stack.port)
            assert not reaches(address, stack.console_port)
        published = {
            (service, port, one["HostIp"])
            for service in ("master", "console", "worker")
            for container in stack.containers(service)
            for port, bound in container["NetworkSettings"]["Ports"].items()
            for one in bound or ()
        }
        assert {entry for entry in published if entry[2] != "::"} == {
            ("master", f"{stack.port}/tcp", "0.0.0.0"),
            ("console", f"{stack.console_port}/tcp", "127.0.0.1"),
        }


def test_containers_have_no_rights_and_secrets_stay_in_volumes() -> None:
    with Stack() as stack:
        stack.up()
        for container in stack.containers():
            assert container["Config"]["User"] == "10001:10001"
            assert container["HostConfig"]["ReadonlyRootfs"]
            assert container["HostConfig"]["CapDrop"] == ["ALL"]
            assert container["HostConfig"]["Memory"]
            assert container["HostConfig"]["NanoCpus"]
        answer = stack.compose("exec", "-T", "master", "sh", "-c", "touch /opt/mahe/x; id -u; ls -ln /var/lib/mahe")
        assert "Read-only file system" in answer.stdout
        assert "10001" in answer.stdout.splitlines()
        token = stack.api.token
        told = docker("inspect", *[str(one["Id"]) for one in stack.containers()]).stdout
        told += stack.compose("config").stdout + stack.compose("logs").stdout
        secret = stack.compose("exec", "-T", "master", "cat", "/var/lib/mahe/master/join/join-string").stdout.strip()
        assert secret.startswith("mahe1.")
        assert token not in told
        assert secret not in told


def test_the_demo_trains_once_and_exits_with_0() -> None:
    with Stack() as stack:
        words = ("--profile", "demo", "up", "--no-color", "--exit-code-from", "demo")
        first = stack.compose(*words)
        accuracy = re.search(r"final accuracy ([0-9.]+)", first.stdout)
        assert accuracy is not None
        assert float(accuracy[1]) >= 0.95
        assert len(re.findall(r"demo-1 +\| \[ROUND\] round=", first.stdout)) >= 20
        again = stack.compose(*words)
        assert "run digits-1 has ended before" in again.stdout
        assert f"final accuracy {accuracy[1]}" in again.stdout
        stack.up()
        assert len(stack.api.get("/api/v1/runs")["items"]) == 1


def test_down_keeps_and_down_with_volumes_forgets() -> None:
    with Stack() as stack:
        stack.up()
        run = stack.run(**SHORT)
        stack.until(finished, "the run to finish")
        key = "cat /var/lib/mahe/master/master-keys.json"
        keys = stack.compose("exec", "-T", "master", "sh", "-c", key).stdout
        token, workers = stack.api.token, stack.identities()
        assert len(workers) == 2

        stack.compose("down")
        assert stack.containers() == []
        stack.up()
        state = stack.until(lambda state: len(linked(state)) == 2, "the workers to come back")
        assert state["run"]["id"] == run
        assert stack.compose("exec", "-T", "master", "sh", "-c", key).stdout == keys
        assert stack.api.token == token
        assert stack.identities() == workers
        assert len(stack.api.get("/api/v1/workers")["items"]) == 2

        stack.compose("down", "--volumes")
        stack.up()
        state = stack.until(lambda state: len(linked(state)) == 2, "the workers to join anew")
        assert state["run"] is None
        assert stack.compose("exec", "-T", "master", "sh", "-c", key).stdout != keys
        assert not set(stack.identities()) & set(workers)


def test_scaled_workers_have_an_identity_each_and_keep_it() -> None:
    with Stack() as stack:
        stack.up("--scale", "worker=4")
        stack.until(lambda state: len(linked(state)) == 4, "four workers to join")
        workers = stack.identities()
        assert len(set(workers)) == 4
        stack.compose("restart", "worker")
        stack.up("--scale", "worker=4")
        stack.until(lambda state: len(linked(state)) == 4, "four workers to come back")
        assert stack.identities() == workers
        assert len(stack.api.get("/api/v1/workers")["items"]) == 4


def test_no_worker_is_a_clean_start_and_a_worker_alone_says_what_it_waits_for() -> None:
    with Stack(MAHE_WORKER_JOIN_WAIT_S="2") as stack:
        stack.compose("up", "--detach", "--scale", "worker=1", "worker")
        stack.until_log(
            "worker", "no join string came into /var/lib/mahe/master/join/join-string in 2 s; is the master"
        )
        stack.up("--scale", "worker=0")
        assert stack.until(lambda state: True, "the state")["workers"] == []
        with pytest.raises(MaheError, match="spiral"):
            stack.api.post("/api/v1/runs", {"dataset": "spirals"})
