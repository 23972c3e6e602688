"""The shipped master, with the times of what its loop and its desk do: `python -m bench.wire.timed_master`."""

import os
import sys

from bench.wire import times
from services.master.__main__ import main
from services.master.shell import checkpoints, desk, uploads
from services.master.shell.control_port import ControlPort
from services.master.shell.reactor import Reactor
from services.master.shell.worker_port import WorkerPort


def watch(found: times.Times) -> None:
    """Time the desk's jobs, what they do, and the loop."""
    found.around(
        desk.Desk, "check", "fold", "aggregate", "write_checkpoint", "save_assignment", "save_round", "save_events"
    )
    found.around(desk, "bytes_digest", "digest", "check", "examine", "encode", "apply_update", "stats")
    found.around(checkpoints, "_pack", "prune")
    found.around(os, "fsync")
    found.around(uploads, "room_for")
    found.around(Reactor, "step", "open", "bulk", "tick")
    found.around(WorkerPort, "flush")
    found.around(ControlPort, "receive", "flush")


if __name__ == "__main__":
    recorded = times.wanted("master")
    if recorded is not None:
        watch(recorded)
    code = main()
    if recorded is not None:
        recorded.flush()
    sys.exit(code)
