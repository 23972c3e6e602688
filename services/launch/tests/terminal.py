"""A command in a terminal of its own, as a person has it: what it shows, what is typed, Ctrl-C. Not on Windows."""

import os
import re
import select
import subprocess
import sys
import time

if sys.platform != "win32":
    import pty
    import termios

LIMIT_S = 40.0
# The first to open a terminal in its session gets it as the controlling one, from which Ctrl-C comes.
TAKE_TERMINAL = "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); os.execv(sys.argv[1], sys.argv[1:])"


def open_terminal(columns: int) -> tuple[int, int]:
    """Our end of a new terminal, and that of the command."""
    if sys.platform == "win32":
        raise OSError("Windows has no such terminals")
    else:  # noqa: RET506 so that mypy leaves this out for Windows
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(ours, (24, columns))
        return ours, theirs


class TerminalSession:
    """One command. `shown` is all that it has written, with the carriage returns."""

    def __init__(self, words: list[str], env: dict[str, str], columns: int = 100) -> None:
        self._ours, theirs = open_terminal(columns)
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, *words],
            stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.shown = ""

    def until(self, pattern: str) -> None:
        """Read until it has been shown; fails when the command ends, or after LIMIT_S, without it."""
        deadline = time.monotonic() + LIMIT_S
        while not re.search(pattern, self.shown):
            assert self._read(deadline), f"it ended without {pattern!r}: {self.shown!r}"

    def type(self, text: str) -> None:
        """Press these keys."""
        os.write(self._ours, text.encode())

    def end(self) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + LIMIT_S
        while self._read(deadline):
            pass
        os.close(self._ours)
        return self.process.wait(LIMIT_S)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"nothing more came: {self.shown!r}"
        try:
            found = os.read(self._ours, 65536)
        except OSError:  # Linux: whoever wrote has gone
            return False
        self.shown += found.decode(errors="replace")
        return bool(found)
