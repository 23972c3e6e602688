"""Cutting the power in every moment: what was told is there; and the model sees it when a sync is left out."""

from pathlib import Path

import pytest

from services.tests.durability.power import cut_after_each_kill, cut_everywhere
from services.tests.durability.scenarios import SCENARIOS

STATES_MIN = {
    "checkpoints": 300,
    "redone round": 100,
    "no room for a folder": 200,
    "no room for its name": 200,
    "keys": 8,
    "worker": 200,
}
KILLED_MIN = 700


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_that_was_told_is_lost(tmp_path: Path, name: str) -> None:
    states = cut_everywhere(SCENARIOS[name], tmp_path)
    print(f"[POWER] {name}: {states} states")
    assert states >= STATES_MIN[name]


def test_a_kill_and_then_the_power(tmp_path: Path) -> None:
    states = cut_after_each_kill(tmp_path)
    print(f"[POWER] killed, taken up, then cut: {states} states")
    assert states >= KILLED_MIN
