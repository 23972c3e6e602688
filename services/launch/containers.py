"""`mahe up` and `mahe down` with containers: Docker Compose does it, on the compose.yaml of this checkout.

Not for what runs in the containers (deploy/Dockerfile, compose.yaml), nor for processes (up.py).
"""

import json
import os
import subprocess
from typing import Any

from services.common.errors import MaheError, SettingsError
from services.common.host.machine import addresses
from services.launch.console_client import Link
from services.launch.interrupts import Interrupts
from services.launch.lines import say
from services.launch.page import open_page
from services.launch.ports import port_free, port_owner
from services.launch.processes import ROOT
from services.launch.up import START_S, advertised, join_string, say_ready
from services.launch.waiting import wait_for

COMPOSE = ("docker", "compose")
ASK_S = 20.0
CONSOLE_FILE = "/var/lib/mahe/console/console.json"
VARIABLES = {"master": "MAHE_MASTER_PORT", "console": "MAHE_CONSOLE_PORT"}


def why_no_engine() -> str:
    """Empty when an engine with Compose v2 answers and this is a checkout; else why not, in a few words."""
    if not (ROOT / "compose.yaml").is_file():
        return "there is no compose.yaml here"
    for command in (("docker", "info", "--format", "{{.ServerVersion}}"), (*COMPOSE, "version")):
        try:
            subprocess.run(command, capture_output=True, check=True, timeout=ASK_S)
        except FileNotFoundError:
            return "docker is not installed"
        except (OSError, subprocess.SubprocessError):
            return f"{' '.join(command[:2])} fails"
    return ""


def run_up_containers(*, browser: bool) -> int:
    """Start master, idle workers and the page, say what to do next, and leave them running. Raises MaheError."""
    config = json.loads(asked("config", "--format", "json"))
    if not running():
        check_ports(config)
    if not config["services"]["master"]["environment"].get("MAHE_ADVERTISE"):  # neither in .env nor set here
        os.environ["MAHE_ADVERTISE"] = ",".join(advertised(addresses(), ipv6=False))
        say("UP", f"to go on with plain docker compose, write MAHE_ADVERTISE={os.environ['MAHE_ADVERTISE']} into .env")
    if compose("up", "--detach", "--wait") != 0:
        sentence = "docker compose up failed, see above; what the services say: docker compose logs --tail 20"
        raise MaheError(sentence, code="COMPOSE")
    with Interrupts() as interrupts:

        def remind(text: str) -> None:
            say("WAIT", text)

        link = wait_for(read_link, "the console to open its port", START_S, interrupts.check, remind)
        what = "the console to reach the master"
        joining = wait_for(lambda: join_string(link), what, START_S, interrupts.check, remind)
    say_ready(link, joining, f"{len(running())} containers run here, idle workers among them; make down stops them")
    open_page(link.url, browser)
    return 0


def run_down_containers() -> int:
    """Stop and remove the containers; volumes stay."""
    done = compose("--profile", "demo", "down")
    say("DOWN", "keys, runs and workers stay in volumes; to forget them, too: docker compose down --volumes")
    return done


def running() -> list[str]:
    """The containers of this checkout's compose.yaml that run, by id."""
    return asked("ps", "--quiet").split()


def check_ports(config: dict[str, Any]) -> None:
    """Raises SettingsError when a port to publish is in use: the engine's own words do not say what to do."""
    for name, service in config["services"].items():
        for entry in service.get("ports") or ():
            port = int(entry["published"])
            if not port_free(port, entry.get("host_ip") or "0.0.0.0"):  # noqa: S104 what is published to all
                owner = port_owner(port) or "another program"
                raise SettingsError(
                    f"port {port} of this PC is in use by {owner}; stop it, or choose another with {VARIABLES[name]}",
                    code="PORT_IN_USE",
                )


def read_link() -> Link | None:
    """The link that the console wrote into its volume; None while it has not."""
    try:
        found = json.loads(asked("exec", "-T", "console", "cat", CONSOLE_FILE))
    except (MaheError, ValueError):
        return None
    return Link(str(found["url"]), str(found["token"]))


def compose(*words: str) -> int:
    """`docker compose words`, its lines shown; the exit code."""
    return subprocess.run([*COMPOSE, *words], cwd=ROOT, check=False).returncode


def asked(*words: str) -> str:
    """What `docker compose words` prints; raises MaheError COMPOSE with its own words."""
    command = [*COMPOSE, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=ASK_S, check=False)
    if done.returncode != 0:
        raise MaheError(f"docker compose {words[0]} says: {done.stderr.strip()}", code="COMPOSE")
    return done.stdout
