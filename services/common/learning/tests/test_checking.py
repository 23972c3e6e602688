"""What is wrong with a specification is told with its field, all of it at once."""

from typing import Any

import pytest

from services.common.learning import catalog, faults_of, summary
from services.common.protocol.limits import PARAMETERS_MAX
from services.common.protocol.spec import RunSpec

CARDS = {str(card["name"]): card for card in catalog()}


@pytest.mark.parametrize("dataset", [*CARDS, *(f"builtin:{name}" for name in CARDS)])
def test_what_a_card_recommends_is_right(dataset: str) -> None:
    recommended = dict(CARDS[dataset.removeprefix("builtin:")]["recommended"])
    wanted = {name: recommended[name] for name in ("model", "inner", "outer") if name in recommended}
    assert faults_of(RunSpec(dataset=dataset, **wanted), CARDS) == []


@pytest.mark.parametrize(
    "change, path, words",
    [
        ({"dataset": "cats"}, "dataset", "field dataset is 'cats', allowed are digits"),
        ({"model": {"family": "cnn"}}, "model.family", "allowed: linear, mlp, softmax"),
        ({"model": {"family": "mlp"}}, "model.hidden", "a list of 1 to 8 widths"),
        ({"model": {"family": "mlp", "hidden": [8, "x"]}}, "model.hidden.1", "a whole number from 1 to 4096"),
        ({"model": {"family": "softmax", "depth": 2}}, "model.depth", "allowed: family"),
        ({"model": {"family": "mlp", "hidden": [4096] * 8}}, "model", f"allowed are {PARAMETERS_MAX}"),
        ({"inner": {"lr": 0.1}}, "inner.name", "allowed: adamw, momentum, sgd"),
        ({"inner": {"name": "sgd", "lr": 99.0}}, "inner.lr", "a number from 1e-08 to 10"),
        ({"inner": {"name": "adamw", "lr": 0.1, "beta1": 1.0}}, "inner.beta1", "adamw beta1 is 1.0"),
        ({"inner": {"name": "sgd", "lr": 0.1, "schedule": "up"}}, "inner.schedule", "allowed: constant, cosine"),
        ({"outer": {"name": "nesterov", "mu": -1}}, "outer.mu", "nesterov mu is -1"),
    ],
)
def test_a_fault_names_its_field(change: dict[str, Any], path: str, words: str) -> None:
    [fault] = faults_of(RunSpec(**change), CARDS)
    assert (fault.field, fault.code) == (path, "BAD_SPEC")
    assert words in fault.message


def test_all_faults_come_at_once_and_in_one_sentence() -> None:
    spec = RunSpec(dataset="cats", inner={"name": "sgd", "lr": 0}, outer={"name": "none"})
    faults = faults_of(spec, CARDS)
    assert [fault.field for fault in faults] == ["dataset", "inner.lr", "outer.name"]
    assert summary(faults).count("; ") >= 2
    assert not summary(faults).endswith(".")
