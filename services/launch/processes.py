"""A group of services as child processes: started on a leash, watched, and ended together, whatever happens.

Each child has a process group of its own, so that Ctrl-C in the terminal reaches only the launcher; and a leash (its
standard input, see leash.py), so that none is left when the launcher dies. Not for the services' own children.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from services.common.errors import MaheError
from services.common.host.files import make_folder
from services.launch.leash import FAREWELL

STOP_S = 5.0  # for all of them together; then they are killed
STAGE_S = 2.0  # the next kind is asked to stop after this time at the latest
TAIL_LINES = 20
TAIL_BYTES = 16_384
POLL_S = 0.05
ROOT = Path(__file__).parents[2]


@dataclass
class Service:
    """One started service. `log` is the file that takes its lines; None: they go to our own standard error."""

    name: str
    module: str
    process: subprocess.Popen[bytes]
    log: Path | None

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self.process.poll() is not None

    def tail(self) -> list[str]:
        """The last TAIL_LINES lines of its log file."""
        if self.log is None:
            return []
        with self.log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            return file.read(TAIL_BYTES).decode(errors="replace").splitlines()[-TAIL_LINES:]

    def epitaph(self) -> str:
        """How it ended, with its last lines: for a person."""
        code = self.process.returncode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with code {code}"
        if self.log is None:
            return f"the {self.name} {how}; its lines are above"
        lines = "".join(f"\n    {line}" for line in self.tail())
        return f"the {self.name} {how}; the end of {self.log}:{lines or ' (it wrote nothing)'}"

    def ask_to_stop(self) -> None:
        """Let go of the leash, with a word: without one it would mean that we died. Safe to call twice."""
        leash = self.process.stdin
        assert leash is not None
        if leash.closed:
            return
        with contextlib.suppress(OSError):  # it has ended already
            leash.write(FAREWELL)
            leash.flush()
        with contextlib.suppress(OSError):  # the word may still be in the buffer, and nobody there to read it
            leash.close()

    def kill(self) -> None:
        """End the process now, with all that it started."""
        if sys.platform == "win32":
            self.process.kill()
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left; macOS says EPERM for a zombie
            os.killpg(self.process.pid, signal.SIGKILL)


class Group:
    """Services that live and end together. `logs`: a folder for their lines; None: to our own standard error."""

    def __init__(self, logs: Path | None = None) -> None:
        self._logs = None if logs is None else make_folder(logs)
        self._services: list[Service] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self, name: str, module: str, env: Mapping[str, str | None]) -> Service:
        """Start `python -m module`; `env` holds only what differs from ours; None: not set."""
        log = None if self._logs is None else self._logs / f"{name}.log"
        if log is None:
            process = _spawn(module, env, None)
        else:
            with log.open("wb") as output:
                process = _spawn(module, env, output)
        service = Service(name, module, process, log)
        self._services.append(service)
        return service

    def check(self) -> None:
        """Raises MaheError CHILD_ENDED, with its last lines, when one of them has ended."""
        for service in self._services:
            if service.ended:
                raise MaheError(service.epitaph(), code="CHILD_ENDED")

    def forget(self, service: Service) -> None:
        """No longer expect this one, which has ended, to be there."""
        assert service.ended
        self._close(service)
        self._services.remove(service)

    def stop(self) -> None:
        """End all, the last started kind first; those still there after STOP_S are killed. Safe to call twice."""
        deadline = time.monotonic() + STOP_S
        try:
            for _, stage in groupby(reversed(self._services), key=lambda service: service.module):
                asked = list(stage)
                for service in asked:
                    service.ask_to_stop()
                _wait(asked, min(deadline, time.monotonic() + STAGE_S))
            _wait(self._services, deadline)
        finally:  # also on a second Ctrl-C
            for service in self._services:
                self._close(service)
            self._services.clear()

    @staticmethod
    def _close(service: Service) -> None:
        service.kill()  # also sweeps up what an ended service has left in its process group
        service.ask_to_stop()
        service.process.wait()


def _wait(services: list[Service], deadline: float) -> None:
    while time.monotonic() < deadline and not all(service.ended for service in services):
        time.sleep(POLL_S)


def _spawn(module: str, env: Mapping[str, str | None], output: IO[bytes] | None) -> subprocess.Popen[bytes]:
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP
    merged: dict[str, str | None] = {**os.environ, **python_env(), **env}
    return subprocess.Popen(
        [sys.executable, "-m", "services.launch.leash", module],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
        env={name: value for name, value in merged.items() if value is not None},
        start_new_session=True,
        creationflags=flags,
    )


def python_env() -> dict[str, str]:
    """What lets a child find this very MAHE from any folder, also one that has a package `services` of its own."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}
