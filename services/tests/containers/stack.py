"""One compose project of this checkout for a test: name, ports and volumes are its own, and all of it goes at the end.

Driven as people drive it: `docker compose`, the console's API, log lines. The images are there already.
"""

import json
import os
import secrets
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from services.launch.console_client import Link
from services.launch.waiting import wait_for
from services.tests.system.cluster import free_port
from services.tests.tidy.source import ROOT

COMMAND_S = 120.0
WAIT_S = 60.0
CONSOLE_FILE = "/var/lib/mahe/console/console.json"


def docker(*words: str, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    """`docker words`; its output with what it said of errors in one text."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAHE_", "COMPOSE_"))}
    done = subprocess.run(
        ["docker", *words],
        cwd=ROOT,
        env={**kept, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )
    assert not check or done.returncode == 0, f"docker {' '.join(words)}: {done.stdout[-3000:]}"
    return done


class Stack:
    """A compose project. Everything, volumes too, ends with the `with` block."""

    def __init__(self, file: str = "compose.yaml", over: Path | None = None, **env: str) -> None:
        self.name = f"mahe-test-{secrets.token_hex(4)}"
        self.port, self.console_port = free_port(), free_port()
        self.env = {
            "MAHE_MASTER_PORT": str(self.port),
            "MAHE_CONSOLE_PORT": str(self.console_port),
            "MAHE_HEALTH_INTERVAL": "2s",
            "MAHE_ADVERTISE": "127.0.0.1",
            **env,
        }
        files = [ROOT / file, *([over] if over else [])]  # `over` changes something of `file`
        named = [word for one in files for word in ("--file", str(one))]
        self.where = ("--project-name", self.name, "--env-file", os.devnull, *named)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            print(self.compose("logs", "--no-color", "--tail", "60", check=False).stdout)
        self.compose("--profile", "demo", "down", "--volumes", "--timeout", "3", check=False)

    def compose(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`docker compose words` in this project, with nothing of a `.env` that may lie here."""
        return docker("compose", *self.where, *words, check=check, **self.env)

    def up(self, *words: str) -> None:
        """Up, and wait until all are healthy."""
        self.compose("up", "--detach", "--wait", *words)

    @property
    def api(self) -> Link:
        """The console's API, at the published port."""
        found = json.loads(self.compose("exec", "-T", "console", "cat", CONSOLE_FILE).stdout)
        return Link(str(found["url"]), str(found["token"]))

    def run(self, **spec: Any) -> str:
        """Start a run; its id."""
        return str(self.api.post("/api/v1/runs", spec)["run"])

    def until(self, holds: Callable[[dict[str, Any]], bool], what: str, limit_s: float = WAIT_S) -> dict[str, Any]:
        """The first state for which `holds` is true."""
        api = self.api

        def probe() -> dict[str, Any] | None:
            state = api.snapshot()
            return state if holds(state) else None

        state: dict[str, Any] = wait_for(probe, what, limit_s, lambda: None)
        return state

    def log(self, service: str) -> str:
        """All that a service has written since its container was made."""
        return self.compose("logs", "--no-color", "--no-log-prefix", service).stdout

    def until_log(self, service: str, words: str, limit_s: float = WAIT_S) -> None:
        """Wait until a service has written these words."""
        wait_for(lambda: words in self.log(service) or None, f"{service} to write {words!r}", limit_s, lambda: None)

    def containers(self, service: str = "") -> list[dict[str, Any]]:
        """What the engine knows of the containers of a service, or of all, also of those that have ended."""
        ids = self.compose("ps", "--all", "--quiet", *([service] if service else [])).stdout.split()
        found: list[dict[str, Any]] = json.loads(docker("inspect", *ids).stdout) if ids else []
        return sorted(found, key=lambda one: str(one["Name"]))

    def identities(self) -> list[str]:
        """The public key of each slot, in the order of the slots."""
        script = "cat /var/lib/mahe/worker/slot-*/identity.json | grep -o 'public_key.*'"
        return self.compose(
            "run", "--rm", "--no-deps", "-T", "--entrypoint", "sh", "worker", "-c", script
        ).stdout.split("\n")[:-1]


def started(containers: list[dict[str, Any]]) -> dict[str, str]:
    """When each container, by id, was started: the same again when nothing has happened to it."""
    return {str(one["Id"]): str(one["State"]["StartedAt"]) for one in containers}
