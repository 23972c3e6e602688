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
from typing import Any

STOP_WAIT_S = 3.0


class Child:
    """One spawned `python -m module`. `on_line` is called in the reader thread, last with {"t": "exit", "code": n}."""

    def __init__(self, module: str, env: Mapping[str, str], on_line: Callable[[dict[str, Any]], None]) -> None:
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
        self._on_line = on_line
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
        """Close the child's input, wait STOP_WAIT_S, then kill it."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()

    def kill(self) -> None:
        """End the child at once; the exit line still comes."""
        self._process.kill()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                with contextlib.suppress(ValueError):  # a library's chatter is not a message
                    self._on_line(json.loads(line))
        self._on_line({"t": "exit", "code": self._process.wait()})


def lines_from_parent() -> Iterator[dict[str, Any]]:
    """In the child: the parent's lines, until it closes or dies."""
    for line in sys.stdin.buffer:
        yield json.loads(line)


def tell_parent(line: Mapping[str, Any]) -> None:
    """In the child: one JSON line to the parent. Ends the child when the parent is gone."""
    try:
        sys.stdout.buffer.write(json.dumps(line).encode() + b"\n")
        sys.stdout.buffer.flush()
    except OSError:
        raise SystemExit(0) from None
