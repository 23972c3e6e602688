"""What answers of all topics have."""

from typing import Annotated

from pydantic import Field

Millis = int
"""Wall clock in ms since the Unix epoch, for display only."""
NextCursor = Annotated[str | None, Field(description="`cursor` of the next page; null: this is the last one")]
