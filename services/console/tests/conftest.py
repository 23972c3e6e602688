"""A scripted master, a real console on a free port in a thread of its own, and a client that shows its token."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from services.console.server import ConsoleProcess
from services.console.settings import ConsoleSettings
from services.console.tests import scripted_cluster
from services.console.tests.pages import prepare
from services.console.tests.scripted_master import ScriptedMaster
from services.tests.browser.chromium import chromium, open_page

READY_S = 10.0


@dataclass(frozen=True)
class RunningConsole:
    """One console that serves. `stop` ends it and returns once it has ended."""

    url: str
    token: str
    data: Path
    stop: Callable[[], None]

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://").rstrip("/")

    def client(self) -> httpx.Client:
        """A client as the page is one."""
        return httpx.Client(base_url=self.url, headers={"X-MAHE-Token": self.token}, timeout=20, trust_env=False)


@contextmanager
def running_console(data: Path, control_dir: Path, *, port: int = 0, ui_wait_s: float = 20) -> Iterator[RunningConsole]:
    """A console in a thread; port 0: any free one."""
    settings = ConsoleSettings(data=data, port=port, control_dir=control_dir, ui_wait_s=ui_wait_s)
    process = ConsoleProcess(settings)
    ready = threading.Event()
    place: list[str] = []

    def on_ready(url: str, token: str) -> None:
        place.extend((url, token))
        ready.set()

    thread = threading.Thread(target=process.run, args=(on_ready,))
    thread.start()

    def stop() -> None:
        process.stop()
        thread.join()

    try:
        assert ready.wait(READY_S)
        yield RunningConsole(place[0], place[1], data, stop)
    finally:
        stop()


def wait_until(what: Callable[[], bool], *, timeout_s: float = 15.0) -> None:
    """Wait for something to become true; fails after `timeout_s`."""
    pause = threading.Event()
    for _ in range(int(timeout_s / 0.02)):
        if what():
            return
        pause.wait(0.02)
    raise AssertionError(f"not true after {timeout_s} s")


def last_command(master: ScriptedMaster, name: str) -> dict[str, Any]:
    """The newest command of that name, once there is one."""
    wait_until(lambda: any(command["name"] == name for command in master.commands))
    return next(command for command in reversed(master.commands) if command["name"] == name)


@pytest.fixture
def control_dir(tmp_path: Path) -> Path:
    return tmp_path / "control"


@pytest.fixture
def master(control_dir: Path) -> Iterator[ScriptedMaster]:
    scripted = ScriptedMaster(control_dir, scripted_cluster.state())
    yield scripted
    scripted.close()


@pytest.fixture
def console(tmp_path: Path, control_dir: Path) -> Iterator[RunningConsole]:
    with running_console(tmp_path / "console", control_dir) as running:
        yield running


@pytest.fixture
def client(console: RunningConsole) -> Iterator[httpx.Client]:
    with console.client() as made:
        yield made


@pytest.fixture
def live(master: ScriptedMaster, client: httpx.Client) -> httpx.Client:
    """The client, once the console hears the master."""
    assert master.endpoint
    wait_until(lambda: client.get("/readyz").status_code == 200)
    return client


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@contextmanager
def opened(browser: Browser, master: ScriptedMaster, url: str) -> Iterator[Page]:
    """A page, live; it may not have made an error or asked anybody else in the end."""
    prepare(master)
    page, seen = open_page(browser, url)
    expect(page.locator("#header")).to_contain_text("●live")
    yield page
    assert seen.errors == []
    assert seen.outside == []
    page.close()


@pytest.fixture
def page(browser: Browser, master: ScriptedMaster, console: RunningConsole) -> Iterator[Page]:
    """The dashboard."""
    with opened(browser, master, console.url) as page:
        yield page


@pytest.fixture
def training(browser: Browser, master: ScriptedMaster, console: RunningConsole) -> Iterator[Page]:
    """The training view, with data sets and presets shown."""
    with opened(browser, master, f"{console.url}#/training") as page:
        expect(page.get_by_role("radio", name="Handwritten digits")).to_be_checked()
        yield page
