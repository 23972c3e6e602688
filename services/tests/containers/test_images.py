"""The images: small, labelled, without root; and what docs/CONTAINERS.md says of make up, make down and backups."""

import json
import os
import subprocess
import sys

import pytest

from services import __version__
from services.tests.containers.stack import Stack, docker
from services.tests.system.cluster import finished, linked
from services.tests.tidy.source import ROOT

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]

ADDED_BYTES_MAX = 250_000_000  # what the worker's image may add to its base
FIRST_LAYER = "PATH=/opt/mahe/bin"  # of stage `base`: what lies above it is ours


@pytest.mark.parametrize("service", ["master", "worker", "console"])
def test_the_image_of(service: str, capsys: pytest.CaptureFixture[str]) -> None:
    image = json.loads(docker("image", "inspect", f"mahe-{service}:{__version__}").stdout)[0]
    config = image["Config"]
    assert config["User"] == "10001:10001"
    assert config["Healthcheck"]["Test"] == ["CMD", "python3", "-m", "services.launch.health", service]
    assert config["Labels"]["org.opencontainers.image.version"] == __version__
    assert config["Labels"]["org.opencontainers.image.licenses"] == "GPL-3.0-or-later"
    assert (
        set(config.get("ExposedPorts") or {})
        == {
            "master": {"47820/tcp"},
            "worker": set(),
            "console": {"47830/tcp"},
        }[service]
    )
    added = 0
    history = ("history", "--no-trunc", "--human=false", "--format", "{{.Size}} {{.CreatedBy}}")
    for line in docker(*history, f"mahe-{service}:{__version__}").stdout.splitlines():
        added += int(line.split()[0])
        if FIRST_LAYER in line:
            break
    assert 0 < added <= ADDED_BYTES_MAX
    with capsys.disabled():
        print(f"\n[IMAGES] mahe-{service}: {image['Size'] / 1e6:.0f} MB, {added / 1e6:.0f} MB over its base")
    answer = docker("run", "--rm", "--read-only", "--entrypoint", "mahe", f"mahe-{service}:{__version__}", "--version")
    assert answer.stdout.strip() == f"mahe {__version__}"
    kernels = docker("run", "--rm", "--read-only", f"mahe-{service}:{__version__}", "kernels")
    assert "[KERNELS] self-test: " in kernels.stdout


@pytest.mark.parametrize("file", ["compose.yaml", "deploy/compose.worker.yaml"])
def test_an_empty_environment_is_enough(file: str) -> None:
    told = subprocess.run(
        ["docker", "compose", "--env-file", os.devnull, "--file", file, "--profile", "demo", "config"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "variable is not set" not in told.stderr


def test_a_leader_has_to_say_where_it_is() -> None:
    told = docker("compose", "--env-file", os.devnull, "--file", "deploy/compose.master.yaml", "config", check=False)
    assert told.returncode != 0
    assert "MAHE_ADVERTISE is missing a value: say under which addresses other machines reach this one" in told.stdout


def test_a_backup_of_the_master_restores_it() -> None:
    tar = ("run", "--rm", "--no-deps", "-T", "--entrypoint", "tar", "master", "-C", "/var/lib/mahe/master")
    with Stack() as stack:
        stack.up("--scale", "worker=1")
        run = stack.run(dataset="spiral3", rounds=2, k_steps=10)
        stack.until(finished, "the run to finish")
        workers = stack.api.get("/api/v1/workers")["items"]
        stack.compose("stop")
        backup = subprocess.run(
            ["docker", "compose", *stack.where, *tar, "-cz", "."],
            cwd=ROOT,
            env={**os.environ, **stack.env},
            capture_output=True,
            check=True,
        ).stdout
        docker("volume", "rm", "--force", *_unused(stack, "master"))
        subprocess.run(
            ["docker", "compose", *stack.where, *tar, "-xz"],
            cwd=ROOT,
            env={**os.environ, **stack.env},
            input=backup,
            check=True,
        )
        stack.up("--scale", "worker=1")
        state = stack.until(lambda state: len(linked(state)) == 1, "the worker to be known again")
        assert state["run"]["id"] == run
        assert [one["id"] for one in stack.api.get("/api/v1/workers")["items"]] == [one["id"] for one in workers]


def test_make_up_and_down_with_containers() -> None:
    with Stack(MAHE_ADVERTISE="") as stack:
        env = {**os.environ, **stack.env, "COMPOSE_PROJECT_NAME": stack.name}

        def mahe(*words: str) -> str:
            command = [sys.executable, "-m", "services", *words]
            return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout

        said = mahe("up", "--use", "auto", "--no-browser")
        assert "[UP] starting containers (an engine answers; else: make up USE=processes)" in said
        assert f"the page: http://127.0.0.1:{stack.console_port}/" in said
        assert "mahe join mahe1." in said
        assert "workers reach this PC at tcp://" in said
        assert "4 containers run here" in said
        assert "[DOWN] stopping the containers of this checkout" in mahe("down")
        assert stack.containers() == []


def _unused(stack: Stack, service: str) -> list[str]:
    """The container and then the volume of a service: to remove a volume, nothing may use it."""
    stack.compose("rm", "--force", "--stop", service)
    return [f"{stack.name}_{service}"]
