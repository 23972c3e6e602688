"""Whether a TCP port of this PC is free, and who has it."""

import contextlib
import socket
import sys
from pathlib import Path

_LISTEN = "0A"  # linux/include/net/tcp_states.h


def port_free(port: int, address: str = "0.0.0.0") -> bool:  # noqa: S104 what a master binds
    """Whether somebody could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        if sys.platform != "win32":  # there it would allow two listeners on one port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def port_owner(port: int) -> str:
    """The command line that listens on `port`; empty where the platform does not say, or not to this user."""
    if sys.platform != "linux":
        return ""
    sockets = {f"socket:[{inode}]" for inode in _listening(port)}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or it is another user's
            if any(str(descriptor.readlink()) in sockets for descriptor in (process / "fd").iterdir()):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                return f"{' '.join(words).strip()} (process {process.name})"
    return ""


def _listening(port: int) -> list[str]:
    inodes = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                columns = line.split()
                if columns[3] == _LISTEN and int(columns[1].rpartition(":")[2], 16) == port:
                    inodes.append(columns[9])
    return inodes
