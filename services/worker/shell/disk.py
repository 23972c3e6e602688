"""The disk under a slot: its errors in words with the next step, and whether it can be written."""

import errno
import shutil
import sys
from pathlib import Path

from services.common.host.files import remove, write_durably

FULL = {errno.ENOSPC, errno.EDQUOT}
PROBE = "probe"
PROBE_BYTES = 1 << 20
STAT_BLOCK_BYTES = 512


def disk_text(path: Path, error: OSError) -> str:
    """What is wrong with `path`, or with the file that the error names, and what a person can do."""
    what = error.strerror or str(error)
    named = str(error.filename or path)
    name = path if named.endswith(".tmp") else named  # people do not know the temporary files of `write_durably`
    if error.errno in FULL:
        return f"this PC's disk is full: {name} cannot be written ({what}); free some space"
    return f"{name} cannot be used ({what}); is the disk there, and may this user write there?"


def check_disk(folder: Path, free_bytes: int) -> None:
    """Write a probe and look for this much free space; raises OSError when either is not to be had."""
    probe = folder / PROBE
    try:
        write_durably(probe, bytes(PROBE_BYTES))
    finally:
        remove(probe)
    free = shutil.disk_usage(folder).free
    if free < free_bytes:
        raise OSError(errno.ENOSPC, f"{free >> 20} MiB are free, {-(-free_bytes >> 20)} MiB are needed", str(folder))


def allocated_bytes(path: Path) -> int:
    """How much of the disk a file takes; 0 without one. A file with holes takes less than its length."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0
    if sys.platform == "win32":
        return found.st_size
    return min(found.st_size, found.st_blocks * STAT_BLOCK_BYTES)
