"""Plays a scenario, cuts the power everywhere, and looks at what is left."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from services.tests.durability.disk import Recorder
from services.tests.durability.scenarios import KILLED_MASTER, Scenario
from services.tests.durability.survivors import Survivor, survivors


def cut_everywhere(scenario: Scenario, folder: Path, seed: int = 1, seen: set[Any] | None = None) -> int:
    """How many states were looked at, none in `seen`; AssertionError for the first one in which something is lost."""
    return _cut(scenario, folder, 0, seed, set() if seen is None else seen)[0]


def cut_after_each_kill(folder: Path, seed: int = 1, seen: set[Any] | None = None) -> int:
    """A master killed before each of its calls, another that goes on, and then the power: how many states were seen."""
    seen = set() if seen is None else seen
    states, calls = _cut(KILLED_MASTER, folder, 0, seed, seen)
    return states + sum(_cut(KILLED_MASTER, folder, one, seed, seen)[0] for one in range(1, calls + 1))


def _cut(scenario: Scenario, folder: Path, die_before: int, seed: int, seen: set[Any]) -> tuple[int, int]:
    recorder = Recorder(_empty(folder / "played"), die_before=die_before)
    with recorder.recording():
        scenario.play(recorder)
    states = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)  # nobody cuts the power of these
        for state in survivors(recorder.operations, recorder.folders, seed, seen):
            states += 1
            _look_at(scenario, state, _empty(folder / "left"))
    return states, recorder.calls


def _look_at(scenario: Scenario, state: Survivor, left: Path) -> None:
    state.lay_out(left)
    try:
        scenario.check(left, state.said)
    except Exception as error:
        names = {path: None if content is None else len(content) for path, content in state.tree.items()}
        raise AssertionError(f"{error!r} after {state.said} with {names}") from error


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
