"""The presets: ways to train that people choose by one word. They are the same for every master."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from services.common.protocol.presets import LEARNING_RATES, PRESETS, Preset

router = APIRouter(prefix="/presets", tags=["presets"])


class PresetList(BaseModel):
    """All presets, from the shortest run to the longest."""

    items: list[Preset]
    next_cursor: None = Field(default=None, description="Always null: they are few")
    learning_rates: dict[str, float] = Field(description="What an inner optimizer gets that is named without `lr`")


@router.get("", operation_id="listPresets", summary="Ways to train, each with the fields that it sets")
async def list_presets() -> PresetList:
    """Their ids go into `preset` when a run is started. What a preset does not set, the data set recommends."""
    return PresetList(items=list(PRESETS.values()), learning_rates=LEARNING_RATES)
