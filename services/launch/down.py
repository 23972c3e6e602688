"""`mahe down`: stops what `mahe up` started on this PC, containers or processes; data stays.

Not for services started one by one (`mahe master`): each ends in its own terminal.
"""

import os
import signal
import time
from pathlib import Path

from services.common.errors import MaheError
from services.common.host.machine import home
from services.launch import containers, places
from services.launch.lines import say

STOP_S = 20.0
POLL_S = 0.2


def run_down() -> int:
    """0 when nothing of it runs any more. Raises MaheError when something cannot be stopped from here."""
    reason = containers.why_no_engine()
    if not reason and containers.running():
        say("DOWN", "stopping the containers of this checkout")
        return containers.run_down_containers()
    master = places.folder("master")
    if not places.held(master):
        say("DOWN", f"nothing of MAHE runs here: no containers ({reason or 'none is up'}) and no processes")
        return 0
    say("DOWN", "stopping the processes of mahe up")
    _end(master)
    return 0


def _end(master: Path) -> None:
    try:
        os.kill(int((home() / places.UP_FILE).read_text()), signal.SIGTERM)
    except (OSError, ValueError):
        sentence = f"mahe up did not start the master on {master}; stop it with Ctrl-C in its own terminal"
        raise MaheError(sentence, code="NOT_OURS") from None
    deadline = time.monotonic() + STOP_S
    while places.held(master):
        if time.monotonic() > deadline:
            raise MaheError(f"the master on {master} still runs after {STOP_S:.0f} s; look at its log", code="TIMEOUT")
        time.sleep(POLL_S)
