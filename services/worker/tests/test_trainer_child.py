"""The trainer as the agent holds it: what cannot be started, and what it may print."""

import sys
from collections.abc import Iterator

import pytest
import zmq

from services.common.host.logs import Log
from services.worker.core import events as e
from services.worker.shell import trainer_child
from services.worker.shell.trainer_child import TrainerChild


@pytest.fixture
def child() -> Iterator[TrainerChild]:
    """One that was not started yet."""
    with zmq.Context() as context:
        one = TrainerChild(context, 1, 1.0, Log("worker"))
        yield one
        one.close()


def test_a_trainer_that_cannot_be_started_is_one_that_ended(
    child: TrainerChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    ended = child.start()
    assert ended is not None
    assert ended.reason.text.startswith("the trainer could not be started (")
    assert ended.reason.text.endswith("); close some programs or restart this PC")
    assert child.pid is None


def test_what_is_no_line_of_the_trainer_is_logged_and_ignored(
    child: TrainerChild, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trainer_child, "MODULE", "services.worker.tests.chatter")
    child.start()
    found: list[e.Event] = []
    while not found or not isinstance(found[-1], e.TrainerExited):
        assert child.lines.poll(20_000), found
        event = child.receive()
        if event is not None:
            found.append(event)
    *events, ended = found
    assert events == [e.TrainerReady(2.0, 1), e.Anchored("a"), e.AnchorWrong("a", "why"), e.TrainerStopped("a")]
    assert "exit code 0" in ended.reason.text  # type: ignore[union-attr]
    said = capfd.readouterr().err
    assert '[TRAINER] said: {"t": "news", "x": 1}' in said
    assert '"score": "fast"' in said
