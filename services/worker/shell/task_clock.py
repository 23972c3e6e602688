"""How long the parts of a task take: its steps alone, and the exchange before them. The master cuts rounds by these."""

import time

from services.common.protocol.messages import Task


class Clock:
    """Times one task: its steps alone, and the exchange since the steps of the round before, if those were here."""

    def __init__(self, ended: tuple[str, int, float], task: Task) -> None:
        self._ref, self._is_ahead = task.ref, task.is_ahead
        run, round_, ended_s = ended
        self._ended_s = ended_s if (run, round_) == (task.ref.run, task.ref.round - 1) else None
        self._began_s = self._not_steps_s = 0.0
        self._half_s: float | None = None
        self.compute_ms = 0.0
        self.late_ms: float | None = None
        self.sync_ms: int | None = None

    def start(self) -> None:
        """The first step begins; for a task that is not ahead its version is here."""
        self._began_s = time.monotonic()
        if not self._is_ahead:
            self._note_sync()

    def half(self) -> None:
        """The steps that are left from here on are the late ones."""
        self._half_s = self._steps_s()

    def synced(self, asked_s: float) -> None:
        """The base is here; no step was taken since `asked_s`."""
        self._not_steps_s += time.monotonic() - asked_s
        self._note_sync()

    def end(self) -> tuple[str, int, float]:
        """The last step is done, and the base is here. What the next task's clock needs to know."""
        steps_s = self._steps_s()
        self.compute_ms = round(steps_s * 1000, 3)
        self.late_ms = None if self._half_s is None else round((steps_s - self._half_s) * 1000, 3)
        return self._ref.run, self._ref.round, time.monotonic()

    def _steps_s(self) -> float:
        """Seconds that the steps took so far."""
        return time.monotonic() - self._began_s - self._not_steps_s

    def _note_sync(self) -> None:
        if self._ended_s is not None:
            self.sync_ms = round((time.monotonic() - self._ended_s) * 1000)
