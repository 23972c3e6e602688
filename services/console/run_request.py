"""What a request asks to train, made whole: by its preset, the data set's recommendation and the defaults.

For starting a run and for estimating one: both take the same body and refuse the same way.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi.exceptions import RequestValidationError
from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from services.common.errors import Fault, quoted
from services.common.learning import BAD_SPEC, summary
from services.common.protocol.control import ListDatasets
from services.common.protocol.presets import PRESETS, Preset, fill_in
from services.common.protocol.spec import RunSpec
from services.console.context import Console
from services.console.problems import Problem

Card = dict[str, Any]
"""A data set's entry in the catalog."""


class RunRequest(RunSpec):
    """A run's specification, any part of it. The rest comes from preset, data set's recommendation and defaults."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"dataset": "digits", "preset": "quick"}]})
    preset: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None,
        description="How to train, in one word (`GET /api/v1/presets`); null: as the data set recommends",
        json_schema_extra={"enum": [*PRESETS, None]},
    )


async def complete(console: Console, request: RunRequest) -> tuple[RunSpec, dict[str, Card]]:
    """The whole specification, and the catalog's cards by name; raises Problem and RequestValidationError.

    A data set that is not in the catalog recommends nothing; the master refuses it.
    """
    preset = _preset(request.preset)
    answer = await console.ask(ListDatasets())
    cards = {str(item.get("name")): dict(item) for item in answer.get("items", [])}
    card = card_of(cards, request.dataset) or {}
    given = {name: getattr(request, name) for name in request.model_fields_set if name != "preset"}
    try:
        spec = RunSpec.model_validate(fill_in(given, preset, card.get("recommended") or {}))
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None
    return spec, cards


def card_of(cards: dict[str, Card], dataset: str) -> Card | None:
    """The card of a run's `dataset`; None when there is none."""
    return cards.get(dataset.removeprefix("builtin:"))


def bad_spec(faults: Sequence[Fault]) -> Problem:
    """Fields of the specification with values that are not allowed."""
    return Problem(summary(faults), code=BAD_SPEC, errors=[asdict(fault) for fault in faults])


def _preset(name: str | None) -> Preset | None:
    if name is None or name in PRESETS:
        return PRESETS.get(name or "")
    known = ", ".join(PRESETS)
    text = f"field preset is {quoted(name)}, allowed are {known}; see GET /api/v1/presets"
    raise bad_spec([Fault("preset", BAD_SPEC, text)])
