"""Times of one task: what the master learns of a PC whose steps take less than a millisecond."""

import time

from services.worker.shell.task_clock import Clock
from services.worker.tests.conftest import Job


def let_time_pass() -> None:
    began_s = time.monotonic()
    while time.monotonic() == began_s:
        pass


def test_steps_of_less_than_a_millisecond_are_not_rounded_away() -> None:
    clock = Clock(("", 0, 0.0), Job().task())
    clock.start()
    let_time_pass()
    clock.half()
    time.sleep(0.0002)
    clock.end()
    assert clock.late_ms is not None
    assert 0 < clock.late_ms < clock.compute_ms
