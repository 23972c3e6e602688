"""What to choose from before a run starts: data sets, and folders for the model."""

from typing import Any

from pydantic import BaseModel, Field

from services.console.answers.fields import NextCursor


class DatasetCard(BaseModel):
    """A data set, with values that work."""

    name: str = Field(description="Goes into a run's `dataset`")
    title: str
    description: str
    dimensions: int
    classes: int
    train: int = Field(description="Examples to train with")
    test: int = Field(description="Examples held out")
    recommended: dict[str, Any] = Field(description="Fields of a run's specification")


class DatasetList(BaseModel):
    """The catalog."""

    items: list[DatasetCard]
    next_cursor: NextCursor


class FolderFacts(BaseModel):
    """What lies in a folder on the master's PC."""

    path: str
    parent: str | None = Field(description="Null where looking ends")
    folders: list[str] = Field(description="Names of the folders in it")
    models: list[str] = Field(description="Names of the models in it")
    more: bool = Field(description="Not all are shown")
    roots: list[str] = Field(description="Where looking may begin")
