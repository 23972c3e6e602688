"""Asking a disk that may not answer: the loop stands still for a named time at most."""

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

ANSWER_S = 3.0  # a disk that does not answer in this time is given up
Answer = TypeVar("Answer")


def answer_of(ask: Callable[[], Answer]) -> Answer:
    """What `ask` returns or raises, from a thread of its own; TimeoutError after ANSWER_S: then the thread is left."""
    answers: queue.SimpleQueue[tuple[Answer, None] | tuple[None, BaseException]] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put((ask(), None))
        except BaseException as error:  # noqa: BLE001 - raised where the answer is waited for
            answers.put((None, error))

    threading.Thread(target=work, name="disk-answer", daemon=True).start()
    try:
        answer, error = answers.get(timeout=ANSWER_S)
    except queue.Empty:
        raise TimeoutError(f"no answer in {ANSWER_S:g} s") from None
    if error is not None:
        raise error
    return answer  # type: ignore[return-value]
