"""`mahe up`: a clean start for real use: master and console, no worker, nothing trains until someone asks.

Not for demonstrations (demo.py), nor for the PC that only works (`mahe join`).
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.common.errors import MaheError, SettingsError
from services.common.host.files import make_folder, remove, write_durably
from services.common.host.machine import addresses, home
from services.launch import places
from services.launch.console_client import Link, read_link
from services.launch.interrupts import Interrupts
from services.launch.lines import say, show
from services.launch.page import open_page
from services.launch.processes import Group
from services.launch.waiting import wait_for

START_S = 60.0
POLL_S = 0.2
PROCESSES = "to let this PC work too, run in another terminal: mahe worker. Ctrl-C (or mahe down) stops both of them"


def run_up(port: int | None, console_port: int | None, *, browser: bool) -> int:
    """Run both until Ctrl-C. Raises MaheError when one of them does not start, or ends."""
    master, console = places.folder("master"), places.folder("console")
    begin_anew(master, console)
    with Interrupts() as interrupts, Group() as group:

        def watch() -> None:
            interrupts.check()
            group.check()

        def remind(sentence: str) -> None:
            say("WAIT", sentence)

        def is_open() -> bool | None:
            return places.control_file(master).is_file() or None

        group.start("master", places.MODULES["master"], master_env(master, port))
        wait_for(is_open, "the master to open its ports", START_S, watch, remind)
        group.start("console", places.MODULES["console"], console_env(master, console, console_port))
        link = wait_for(lambda: read_link(console), "the console to open its port", START_S, watch, remind)
        joining = wait_for(lambda: join_string(link), "the console to reach the master", START_S, watch, remind)
        say_ready(link, joining, PROCESSES)
        open_page(link.url, browser)
        with noted():
            while not interrupts.requested:
                group.check()
                time.sleep(POLL_S)
        say("UP", "stopping master and console")
    return 0


@contextmanager
def noted() -> Iterator[None]:
    """Leave word of this process for `mahe down`."""
    note = make_folder(home()) / places.UP_FILE
    write_durably(note, f"{os.getpid()}\n".encode())
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def begin_anew(master: Path, console: Path) -> None:
    """Remove what an earlier start has left for others to read; raises SettingsError when that start still runs."""
    for name, data, left in (
        ("master", master, places.control_file(master)),
        ("console", console, places.console_file(console)),
    ):
        if places.held(data):
            raise SettingsError(
                f"a {name} already runs on {data}; mahe open shows its page. To start another, stop that one, "
                f"or set MAHE_{name.upper()}_DATA to another folder",
                code="DATA_DIR_LOCKED",
            )
        if not remove(left):
            raise SettingsError(f"{left} is left and cannot be removed; remove it by hand", code="DATA_DIR_UNUSABLE")


def master_env(master: Path, port: int | None) -> dict[str, str | None]:
    """The master's environment: what is ours stays, with the addresses that other PCs reach filled in."""
    env: dict[str, str | None] = {"MAHE_MASTER_DATA": str(master)}
    if port is not None:
        env["MAHE_MASTER_PORT"] = str(port)
    if not os.environ.get("MAHE_ADVERTISE"):
        bound = os.environ.get("MAHE_MASTER_BIND") or ""
        env["MAHE_ADVERTISE"] = ",".join(advertised(addresses(), ipv6=":" in bound)) or None
    return env


def console_env(master: Path, console: Path, port: int | None) -> dict[str, str | None]:
    """The console's environment."""
    env: dict[str, str | None] = {
        "MAHE_CONSOLE_DATA": str(console),
        "MAHE_CONSOLE_CONTROL_DIR": str(places.control_file(master).parent),
    }
    if port is not None:
        env["MAHE_CONSOLE_PORT"] = str(port)
    return env


def advertised(found: list[str], *, ipv6: bool) -> list[str]:
    """Addresses as they stand in an endpoint: IPv6 in brackets, and only where the master is bound to IPv6."""
    return [f"[{one}]" if ":" in one else one for one in found if ipv6 or ":" not in one]


def join_string(link: Link) -> tuple[str, list[str]] | None:
    """A new join string for other PCs and the endpoints in it; None while the console does not reach the master."""
    try:
        answer = link.post("/api/v1/join-strings", {})
    except MaheError as error:
        if error.code in {"NOT_REACHABLE", "MASTER_UNREACHABLE"}:
            return None
        raise
    return str(answer["join_string"]), [str(one) for one in answer["endpoints"]]


def say_ready(link: Link, joining: tuple[str, list[str]], here: str) -> None:
    """What to do next: the page here, one line to paste on each other PC, and a sentence about this one."""
    text, endpoints = joining
    say("UP", f"the page: {link.url}")
    if all("://127." in one or "://localhost" in one for one in endpoints):
        say("WARN", "this PC has no address that others reach; connect it to a network, or set MAHE_ADVERTISE=address")
    say("UP", f"workers reach this PC at {', '.join(endpoints)} (firewall: let TCP of that port in)")
    say("UP", "to let another PC work, install MAHE there and paste this line (for the next hour):")
    show(f"\n    mahe join {text}\n")
    say("UP", here)
