"""Ctrl-C, SIGTERM and a closed terminal, as a flag that is looked at between steps; the second Ctrl-C does not wait."""

import signal
import sys
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupts:
    """While entered, signals only set `requested`; a second one raises KeyboardInterrupt wherever the program is."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        names = ["SIGINT", "SIGTERM", "SIGBREAK" if sys.platform == "win32" else "SIGHUP"]
        for number in (int(getattr(signal, name)) for name in names):
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raises KeyboardInterrupt when somebody asked to stop."""
        if self.requested:
            raise KeyboardInterrupt

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
