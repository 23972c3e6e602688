"""Whether a run's specification can be trained: data set, model and optimizers, every fault with its field.

Not for what one field alone must be: `RunSpec` says that.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from services.common.errors import Fault, MaheError
from services.common.learning.inner import build_inner
from services.common.learning.models import build_model
from services.common.learning.outer import build_outer
from services.common.protocol.limits import PARAMETERS_MAX
from services.common.protocol.spec import RunSpec

BAD_SPEC = "BAD_SPEC"


def faults_of(spec: RunSpec, cards: Mapping[str, Mapping[str, Any]]) -> list[Fault]:
    """What is wrong with the names and values in `spec`, each with its path (`inner.lr`); `cards`: the catalog by name.

    An optimizer is built for one parameter only: what is checked does not depend on how many there are.
    """
    card = cards.get(spec.dataset.removeprefix("builtin:"))
    faults = []
    if card is None:
        text = f"field dataset is {spec.dataset!r}, allowed are {', '.join(cards)}"
        faults.append(Fault("dataset", BAD_SPEC, text))
    else:
        inputs, classes = int(card["dimensions"]), int(card["classes"])
        faults += _refused("model", lambda: _check_model(spec, inputs, classes))
    faults += _refused("inner", lambda: build_inner(spec.inner, 1))
    faults += _refused("outer", lambda: build_outer(spec.outer, n=1))
    return faults


def summary(faults: Sequence[Fault]) -> str:
    """All of them in one sentence."""
    return "; ".join(fault.message.removesuffix(".") for fault in faults)


def _check_model(spec: RunSpec, inputs: int, classes: int) -> None:
    n = build_model(spec.model, inputs, classes).n_parameters
    if n > PARAMETERS_MAX:
        raise MaheError(f"field model has {n} parameters, allowed are {PARAMETERS_MAX}; use a smaller one")


def _refused(part: str, build: Callable[[], object]) -> list[Fault]:
    """What `build` refuses, as faults of the specification's field `part`."""
    try:
        build()
    except MaheError as error:
        paths = [f"{part}.{fault.field}" for fault in error.faults] or [part]
        return [Fault(path, BAD_SPEC, error.sentence) for path in paths]
    return []
