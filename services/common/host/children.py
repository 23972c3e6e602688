"""A child process that talks JSON lines: spawned, never forked; either side notices the other's death at once.

The child reads its standard input and ends at its end; the parent's reader thread sees the end of the child's output.
Large arrays never travel here: both sides map files.
"""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from services.common.host.logs import Log

STOP_WAIT_S = 3.0
LINE_BYTES_MAX = 1 << 20
CHATTER_MAX = 200


class Child:
    """One spawned `python -m module`. `on_line` is called in the reader thread, last with {"t": "exit", "code": n}.

    It gets objects with a text `t`; whatever else comes out of the child (a library's chatter) goes to `log`.
    """

    def __init__(
        self,
        module: str,
        env: Mapping[str, str],
        on_line: Callable[[dict[str, Any]], None],
        log: Log | None = None,
    ) -> None:
        flags = 0
        if sys.platform == "win32":
            flags = subprocess.BELOW_NORMAL_PRIORITY_CLASS  # elsewhere the child lowers itself
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(env),
            creationflags=flags,
        )
        self._name = module.rpartition(".")[2]
        self._on_line = on_line
        self._log = log or Log("child")
        self._given_up = False
        self._reader = threading.Thread(target=self._read, name=f"{module}-reader", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    def send(self, line: Mapping[str, Any]) -> bool:
        """Write one JSON line; False when the child is gone (its exit line tells the rest)."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(line).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            return False
        return True

    def stop(self) -> None:
        """Close the child's input, wait STOP_WAIT_S, then kill it. One that the system cannot end is not waited for."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_WAIT_S)
        self._reader.join(STOP_WAIT_S)
        self._given_up = True

    def kill(self) -> None:
        """End the child at once; the exit line still comes."""
        self._process.kill()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in _lines(output):
                self._take(line)
        self._say({"t": "exit", "code": self._process.wait()})

    def _say(self, message: dict[str, Any]) -> None:
        """What comes after `stop` is of a child that nobody has any more."""
        if not self._given_up:
            self._on_line(message)

    def _take(self, line: bytes) -> None:
        message = _message(line)
        if message is not None:
            self._say(message)
        elif chatter := line.decode(errors="replace").strip():
            self._log("CHILD", f"{self._name} says: {chatter[:CHATTER_MAX]}")


def _lines(output: IO[bytes]) -> Iterator[bytes]:
    """Lines up to LINE_BYTES_MAX; of a longer one its beginning."""
    while line := output.readline(LINE_BYTES_MAX):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = output.readline(LINE_BYTES_MAX)
        yield line


def _message(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
        json.dumps(found, ensure_ascii=False).encode()  # half a surrogate pair would fail in the owner's hands
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("t"), str) else None


def lines_from_parent() -> Iterator[dict[str, Any]]:
    """In the child: the parent's lines, until it closes or dies."""
    for line in sys.stdin.buffer:
        yield json.loads(line)


def tell_parent(line: Mapping[str, Any]) -> None:
    """In the child: one JSON line to the parent. Ends the child when the parent is gone."""
    # What is no Unicode (the name of a file) becomes `?`. A line that a library has left open ends here.
    text = json.dumps(line, ensure_ascii=False).encode(errors="replace")
    try:
        sys.stdout.buffer.write(b"\n" + text + b"\n")
        sys.stdout.buffer.flush()
    except OSError:
        raise SystemExit(0) from None
