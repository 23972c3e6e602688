"""What answers of all topics have."""

from typing import Annotated

from pydantic import BaseModel, Field

Millis = int
"""Wall clock in ms since the Unix epoch, for display only."""
NextCursor = Annotated[str | None, Field(description="`cursor` of the next page; null: this is the last one")]


class Said(BaseModel):
    """A reason as code and values, for those who have sentences of their own; a value may be a reason itself."""

    code: str = Field(description="`TEXT`: somebody else's sentence, the value `text`")
    values: dict[str, "int | float | str | Said"]


ReasonSaid = Annotated[Said | None, Field(description="The reason as code and values; null: there is none")]
