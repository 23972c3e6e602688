"""The two tables are total: every state and every kind of event has a handler or a reason to ignore it."""

from typing import get_args

import pytest

from services.common.protocol import messages
from services.worker.core import events
from services.worker.core.session import LINK_KINDS, LINK_TABLE, TIMERS, WORK_KINDS, WORK_TABLE, Ignore
from services.worker.core.state import Link, Timer, Work


def test_every_event_and_message_is_in_exactly_one_table() -> None:
    kinds = {*get_args(events.Event), *get_args(messages.ToWorker)} - {events.Tick, events.Received}
    assert set(LINK_KINDS) | set(WORK_KINDS) == kinds
    assert not set(LINK_KINDS) & set(WORK_KINDS)


@pytest.mark.parametrize("link", Link)
def test_every_link_state_has_every_link_event(link: Link) -> None:
    assert set(LINK_TABLE[link]) == set(LINK_KINDS)


@pytest.mark.parametrize("work", Work)
def test_every_work_state_has_every_work_event(work: Work) -> None:
    assert set(WORK_TABLE[work]) == set(WORK_KINDS)


def test_every_timer_has_a_handler() -> None:
    assert set(TIMERS) == set(Timer)


def test_what_is_ignored_has_a_reason() -> None:
    cells = [cell for table in (*LINK_TABLE.values(), *WORK_TABLE.values()) for cell in table.values()]
    ignored = [cell for cell in cells if isinstance(cell, Ignore)]
    assert ignored
    assert all(len(cell.reason) > 10 for cell in ignored)
