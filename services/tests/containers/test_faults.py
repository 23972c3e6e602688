"""What goes wrong with containers: some are killed, some machines lack something, and a sentence says what to do."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from services.tests.containers.stack import Stack, docker
from services.tests.system.cluster import finished, lease_states, linked, version
from services.tests.tidy.source import ROOT

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]

MASTER, WORKER = "mahe-master:0.1.0", "mahe-worker:0.1.0"
SLOW = {"dataset": "digits", "rounds": 2, "k_steps": 16000, "min_workers": 2}
DATA = "/var/lib/mahe/master"


def said(image: str, *options: str) -> str:
    """What a service says that cannot start."""
    done = docker("run", "--rm", "--read-only", *options, image, check=False)
    assert done.returncode == 1
    return done.stdout


def test_a_worker_killed_in_mid_round_comes_back_and_the_run_completes() -> None:
    with Stack() as stack:
        stack.up()
        stack.until(lambda state: len(linked(state)) == 2, "two workers to join")
        workers = stack.identities()
        stack.run(**SLOW)
        stack.until(lambda state: "OUT" in lease_states(state).values(), "a round to be trained")
        docker("kill", str(stack.containers("worker")[0]["Id"]))
        stack.up()
        state = stack.until(finished, "the run to complete", 120)
        assert version(state) == SLOW["rounds"]
        assert stack.identities() == workers


def test_a_killed_master_goes_on_by_itself() -> None:
    with Stack() as stack:
        stack.up()
        run = stack.run(**SLOW)
        stack.until(lambda state: version(state) == 1, "a round to be closed")
        stack.compose("kill", "-s", "KILL", "master")
        stack.up()
        state = stack.until(finished, "the run to complete", 120)
        assert state["run"]["id"] == run
        assert version(state) == SLOW["rounds"]
        assert f"run {run}, RUNNING, is taken up at version" in stack.log("master")


def test_a_machine_without_ipv6() -> None:
    name = Stack().name
    without = ("--sysctl", "net.ipv6.conf.all.disable_ipv6=1", "--sysctl", "net.ipv6.conf.default.disable_ipv6=1")
    try:
        docker("run", "--detach", "--name", name, *without, MASTER)
        while "[MASTER] ready for workers" not in (log := docker("logs", name).stdout):
            assert "[ERROR]" not in log
    finally:
        docker("rm", "--force", name)
    own = ("--tmpfs", f"{DATA}:uid=10001,gid=10001,mode=0700")
    text = said(MASTER, *without, *own, "--env", "MAHE_MASTER_BIND=::1")
    assert "[::1] cannot be bound (Cannot assign requested address" in text
    assert "set MAHE_MASTER_BIND (BIND_FAILED)" in text


def test_a_data_volume_that_is_read_only() -> None:
    volume = Stack().name
    try:
        text = said(MASTER, "--volume", f"{volume}:{DATA}:ro")
        assert f"the folder {DATA} cannot be written (Read-only file system); free it or set MAHE_HOME" in text
        text = said(WORKER, "--volume", f"{volume}:/var/lib/mahe/worker:ro")
        assert "the folder /var/lib/mahe/worker cannot be written (Read-only file system)" in text
    finally:
        docker("volume", "rm", "--force", volume)


def test_a_full_data_volume() -> None:
    text = said(MASTER, "--tmpfs", f"{DATA}:size=4k,uid=10001,gid=10001,mode=0700")
    assert f"the store {DATA}/master.sqlite cannot be opened: database or disk is full; check the disk" in text


def test_a_data_volume_that_becomes_full(tmp_path: Path) -> None:
    small = tmp_path / "small.yaml"
    options = "{type: tmpfs, device: tmpfs, o: 'size=300k,uid=10001,gid=10001,mode=0700'}"
    small.write_text(f"volumes: {{master: {{driver: local, driver_opts: {options}}}}}\n")
    with Stack(over=small) as stack:
        stack.up()
        stack.run(dataset="digits", rounds=50, k_steps=10, model={"family": "mlp", "hidden": [128, 128]})
        state = stack.until(lambda state: state["run"]["phase"] == "FAILED", "the run to fail")
        print(state["run"]["reason"])
        assert "free the disk" in state["run"]["reason"]
        assert len(linked(stack.until(lambda state: len(linked(state)) == 2, "the workers to stay"))) == 2


def test_a_port_in_use_is_named_before_the_engine_is_asked() -> None:
    with Stack() as stack, socket.socket() as taken:
        taken.bind(("0.0.0.0", stack.port))
        taken.listen()
        done = subprocess.run(
            [sys.executable, "-m", "services", "up", "--use", "containers", "--no-browser"],
            cwd=ROOT,
            env={**os.environ, **stack.env, "COMPOSE_PROJECT_NAME": stack.name},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert f"port {stack.port} of this PC is in use by" in done.stderr
        assert "stop it, or choose another with MAHE_MASTER_PORT" in done.stderr
        assert stack.containers() == []
