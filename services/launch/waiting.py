"""Waiting with a deadline, a reason, and an eye on what could make the wait useless."""

import time
from collections.abc import Callable
from typing import TypeVar

from services.common.errors import MaheError

T = TypeVar("T")

POLL_S = 0.1
REMIND_S = 5.0


def wait_for(
    probe: Callable[[], T | None],
    what: str,
    limit_s: float,
    watch: Callable[[], None],
    remind: Callable[[str], None] = lambda reason: None,
    reason: Callable[[], str] = str,
) -> T:
    """The first answer of `probe` that is not None.

    `what` is a noun for the sentences. `watch` is called each time and raises when waiting has become useless.
    `remind` gets a sentence with `reason()` every REMIND_S. Raises MaheError TIMEOUT after `limit_s`.
    """
    start = time.monotonic()
    reminded = start
    while True:
        watch()
        answer = probe()
        if answer is not None:
            return answer
        now = time.monotonic()
        because = reason()
        sentence = f"{what}{': ' if because else ''}{because}"
        if now - start > limit_s:
            raise MaheError(f"waited {limit_s:.0f} s for {sentence}", code="TIMEOUT")
        if now - reminded >= REMIND_S:
            reminded = now
            remind(f"waiting for {sentence} ({now - start:.0f} s)")
        time.sleep(POLL_S)
