"""Reading fields: whatever JSON or a plug-in puts there is taken or refused by name, and nothing else happens."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import QUOTED_MAX, DatasetError, MaheError, SettingsError, quoted
from services.common.learning.datasets import load
from services.common.learning.inner import build_inner
from services.common.learning.models import build_model
from services.common.learning.outer import build_outer
from services.common.learning.specification import real, whole


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


STRANGE: list[Any] = [
    10**400,
    -(10**400),
    10**5000,  # Python refuses to print it
    math.nan,
    math.inf,
    -math.inf,
    True,
    None,
    "0.1",
    "9" * 5000,
    b"1",
    1j,
    [0.1],
    {"lr": 0.1},
    nested(100_000),
    [10**5000],
]
FIELDS = ["name", "lr", "mu", "tau", "schedule", "warmup", "prox", "momentum"]
FIELDS += ["family", "hidden"]


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: type(value).__name__)
def test_a_strange_value_is_refused_by_field_with_what_is_allowed(value: Any) -> None:
    with pytest.raises(SettingsError, match=r"^lr is .+; allowed: a number from 0\.5 to 2\.$") as caught:
        real("lr", value, 0.5, 2)
    assert len(caught.value.sentence) < 2 * QUOTED_MAX
    with pytest.raises(SettingsError, match=r"^width is .+; allowed: a whole number from 2 to 9\.$"):
        whole("width", value, 2, 9)


def test_numbers_in_range_are_taken() -> None:
    assert [real("lr", value, 0, 1) for value in (0, 1, 0.5)] == [0.0, 1.0, 0.5]
    assert isinstance(real("lr", 1, 0, 1), float)
    assert [whole("width", value, 0, 9) for value in (0, 9)] == [0, 9]


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("field", [*FIELDS, "kind", "seed", "n", "digest"])
def test_no_strange_value_is_more_than_an_error_with_a_sentence(field: str, value: Any) -> None:
    dataset = {"kind": "builtin", "name": "gauss3", "seed": 7, "n": 50, "digest": ""}
    makers: dict[str, Callable[[], object]] = {
        "name": lambda: build_inner({"name": value, "lr": 0.1}, 3),
        "lr": lambda: build_outer({"name": "fedavg", "lr": value}, 3),
        "mu": lambda: build_outer({"name": "nesterov", "mu": value}, 3),
        "tau": lambda: build_outer({"name": "fedadam", "tau": value}, 3),
        "schedule": lambda: build_inner({"name": "sgd", "lr": 0.1, "schedule": value}, 3),
        "warmup": lambda: build_inner({"name": "sgd", "lr": 0.1, "warmup": value}, 3),
        "prox": lambda: build_inner({"name": "sgd", "lr": 0.1, "prox": value}, 3),
        "momentum": lambda: build_inner({"name": "momentum", "lr": 0.1, "momentum": value}, 3),
        "family": lambda: build_model({"family": value}, 2, 2),
        "hidden": lambda: build_model({"family": "mlp", "hidden": value}, 2, 2),
    }
    with pytest.raises(MaheError) as caught:
        makers.get(field, lambda: load({**dataset, field: value}))()
    assert 0 < len(caught.value.sentence) < 400
    if field == "name":
        with pytest.raises(DatasetError, match=r"^dataset name is "):
            load({**dataset, "name": value})


@given(st.integers() | st.floats() | st.text() | st.none() | st.booleans())
def test_what_is_taken_is_finite_and_in_range(value: Any) -> None:
    try:
        taken = real("x", value, -1.0, 1.0)
    except SettingsError:
        assert isinstance(value, bool) or not isinstance(value, int | float) or not -1 <= value <= 1
    else:
        assert taken == value


def test_a_value_is_quoted_whole_or_cut() -> None:
    assert quoted("0.1") == "'0.1'"
    assert quoted("x" * 500) == "'" + "x" * (QUOTED_MAX - 4) + "..."
    assert quoted(10**5000) == "a value of type int, too large to show"
