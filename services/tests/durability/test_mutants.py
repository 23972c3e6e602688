"""Each bug of durability put in on purpose is seen: positive controls of the power loss and of the damage."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from services.tests.durability.damage import damage_everywhere
from services.tests.durability.mutants import MUTANTS
from services.tests.durability.power import cut_after_each_kill, cut_everywhere
from services.tests.durability.scenarios import SCENARIOS

LOOKS: dict[str, Callable[[Path], object]] = {
    "damage": partial(damage_everywhere, step=97),
    **{f"power: {name}": partial(cut_everywhere, scenario) for name, scenario in SCENARIOS.items()},
    "kill and power": cut_after_each_kill,
}
SEEN_BY = {
    "no_fsync": "power: checkpoints",
    "no_folder_fsync": "power: checkpoints",
    "in_place": "power: redone round",
    "rename_before_fsync": "power: keys",
    "no_checksum": "damage",
    "new_folders_not_synced": "power: checkpoints",
    "taken_up_unsynced": "kill and power",
    "pruned_first": "power: checkpoints",
    "note_before_delta": "power: worker",
    "note_before_residual": "power: worker",
}


def test_each_has_a_look() -> None:
    assert SEEN_BY.keys() == MUTANTS.keys()


@pytest.mark.parametrize("name", MUTANTS)
def test_it_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    MUTANTS[name](monkeypatch)
    with pytest.raises(AssertionError) as caught:
        LOOKS[SEEN_BY[name]](tmp_path)
    print(f"[MUTANT] {name}: {str(caught.value)[:110]}")
