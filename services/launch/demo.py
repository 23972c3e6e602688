"""`mahe demo`: a whole cluster on this PC, for one run: master, workers and console as processes on loopback.

It keeps to a folder of its own, which each demo begins anew. Not for real use: that is `mahe up`.
"""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from services.common.errors import MaheError, SettingsError
from services.common.host.files import FolderLock, make_folder
from services.common.host.machine import home, threads_usable
from services.launch import places
from services.launch.console_client import EventStream, Link, read_link
from services.launch.display import Lines
from services.launch.ending import say_end
from services.launch.follow import Follower
from services.launch.interrupts import Interrupts
from services.launch.lines import say, say_error
from services.launch.page import open_page
from services.launch.ports import port_free
from services.launch.processes import Group, Service
from services.launch.waiting import wait_for

LOOPBACK = "127.0.0.1"
START_S = 60.0
REACHABLE = {"LINKED", "SUSPECT"}  # the master's words
RECOMMENDED = ("model", "inner", "outer", "rounds", "k_steps", "batch")
STAY_POLL_S = 0.2

T = TypeVar("T")


@dataclass(frozen=True)
class DemoOptions:
    """What the command line says; None: what the catalog recommends for the data set."""

    rounds: int | None
    workers: int
    dataset: str
    min_workers: int
    k_steps: int | None
    batch: int | None
    browser: bool
    stay: bool
    verbose: bool


def run_demo(options: DemoOptions) -> int:
    """Start all, train, print, stop all. 0: the run finished."""
    root = make_folder(home() / places.DEMO)
    lock = FolderLock(root)
    if not lock.acquire():
        raise SettingsError(
            f"another demo runs in {root}; stop it with Ctrl-C in its terminal, or set MAHE_HOME to another folder",
            code="DATA_DIR_LOCKED",
        )
    try:
        begin_anew(root)
        logs = None if options.verbose else home() / places.LOGS
        with Interrupts() as interrupts, Group(logs) as group:
            return Demo(options, root, group, interrupts).run()
    finally:
        lock.release()


def begin_anew(root: Path) -> None:
    """Remove what the last demo left, but the console's token: a page left open goes on working."""
    try:
        for old in (root / "master", root / "workers"):
            if old.exists():
                shutil.rmtree(old)
        places.console_file(root / "console").unlink(missing_ok=True)
    except OSError as error:
        raise SettingsError(
            f"the last demo's {error.filename} cannot be removed ({error.strerror}); remove {root} by hand",
            code="DATA_DIR_UNUSABLE",
        ) from None


