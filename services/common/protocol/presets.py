"""Presets: how long and how carefully to train, chosen by one word; and what fills in what a request leaves out.

A preset never sets data set, model family or learning rate: those are the data card's, in the catalog. Not for whether
a value is allowed: `RunSpec` and the master decide that, wherever the value came from.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import Field

from services.common.protocol.spec import Spec

PresetId = Literal["quick", "standard", "thorough", "long"]
Fields = Mapping[str, Any]

LEARNING_RATES = {"sgd": 0.1, "momentum": 0.05, "adamw": 0.001}
"""For an inner optimizer that is named without a rate, and is not the one that the data card recommends."""
OF_THE_CARD = ("model", "inner", "outer", "rounds", "k_steps", "batch")
"""What a data card may recommend."""
OPTIMIZERS = ("inner", "outer")


class Preset(Spec):
    """One way to train. The sentence is for people who have never trained a model."""

    id: PresetId = Field(description="What a request says")
    title: str = Field(description="What people see")
    sentence: str = Field(description="What it is good for, in English")
    sets: dict[str, Any] = Field(description="The fields of the run that it sets; of `inner`, single values")


# Patience is in evaluations, about one a round. Half of quick's rounds, a third to a half of what data cards recommend:
# noise is over in two or three. With a falling rate the last third often helps most, and strong momentum swings: these
# wait for nearly half and for a quarter of their rounds.
PRESETS: dict[str, Preset] = {
    preset.id: preset
    for preset in (
        Preset(
            id="quick",
            title="Quick",
            sentence="A first result in about a minute: few rounds, to see that everything works and that it learns.",
            sets={"rounds": 10, "k_steps": 50, "encoding": "int8", "k_auto": True, "k_steps_max": 50, "patience": 5},
        ),
        Preset(
            id="standard",
            title="Standard",
            sentence="What is recommended for the data set, sent in a quarter of the bytes: right for most runs.",
            sets={"encoding": "int8", "k_auto": True, "k_steps_max": 200, "patience": 10},
        ),
        Preset(
            id="thorough",
            title="Thorough",
            sentence="More and longer rounds for a better model: the learning rate rises, then falls, and the master "
            "keeps some momentum from round to round.",
            sets={
                "rounds": 60,
                "k_steps": 100,
                "k_auto": True,
                "k_steps_max": 500,
                "patience": 25,
                "encoding": "int8",
                "outer": {"name": "nesterov", "lr": 0.7, "mu": 0.6},
                "inner": {"schedule": "cosine", "warmup": 0.05},
            },
        ),
        Preset(
            id="long",
            title="Long",
            sentence="Hundreds of short rounds with the strong momentum of DiLoCo (0.7 and 0.9), for large models that "
            "learn slowly; a run of fewer than 100 rounds overshoots with it.",
            sets={
                "rounds": 200,
                "k_steps": 20,
                "k_auto": True,
                "k_steps_max": 500,
                "patience": 50,
                "encoding": "int8",
                "outer": {"name": "nesterov", "lr": 0.7, "mu": 0.9},
                "inner": {"schedule": "cosine", "warmup": 0.1},
            },
        ),
    )
}

assert tuple(PRESETS) == get_args(PresetId), "each preset has its name"


def fill_in(given: Fields, preset: Preset | None, recommended: Fields) -> dict[str, Any]:
    """The fields of a run: what is `given` wins over the preset, that over what the data card recommends.

    What none of them has is left out: those are the defaults of `RunSpec`. The values of an optimizer that are not
    given come from the preset and the card as long as these name the same one; a learning rate schedule of the preset
    goes with each. New dicts; nothing given is changed.
    """
    card = {name: recommended[name] for name in OF_THE_CARD if name in recommended}
    chosen = dict(preset.sets) if preset else {}
    optimizers = {name: _optimizer(name, card, chosen, given) for name in OPTIMIZERS}
    return {**card, **chosen, **given, **{name: fields for name, fields in optimizers.items() if fields}}


def _optimizer(which: str, *sources: Fields) -> dict[str, Any]:
    """The values of one optimizer, later sources over earlier ones; a source that names another one starts anew."""
    filled: dict[str, Any] = {}
    shared: dict[str, Any] = {}  # values that go with whatever optimizer is named
    for values in (source[which] for source in sources if which in source):
        name = values.get("name")
        if name is None:
            shared |= values
        elif name != filled.get("name"):
            known = which == "inner" and isinstance(name, str) and name in LEARNING_RATES
            filled = {"lr": LEARNING_RATES[name]} if known else {}
        filled |= values
    return {**shared, **filled}
