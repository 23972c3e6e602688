"""A real cluster on this PC for a test: master, console and workers as processes, on ports of their own.

Everything is driven through the console's API, as a person's page does. Linux only where it stops single processes.
"""

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from services.launch import places
from services.launch.console_client import TOKEN_HEADER, Link, read_link
from services.launch.processes import Group, Service
from services.launch.waiting import wait_for

START_S = 20.0
WAIT_S = 40.0


def free_port() -> int:
    """A TCP port that nobody uses at present."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster:
    """Start what the test needs; everything ends with the `with` block."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port, self._control_port = free_port(), free_port()
        self._group = Group(home / "logs")
        self.services: dict[str, Service] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            for name in self.services:
                print(f"--- {name}\n{self.log(name)[-3000:]}")
        self._group.stop()

    def start_master(self, module: str = places.MODULES["master"], **env: str) -> None:
        """Start it, also again after its death, on the same port and data. `module`: the shipped, or one like it."""
        own = {
            "MAHE_MASTER_DATA": str(self.home / "master"),
            "MAHE_MASTER_BIND": "127.0.0.1",
            "MAHE_MASTER_PORT": str(self.port),
            "MAHE_MASTER_CONTROL_PORT": str(self._control_port),
        }
        self._start("master", module, {**own, **env})
        join_file = places.local_join_file(self.home / "master")
        self._wait(lambda: join_file.is_file() or None, "the master's join string")

    def start_console(self, **env: str) -> None:
        """Start the console on a free port, also again, and wait until it knows the master."""
        places.console_file(self.home / "console").unlink(missing_ok=True)
        own = {
            "MAHE_CONSOLE_DATA": str(self.home / "console"),
            "MAHE_CONSOLE_CONTROL_DIR": str(self.home / "master" / "control"),
            "MAHE_CONSOLE_PORT": "0",
            "DISPLAY": "",  # no dialog comes up on the screen of whoever tests
            "WAYLAND_DISPLAY": "",
        }
        self._start("console", places.MODULES["console"], {**own, **env})
        self._wait(lambda: read_link(self.home / "console"), "the console's port")
        self.until(bool, "the console to know the master")

    def start_worker(self, name: str, module: str = places.MODULES["worker"], **env: str) -> None:
        """Start one worker in a data folder of its own. `module`: the shipped agent, or one that is like it."""
        own = {
            "MAHE_WORKER_DATA": str(self.home / name),
            "MAHE_WORKER_JOIN_FILE": str(places.local_join_file(self.home / "master")),
            "MAHE_WORKER_NAME": name,
            "MAHE_WORKER_THREADS": "1",
        }
        self._start(name, module, {**own, **env})

    def start(self, workers: int) -> None:
        """Master, console and this many workers, all joined. What needs not wait for one another starts together."""
        self.start_master()
        for number in range(1, workers + 1):
            self.start_worker(f"worker-{number}")
        self.start_console()
        self.until(lambda state: len(linked(state)) == workers, f"{workers} workers to join")

    @property
    def api(self) -> Link:
        """The console's API."""
        link = read_link(self.home / "console")
        assert link is not None
        return link

    def delete(self, path: str) -> None:
        """DELETE, as the page does."""
        self.api._ask("DELETE", path, None)

    def download(self, path: str) -> bytes:
        """The body of GET, as it is."""
        connection = self.api.connect(WAIT_S)
        try:
            connection.request("GET", path, headers={TOKEN_HEADER: self.api.token})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            return response.read()
        finally:
            connection.close()

    def run(self, **spec: Any) -> str:
        """Start a run; its id."""
        return str(self.api.post("/api/v1/runs", spec)["run"])

    def until(self, holds: Callable[[dict[str, Any]], bool], what: str, limit_s: float = WAIT_S) -> dict[str, Any]:
        """The first state for which `holds` is true."""

        def probe() -> dict[str, Any] | None:
            state = self.api.snapshot()
            return state if holds(state) else None

        state: dict[str, Any] = self._wait(probe, what, limit_s)
        return state

    def until_log(self, name: str, words: str, limit_s: float = WAIT_S) -> None:
        """Wait until a service, in its present life, has written these words."""
        path = self.home / "logs" / f"{name}.log"
        self._wait(lambda: words in path.read_text() or None, f"{name} to write {words!r}", limit_s)

    def log(self, name: str) -> str:
        """All that a service has written, over all its lives."""
        files = [*sorted((self.home / "logs").glob(f"{name}.*.log")), self.home / "logs" / f"{name}.log"]
        return "".join(path.read_text() for path in files if path.is_file())

    def kill(self, name: str) -> None:
        """kill -9, and wait for the death."""
        service = self.services.pop(name)
        service.process.kill()
        service.process.wait()
        self._group.forget(service)
        kept = self.home / "logs" / f"{name}.log"
        kept.rename(kept.with_name(f"{name}.{time.monotonic_ns()}.log"))

    def signal_trainer(self, name: str, word: str) -> None:
        """Send a signal, by its POSIX name, to the trainer process of a worker."""
        children = Path(f"/proc/{self.services[name].process.pid}/task").glob("*/children")
        for pid in [int(word) for path in children for word in path.read_text().split()]:
            if "trainer" in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, getattr(signal, word))

    def _start(self, name: str, module: str, env: dict[str, str]) -> None:
        kept = {**places.without_service_settings(), **env}
        self.services[name] = self._group.start(name, module, kept)

    def _wait(self, probe: Callable[[], Any], what: str, limit_s: float = START_S) -> Any:
        return wait_for(probe, what, limit_s, self._group.check)


def linked(state: dict[str, Any]) -> list[str]:
    """Names of the workers that can be reached."""
    return [str(worker["name"]) for worker in state.get("workers", []) if worker["link"] == "LINKED"]


def version(state: dict[str, Any]) -> int:
    """The current run's version; -1 without one."""
    return int(state["run"]["version"]) if state.get("run") else -1


def finished(state: dict[str, Any]) -> bool:
    """Whether the current run has closed all its rounds and the last one is evaluated."""
    run = state.get("run")
    return bool(run and run["finished"] and (run["last_eval"] or {}).get("version") == run["version"])


def lease_states(state: dict[str, Any]) -> dict[str, str]:
    """State of the lease of each worker (by name) in the open round."""
    names = {worker["id"]: worker["name"] for worker in state.get("workers", [])}
    rounds = (state.get("run") or {}).get("rounds_open") or []
    return {names.get(lease["worker"], "?"): lease["state"] for round_ in rounds for lease in round_["leases"]}
