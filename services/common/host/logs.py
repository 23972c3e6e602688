"""Log lines: `[KIND] message` for people, one JSON object a line for machines. Written to stderr, UTF-8, at once."""

import contextlib
import json
import sys
import time
from typing import Any, Literal

Format = Literal["text", "json"]
_CONTROL = dict.fromkeys([*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def clean_text(text: str, *, length_max: int = 1000) -> str:
    """Text from outside without control, escape and bidirectional characters, cut to `length_max`."""
    return text.translate(_CONTROL)[:length_max]


class Log:
    """Where one process writes its lines. A secret or a tensor must never be passed in."""

    def __init__(self, service: str, form: Format = "text") -> None:
        self._service = service
        self._form = form

    def __call__(self, kind: str, message: str, **data: Any) -> None:
        """Write one line; `data` shows only in JSON."""
        message = clean_text(message)
        if self._form == "json":
            line = json.dumps(
                {"time": round(time.time(), 3), "service": self._service, "kind": kind, "message": message, **data},
                ensure_ascii=False,
            )
        else:
            line = f"[{kind}] {message}"
        _write(line.encode(errors="backslashreplace") + b"\n")


def _write(line: bytes) -> None:
    """One line to standard error; lost where that is full, closed or gone: no service ends because of its log.

    Past the buffer, which would keep what a full disk has refused, and fail with it again when the process ends.
    """
    stream = sys.stderr
    if stream is None:  # started without one
        return
    with contextlib.suppress(OSError, ValueError):
        target = getattr(stream.buffer, "raw", stream.buffer)
        while line:
            line = line[target.write(line) or len(line) :]  # None: full for now, and nobody waits
