"""`python -m services.launch.health SERVICE`: whether this container's service does what it is there for.

For the engine's healthchecks: Linux only, quick, and it opens no connection that the service would have to refuse.
Exit code 0 and a sentence, or 1 and the reason. Not for people: `mahe doctor` and `mahe status` are.
"""

import contextlib
import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from services.launch import places

TIMEOUT_S = 4.0


def master() -> str:
    """Empty when the master has opened its doors and still lives; else the reason."""
    folder = places.folder("master")
    if not _held(folder / "lock"):
        return f"no master holds {folder}"
    control = places.control_file(folder)
    return "" if control.is_file() else f"{control} is not there yet: the master has not opened its ports"


def worker() -> str:
    """Empty when each worker here has joined or is parked (its owner's or the operator's wish); else the reason."""
    slots = [slot for slot in sorted(places.folder("worker").glob("slot-*")) if _held(slot / "lock")]
    if not slots:
        return "no worker runs here yet"
    for slot in slots:
        if not (slot / "parked.json").is_file() and not _read(slot / "identity.json").get("worker"):
            return f"{slot.name} has not joined yet; its log says why"
    return ""


def console() -> str:
    """Empty when the page answers; else the reason."""
    url = str(_read(places.console_file(places.folder("console"))).get("url", ""))
    if not url:
        return "the console has not opened its port yet"
    place = urlsplit(url)
    try:
        with socket.create_connection((place.hostname or "", place.port or 80), TIMEOUT_S) as page:
            page.sendall(f"GET /healthz HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: close\r\n\r\n".encode())
            answer = page.recv(64).decode(errors="replace").partition("\r\n")[0]
    except OSError as error:
        return f"the page at {url} does not answer ({error})"
    return "" if " 200 " in answer else f"the page at {url} answers {answer!r}"


CHECKS: dict[str, Callable[[], str]] = {"master": master, "worker": worker, "console": console}


def main(service: str) -> int:
    """Check and print."""
    reason = CHECKS[service]()
    print(reason or f"the {service} is well")
    return 1 if reason else 0


def _held(lock: Path) -> bool:
    """Whether a process of this container has the lock open: who holds it elsewhere does not count."""
    for process in Path("/proc").glob("[0-9]*/fd"):
        with contextlib.suppress(OSError):  # it has ended
            if any(one.readlink() == lock for one in process.iterdir()):
                return True
    return False


def _read(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
