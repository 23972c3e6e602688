"""`mahe join`, `mahe worker`, `mahe master`, `mahe console`: one service, in this process, in this terminal."""

import os
import runpy
import sys
from pathlib import Path

from services.common.host.files import make_folder, write_durably
from services.common.protocol.join_string import parse_join_string
from services.launch import places


def run_service(service: str) -> int:
    """Be that service until it ends; its exit code."""
    if service == "worker":
        _use_kept_join_string()
    sys.argv[:] = [places.MODULES[service]]
    try:
        runpy.run_module(places.MODULES[service], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def run_join(text: str) -> int:
    """Check and keep the join string, then work. Raises ProtocolError JOIN_STRING when it is damaged."""
    parse_join_string(text)
    kept = make_folder(places.folder("worker")) / places.JOIN_FILE
    write_durably(kept, "".join(text.split()).encode() + b"\n", private=True)
    os.environ.pop("MAHE_JOIN", None)
    os.environ["MAHE_WORKER_JOIN_FILE"] = str(kept)
    return run_service("worker")


def _use_kept_join_string() -> None:
    """Without a join string in the environment: the one that `mahe join` kept, else that of the master on this PC."""
    if os.environ.get("MAHE_JOIN") or os.environ.get("MAHE_WORKER_JOIN_FILE"):
        return
    for path in (places.folder("worker") / places.JOIN_FILE, places.local_join_file(places.folder("master"))):
        if _readable(path):
            os.environ["MAHE_WORKER_JOIN_FILE"] = str(path)
            return


def _readable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.R_OK)
