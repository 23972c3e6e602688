"""Where the services keep their data, and the environment that puts them there.

Not for the meaning of a setting: each service reads and checks its own.
"""

import os
from pathlib import Path

from services.common.errors import SettingsError
from services.common.host.files import NO_FILE_LOCKS, FolderLock
from services.common.host.machine import home
from services.common.protocol.limits import PORT_CONSOLE, PORT_CONTROL, PORT_WORKERS

MODULES = {"master": "services.master", "worker": "services.worker", "console": "services.console"}
PORTS = {  # variable -> default
    "MAHE_MASTER_PORT": PORT_WORKERS,
    "MAHE_MASTER_CONTROL_PORT": PORT_CONTROL,
    "MAHE_CONSOLE_PORT": PORT_CONSOLE,
}
DEMO = "demo"
LOGS = "logs"
UP_FILE = "up.pid"  # the process that is `mahe up`
JOIN_FILE = "join-string"  # in the worker's folder: the join string that `mahe join` was given
SERVICE_PREFIXES = ("MAHE_MASTER_", "MAHE_WORKER_", "MAHE_CONSOLE_", "MAHE_JOIN", "MAHE_ADVERTISE")


def folder(service: str) -> Path:
    """The data folder of master, worker or console: MAHE_<SERVICE>_DATA, else in `home()`."""
    named = os.environ.get(f"MAHE_{service.upper()}_DATA")
    return Path(named).expanduser().resolve() if named else home() / service


def control_file(master: Path) -> Path:
    """What a master writes for the console once it has bound its ports."""
    return master / "control" / "control.json"


def local_join_file(master: Path) -> Path:
    """What a master writes for the workers of this PC."""
    return master / "join" / JOIN_FILE


def console_file(console: Path) -> Path:
    """What a console writes once it has bound its port."""
    return console / "console.json"


def held(data: Path) -> bool:
    """Whether a running service holds this data folder."""
    if not (data / "lock").is_file():
        return False
    lock = FolderLock(data)
    try:
        free = lock.acquire()
    except SettingsError as error:
        if error.code == NO_FILE_LOCKS:  # then nothing can run on it
            return False
        raise
    lock.release()
    return not free


def without_service_settings() -> dict[str, str | None]:
    """The settings of services in our environment, each as absent: a demo must not touch where real work is kept."""
    return {name: None for name in os.environ if name.startswith(SERVICE_PREFIXES)}
