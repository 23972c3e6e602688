"""Named points where a test ends this process or lets its disk fail. Off, and of no cost, unless a test asks for one.

`MAHE_FAILPOINTS="checkpoint.before-rename=kill@2,store.round.before-commit=ENOSPC"`: the second time that the first is
reached this process is killed; every time that the other is reached the disk is full. No setting for people.
"""

import errno
import os
import signal
import sys
from dataclasses import dataclass

VARIABLE = "MAHE_FAILPOINTS"
FILE_STEPS = ("before-write", "before-fsync", "before-rename", "before-folder-fsync", "written")  # of write_durably
ROW_STEPS = ("before-commit", "committed")  # of a transaction of the store
MASTER_FILES = ("keys", "control-file", "join-file", "checkpoint")
MASTER_ROWS = ("term", "join", "enrol", "run-added", "run-saved", "assignment", "round", "events", "revoke")
MASTER_POINTS = (
    *(f"{name}.{step}" for name in MASTER_FILES for step in FILE_STEPS),
    *(f"store.{name}.{step}" for name in MASTER_ROWS for step in ROW_STEPS),
    "version.before-publish",
    "version.before-announce",
    "round.before-announce",
    "prune.before-remove",
)
WORKER_FILES = ("identity", "note", "parked")
TRAINER_POINTS = (
    "anchor.before-write",
    "anchor.before-rename",
    "residual.before-write",
    "delta.before-write",
    "delta.before-fsync",
    "delta.before-folder-fsync",
    "delta.written",
)
WORKER_POINTS = (
    *(f"{name}.{step}" for name in WORKER_FILES for step in FILE_STEPS),
    "anchor.before-prepare",
    "anchor.before-store",
    "forget.before-residual",
    "forget.before-note",
    "forget.before-delta",
)
POINTS = frozenset((*MASTER_POINTS, *WORKER_POINTS, *TRAINER_POINTS))


@dataclass
class _Armed:
    """What shall happen at one point: `kill` or the name of an errno; `at` the n-th time only, 0: every time."""

    action: str
    at: int
    reached: int = 0


_armed: dict[str, _Armed] = {}


def failpoint(name: str) -> None:
    """Nothing; where a test armed it, the end of this process or an OSError."""
    point = _armed.get(name)
    if point is not None:
        _reach(name, point)


def arm(text: str) -> None:
    """Replace what is armed by `name=action[@n]`, by commas; an empty text: nothing. ValueError for another text."""
    _armed.clear()
    for one in filter(None, text.split(",")):
        name, _, what = one.partition("=")
        action, _, at = what.partition("@")
        if name not in POINTS or (action != "kill" and action not in errno.errorcode.values()):
            raise ValueError(f"{VARIABLE}: {one!r} is no failpoint with kill or the name of an errno")
        _armed[name] = _Armed(action, int(at or 0))


def _reach(name: str, point: _Armed) -> None:
    point.reached += 1
    if point.at not in (0, point.reached):
        return
    if point.action != "kill":
        code = getattr(errno, point.action)
        raise OSError(code, os.strerror(code), name)
    if sys.platform == "win32":
        os._exit(1)
    else:  # so that mypy leaves this part out for Windows
        os.kill(os.getpid(), signal.SIGKILL)


arm(os.environ.get(VARIABLE, ""))
