"""`mahe doctor`: looks at what MAHE needs on this PC and says, line by line, what is well and what to do.

Not for a running cluster: its state is on the page.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from services.common.errors import SettingsError, quoted
from services.common.host.files import make_folder
from services.common.host.machine import FREE_MIB_WARN, addresses, cores, home, memory_mib, threads_usable
from services.common.protocol.limits import LIBZMQ_MIN
from services.launch import places
from services.launch.kernels import ask_python, kernel_impl
from services.launch.lines import say
from services.launch.ports import port_free, port_owner

PYTHON_MIN = (3, 11)
FREE_MIB_FAIL = 200
MEMORY_MIB_WARN = 1024
PORT_MAX = 65_535
OURS = tuple(places.MODULES.values())
_ASK_ZMQ = "import zmq; print(zmq.zmq_version(), zmq.__version__, int(zmq.has('curve')))"


class Finding(NamedTuple):
    """One line: OK, WARN (something will not work as wished) or FAIL (MAHE will not run)."""

    level: str
    sentence: str


def run_doctor() -> int:
    """Print all findings; 1 if one is FAIL."""
    failed = False
    for finding in examine():
        say(finding.level, finding.sentence)
        failed |= finding.level == "FAIL"
    return 1 if failed else 0


def examine() -> Iterator[Finding]:
    """Every finding, in the order in which to repair."""
    yield python(sys.version_info[:3])
    yield zmq()
    yield kernels()
    yield from data_folder(home())
    for variable, default in places.PORTS.items():
        yield port(variable, default)
    yield reach(addresses())
    yield strength(cores(), threads_usable(), memory_mib())


def python(version: tuple[int, ...]) -> Finding:
    """The interpreter."""
    text = ".".join(map(str, version))
    if version < PYTHON_MIN:
        return Finding(
            "FAIL", f"Python {text}; MAHE needs 3.11 or newer: install one, then make setup PYTHON=python3.12"
        )
    return Finding("OK", f"Python {text} at {sys.executable}")


def zmq() -> Finding:
    """The ZeroMQ library, asked in a process of its own."""
    ok, text = ask_python(_ASK_ZMQ)
    if not ok:
        return Finding("FAIL", f"ZeroMQ cannot be used ({text}); run make setup")
    return zmq_finding(*text.split())


def zmq_finding(library: str, binding: str, curve: str) -> Finding:
    """What is to be said about this version and whether it can encrypt."""
    needed = ".".join(map(str, LIBZMQ_MIN))
    if tuple(int(part) for part in library.split(".")[:3]) < LIBZMQ_MIN:
        return Finding(
            "FAIL", f"libzmq {library} (pyzmq {binding}); MAHE needs {needed}: make setup installs a wheel with it"
        )
    if curve != "1":
        return Finding(
            "FAIL", f"libzmq {library} without CURVE, so nothing could be encrypted; make setup installs another"
        )
    return Finding("OK", f"libzmq {library} with CURVE (pyzmq {binding})")


def kernels() -> Finding:
    """The numeric kernels."""
    ok, text = kernel_impl()
    if not ok:
        return Finding("FAIL", text)
    if text == "scalar":
        return Finding("OK", "kernels: scalar (plain C: this CPU or this build has no assembly; right, but slower)")
    return Finding("OK", f"kernels: {text}")


def data_folder(folder: Path) -> Iterator[Finding]:
    """Whether data can be kept, and for how long."""
    try:
        make_folder(folder)
    except SettingsError as error:
        yield Finding("FAIL", error.sentence)
        return
    yield Finding("OK", f"data folder {folder} can be written")
    yield space(folder, shutil.disk_usage(folder).free // 2**20)


def space(folder: Path, free_mib: int) -> Finding:
    """What is to be said about the free space."""
    if free_mib < FREE_MIB_FAIL:
        return Finding("FAIL", f"only {free_mib} MiB free at {folder}; free some, or set MAHE_HOME to another disk")
    if free_mib < FREE_MIB_WARN:
        return Finding(
            "WARN", f"{free_mib} MiB free at {folder}: enough for the demo; checkpoints of large models need more"
        )
    return Finding("OK", f"{free_mib // 1024} GiB free at {folder}")


def port(variable: str, default: int) -> Finding:
    """One TCP port: free, ours, or somebody else's."""
    named = os.environ.get(variable) or str(default)
    if not re.fullmatch("[0-9]{1,5}", named) or int(named) > PORT_MAX:
        return Finding(
            "FAIL", f"{variable} is {quoted(named)}, which is no port (0 to {PORT_MAX}); correct or unset it"
        )
    number = int(named)
    if number == 0 or port_free(number):
        return Finding("OK", f"port {number or 'any'} is free ({variable})")
    owner = port_owner(number)
    if any(module in owner for module in OURS):
        return Finding("OK", f"port {number} is held by MAHE: {owner}")
    who = (
        owner or "another program (to see which: " + ("netstat -ano" if os.name == "nt" else f"lsof -i :{number}") + ")"
    )
    return Finding("WARN", f"port {number} is in use by {who}; stop it, or set {variable} to another port")


def reach(found: list[str]) -> Finding:
    """The addresses at which other PCs reach this one."""
    if not found:
        return Finding("WARN", "no network address: other PCs cannot join; mahe demo works all the same")
    return Finding("OK", f"other PCs reach this one at {', '.join(found)}")


def strength(processors: int, usable: int, memory: int) -> Finding:
    """What this PC can give."""
    level = "WARN" if memory < MEMORY_MIB_WARN else "OK"
    return Finding(level, f"{processors} cores ({usable} usable), {memory} MiB of memory")
