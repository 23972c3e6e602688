"""Presets: what each may set, and what wins when a request leaves something out."""

from typing import Any

import pytest

from services.common.protocol.presets import LEARNING_RATES, PRESETS, Preset, fill_in
from services.common.protocol.spec import RunSpec

CARD: dict[str, Any] = {
    "model": {"family": "softmax"},
    "inner": {"name": "momentum", "lr": 0.03, "momentum": 0.8},
    "k_steps": 20,
    "batch": 16,
    "rounds": 12,
}
THOROUGH = PRESETS["thorough"]


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda one: one.id)
def test_a_preset_leaves_the_card_its_own_and_suits_itself(preset: Preset) -> None:
    assert not {"dataset", "model", "batch", "name"} & preset.sets.keys()
    assert not {"name", "lr"} & preset.sets.get("inner", {}).keys()
    assert preset.sets.get("k_steps", 1) <= preset.sets["k_steps_max"]
    assert 2 < preset.sets["patience"] < preset.sets.get("rounds", 20)
    filled = RunSpec.model_validate(fill_in({}, preset, CARD))
    assert filled.model == CARD["model"]
    assert filled.inner["lr"] == CARD["inner"]["lr"]
    assert preset.sentence.endswith(".")


def test_without_preset_and_card_there_is_only_what_is_given() -> None:
    assert fill_in({"rounds": 3}, None, {}) == {"rounds": 3}
    assert fill_in({}, None, CARD | {"title": "not a field"}) == CARD


def test_given_over_preset_over_card() -> None:
    filled = fill_in({"rounds": 9, "encoding": "fp32"}, THOROUGH, CARD)
    assert (filled["rounds"], filled["k_steps"], filled["batch"], filled["encoding"]) == (9, 100, 16, "fp32")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"name": "momentum", "lr": 0.03, "momentum": 0.8}),
        ({"name": "momentum"}, {"name": "momentum", "lr": 0.03, "momentum": 0.8}),
        ({"lr": 0.5}, {"name": "momentum", "lr": 0.5, "momentum": 0.8}),
        ({"name": "adamw"}, {"name": "adamw", "lr": LEARNING_RATES["adamw"]}),
        ({"name": "sgd", "lr": 0.2}, {"name": "sgd", "lr": 0.2}),
        ({"name": "spiral"}, {"name": "spiral"}),
        ({"name": ["sgd"]}, {"name": ["sgd"]}),
    ],
)
def test_an_inner_optimizer_is_filled_in_by_its_name(given: dict[str, Any], expected: dict[str, Any]) -> None:
    filled = fill_in({"inner": given} if given else {}, THOROUGH, CARD)["inner"]
    assert filled == {"schedule": "cosine", "warmup": 0.05} | expected
    assert fill_in({"inner": given} if given else {}, None, CARD)["inner"] == expected


def test_a_schedule_that_is_given_wins() -> None:
    filled = fill_in({"inner": {"name": "adamw", "schedule": "constant"}}, THOROUGH, CARD)["inner"]
    assert (filled["schedule"], filled["warmup"]) == ("constant", 0.05)


def test_an_outer_optimizer_keeps_the_preset_s_values_while_it_is_the_same() -> None:
    long = PRESETS["long"]
    assert fill_in({"outer": {"name": "nesterov"}}, long, CARD)["outer"]["mu"] == 0.9
    assert fill_in({"outer": {"name": "fedavg"}}, long, CARD)["outer"] == {"name": "fedavg"}


def test_nothing_given_is_changed() -> None:
    given, card = {"inner": {"name": "momentum", "lr": 0.5}}, {"inner": dict(CARD["inner"])}
    fill_in(given, THOROUGH, card)
    assert (given, card) == ({"inner": {"name": "momentum", "lr": 0.5}}, {"inner": CARD["inner"]})
    assert THOROUGH.sets["inner"] == {"schedule": "cosine", "warmup": 0.05}