class Demo:
    """One demo in progress."""

    def __init__(self, options: DemoOptions, root: Path, group: Group, interrupts: Interrupts) -> None:
        self._options = options
        self._master = root / "master"
        self._workers_data = root / "workers"
        self._console = root / "console"
        self._group = group
        self._interrupts = interrupts
        self._workers: list[Service] = []

    def run(self) -> int:
        """From the first process to the last line."""
        link = self._start()
        self._wait_for_workers(link)
        spec = demo_spec(link, self._options)
        say("DEMO", f"the page: {link.url}")
        open_page(link.url, self._options.browser)
        events = EventStream(link)
        try:
            run = str(link.post("/api/v1/runs", spec)["run"])
            ending = Follower(link, run, self._watch, Lines(), attended=self._options.stay).follow(events)
        finally:
            events.close()
        say_end(link, run, ending, "DEMO")
        if self._options.stay:
            say("DEMO", f"the page stays at {link.url} until Ctrl-C")
            self._stay()
        else:
            say("DEMO", f"the page at {link.url} ends with the demo; --stay keeps it")
        return 0 if ending.finished else 1

    def _start(self) -> Link:
        count = self._options.workers
        common = places.without_service_settings()
        say("DEMO", f"starting a master, {count} worker{'s' if count > 1 else ''} and a console on this PC")
        self._group.start("master", places.MODULES["master"], common | self._master_env())
        for what in (places.control_file(self._master), places.local_join_file(self._master)):
            self._wait(partial(_there, what), f"the master to write {what}")
        self._group.start("console", places.MODULES["console"], common | self._console_env())
        for number in range(1, count + 1):
            env = common | self._worker_env(number)
            self._workers.append(self._group.start(f"worker-{number}", places.MODULES["worker"], env))
        return self._wait(lambda: read_link(self._console), "the console to open its port")

    def _master_env(self) -> dict[str, str | None]:
        ports = {name: free_or_any(name) for name in ("MAHE_MASTER_PORT", "MAHE_MASTER_CONTROL_PORT")}
        return {
            **ports,
            "MAHE_MASTER_DATA": str(self._master),
            "MAHE_MASTER_BIND": LOOPBACK,
            "MAHE_ADVERTISE": LOOPBACK,
        }

    def _console_env(self) -> dict[str, str | None]:
        return {
            "MAHE_CONSOLE_DATA": str(self._console),
            "MAHE_CONSOLE_CONTROL_DIR": str(places.control_file(self._master).parent),
            "MAHE_CONSOLE_PORT": free_or_any("MAHE_CONSOLE_PORT"),
            "MAHE_CONSOLE_UI_WAIT_S": None if self._options.browser else "0",
        }

    def _worker_env(self, number: int) -> dict[str, str | None]:
        return {
            "MAHE_WORKER_DATA": str(self._workers_data),
            "MAHE_WORKER_JOIN_FILE": str(places.local_join_file(self._master)),
            "MAHE_WORKER_NAME": f"worker-{number}",
            "MAHE_WORKER_THREADS": str(max(1, threads_usable() // self._options.workers)),
        }

    def _wait_for_workers(self, link: Link) -> None:
        joined: list[str] = []

        def probe() -> bool | None:
            joined[:] = joined_workers(link)
            return len(joined) >= self._options.workers or None

        self._wait(probe, "the workers to join", lambda: f"{len(joined)} of {self._options.workers} so far")

    def _stay(self) -> None:
        while not self._interrupts.requested:
            self._group.check()
            time.sleep(STAY_POLL_S)

    def _wait(self, probe: Callable[[], T | None], what: str, reason: Callable[[], str] = str) -> T:
        return wait_for(probe, what, START_S, self._watch_start, lambda sentence: say("WAIT", sentence), reason)

    def _watch_start(self) -> None:
        """Until all have joined, the end of any process is the end of the demo."""
        self._interrupts.check()
        self._group.check()

    def _watch(self) -> None:
        """In a run, workers may die: that is what MAHE is for. Not the last one, nor master and console."""
        self._interrupts.check()
        for worker in [one for one in self._workers if one.ended]:
            self._workers.remove(worker)
            if self._workers:
                say_error(worker.epitaph(), kind="WARN")
                self._group.forget(worker)
        self._group.check()


def demo_spec(link: Link, options: DemoOptions) -> dict[str, Any]:
    """The run's specification: what the catalog recommends, but for what the command line says."""
    name = options.dataset.removeprefix("builtin:")
    items = {str(item["name"]): item for item in link.get("/api/v1/datasets")["items"]}
    if name not in items:
        raise SettingsError(f"there is no data set {name!r}; there are: {', '.join(sorted(items))}", code="DATASET")
    recommended = items[name].get("recommended") or {}
    chosen = {"rounds": options.rounds, "k_steps": options.k_steps, "batch": options.batch}
    return (
        {"name": f"demo {name}", "dataset": name, "min_workers": options.min_workers}
        | {key: recommended[key] for key in RECOMMENDED if key in recommended}
        | {key: value for key, value in chosen.items() if value is not None}
    )


def joined_workers(link: Link) -> list[str]:
    """The workers that could take work now."""
    try:
        workers = link.snapshot().get("workers") or []
    except MaheError:
        return []  # the console has not heard of the master yet
    return [str(worker["id"]) for worker in workers if worker["link"] in REACHABLE]


def free_or_any(variable: str) -> str:
    """The port to ask for: what the variable says, else its default where that is free, else 0 (any), and says so."""
    named = os.environ.get(variable)
    if named:
        return named
    port = places.PORTS[variable]
    if port_free(port, LOOPBACK):
        return str(port)
    say("DEMO", f"port {port} is in use, so another one is taken")
    return "0"


def _there(path: Path) -> bool | None:
    return path.is_file() or None
