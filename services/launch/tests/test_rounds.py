"""Rounds come from events and lists that overlap, and are told in order, each once."""

import random
from typing import Any

import pytest

from services.launch.rounds import Ledger, line_of, newest_told


def row(number: int, loss: float | None = 0.5) -> dict[str, Any]:
    return {"round": number, "workers": 2, "train_loss": 0.25, "eval_loss": loss, "eval_accuracy": loss and 0.75}


def told(ledger: Ledger, *, everything: bool = False) -> list[int]:
    return [row["round"] for row, _ in ledger.take(everything=everything)]


def test_a_round_is_told_when_its_evaluation_is_known() -> None:
    ledger = Ledger()
    ledger.note(row(1, None))
    assert told(ledger) == []
    ledger.note(row(1), "round=1 as the master says")
    assert ledger.take() == [(row(1), "round=1 as the master says")]
    ledger.note(row(1))
    assert told(ledger) == []


def test_one_that_was_not_evaluated_does_not_wait_for_ever() -> None:
    ledger = Ledger()
    for one in (row(1, None), row(2), row(3, None)):
        ledger.note(one)
    assert told(ledger) == [1, 2]
    assert told(ledger, everything=True) == [3]


def test_what_was_told_before_is_not_told_again() -> None:
    ledger = Ledger(7)
    for number in (6, 7, 8):
        ledger.note(row(number))
    assert told(ledger) == [8]


@pytest.mark.parametrize("seed", range(50))
def test_whatever_comes_again_or_late_each_is_told_once_in_order(seed: int) -> None:
    """Events in order with some lost, and lists of all that was closed by then."""
    chance = random.Random(seed)
    ledger, found, rows = Ledger(), list[int](), dict[int, Any]()
    for number in range(1, 40):
        rows[number] = row(number, None)
        if number > 1:
            rows[number - 1] = row(number - 1)
        for event in (number, number - 1):
            if event in rows and chance.random() < 0.5:
                ledger.note(rows[event])
        if chance.random() < 0.2:  # the list is read, as after `resync`
            for one in rows.values():
                ledger.note(one)
            found += told(ledger)
    for one in rows.values():
        ledger.note(one)
    found += told(ledger, everything=True)
    assert found == list(range(1, 40))


def test_the_line_is_that_of_the_master() -> None:
    assert line_of(row(3)) == "round=3 workers=2 eval_loss=0.5000 eval_acc=0.7500"
    assert line_of(row(3, None)) == "round=3 workers=2 train_loss=0.2500"
    assert line_of({**row(3, None), "train_loss": None}) == "round=3 workers=2"


def test_what_is_no_row_is_left_out() -> None:
    ledger = Ledger()
    ledger.note({"round": "3"})
    ledger.note({})
    assert told(ledger, everything=True) == []


def test_who_comes_later_sees_what_is_new() -> None:
    snapshot = {"run": {"id": "a"}, "history": [row(1), row(2), row(3, None)]}
    assert newest_told(snapshot, "a") == 2
    assert newest_told(snapshot, "b") is None
    assert newest_told({"run": {"id": "a"}}, "a") == 0
    assert newest_told({}, "a") is None
