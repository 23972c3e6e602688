"""The built-in data sets as people choose them: a title, a line of description, counts and settings that work.

The recommended settings are what the convergence tests run; change the two together.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from services.common.learning.datasets import NAMES, TEST_ONE_IN, describe

Entry = dict[str, Any]

_MLP = {"family": "mlp", "hidden": [64, 64]}
_MOMENTUM = {"name": "momentum", "lr": 0.05, "momentum": 0.9}


@dataclass(frozen=True, slots=True)
class _Card:
    title: str
    description: str
    dimensions: int
    classes: int
    model: dict[str, Any]
    inner: dict[str, Any]
    k_steps: int
    batch: int
    rounds: int


_CARDS = {
    "digits": _Card(
        title="Handwritten digits",
        description="1,797 images of 8 x 8 pixels, written by people (UCI optdigits test set); bundled, no download.",
        dimensions=64,
        classes=10,
        model=_MLP,
        inner=_MOMENTUM,
        k_steps=50,
        batch=32,
        rounds=20,
    ),
    "gauss3": _Card(
        title="Three Gaussians",
        description="Three round clouds of points that overlap a little; a softmax model is enough.",
        dimensions=2,
        classes=3,
        model={"family": "softmax"},
        inner={"name": "sgd", "lr": 0.1},
        k_steps=20,
        batch=32,
        rounds=10,
    ),
    "rings4": _Card(
        title="Four rings",
        description="Four rings around one centre; no straight line parts them, so the model needs hidden layers.",
        dimensions=2,
        classes=4,
        model=_MLP,
        inner={"name": "momentum", "lr": 0.02, "momentum": 0.9},
        k_steps=50,
        batch=32,
        rounds=20,
    ),
    "spiral3": _Card(
        title="Three-armed spiral",
        description="Three arms wound around one another; a small network learns to follow them.",
        dimensions=2,
        classes=3,
        model=_MLP,
        inner=_MOMENTUM,
        k_steps=50,
        batch=32,
        rounds=15,
    ),
}


def catalog() -> list[Entry]:
    """One JSON-able entry per built-in data set, sorted by name; nothing is generated but the descriptor's digest.

    `recommended` has what a run needs: `model`, `inner`, `k_steps`, `batch` and `rounds`, for two workers or more.
    """
    return [_entry(name, _CARDS[name]) for name in sorted(NAMES)]


def _entry(name: str, card: _Card) -> Entry:
    descriptor = describe(name)
    test = descriptor["n"] // TEST_ONE_IN
    return {
        "name": name,
        "title": card.title,
        "description": card.description,
        "dimensions": card.dimensions,
        "classes": card.classes,
        "train": descriptor["n"] - test,
        "test": test,
        "descriptor": descriptor,
        "recommended": {
            "model": deepcopy(card.model),
            "inner": deepcopy(card.inner),
            "k_steps": card.k_steps,
            "batch": card.batch,
            "rounds": card.rounds,
        },
    }
