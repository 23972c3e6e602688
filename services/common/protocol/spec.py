"""The specification of a run: what must be the same for all workers. It is data, checked once at the edge."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from services.common.protocol.encodings import Encoding
from services.common.protocol.limits import UNITS_MAX


class Spec(BaseModel):
    """A frozen, strict piece of the specification."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class RunSpec(Spec):
    """One training job. `k_steps` and `batch` are those of a median worker; model and optimizers are data by name."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=64)] = Field(
        default="run", description="What people call this run"
    )
    dataset: Annotated[str, StringConstraints(pattern=r"^[a-z0-9:_-]{1,64}$")] = Field(
        default="digits", description="Name in the data set catalog"
    )
    model: dict[str, Any] = Field(
        default={"family": "mlp", "hidden": [64, 64]}, description="Model family and its sizes"
    )
    inner: dict[str, Any] = Field(default={"name": "sgd", "lr": 0.1}, description="Inner optimizer and its values")
    outer: dict[str, Any] = Field(default={"name": "fedavg", "lr": 1.0}, description="Outer optimizer and its values")
    rounds: Annotated[int, Field(ge=1, le=1_000_000)] = Field(default=30, description="Rounds to close")
    minutes_max: Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)] = Field(
        default=0.0, description="Minutes of training after which the run ends with the round in flight; 0: no limit"
    )
    patience: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=0, description="Evaluations in a row without a better loss after which the run ends; 0: never"
    )
    min_workers: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=1, description="A round opens only with this many workers ready"
    )
    k_steps: Annotated[int, Field(ge=1, le=100_000)] = Field(default=50, description="Local steps per round")
    k_auto: bool = Field(
        default=False,
        description="Let the master raise k_steps, so that workers train most of the time; not for units",
    )
    k_steps_max: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=500, description="The most local steps per round that k_auto chooses"
    )
    batch: Annotated[int, Field(ge=8, le=65_536)] = Field(default=32, description="Samples per local step")
    balance: Literal["proportional", "equal", "units"] = Field(
        default="proportional",
        description="Shards by measured speed, the same for all, or equal units that whoever is free takes",
    )
    units: Annotated[int, Field(ge=1, le=UNITS_MAX)] = Field(
        default=8, description="Units in a round, for balance=units"
    )
    encoding: Encoding = Field(
        default="int8", description="How deltas and updates travel: 4, 2, 1 or half a byte a value; topk: a few values"
    )
    aggregator: Literal["clip", "mean", "trimmed", "median"] = Field(
        default="clip",
        description="How deltas become one: mean with a limit on each norm, mean, trimmed mean, coordinate median",
    )
    clip: Annotated[float, Field(ge=0.5, le=10.0)] = Field(
        default=1.0, description="Limit of a delta's norm in medians of the last rounds, for aggregator=clip"
    )
    trim: Annotated[int, Field(ge=1, le=100)] = Field(
        default=1, description="Values left out at each end, for aggregator=trimmed"
    )
    rounds_in_flight: Literal["auto", 1, 2] = Field(
        default="auto",
        description="1: each round waits for the one before; 2: workers train on while deltas and updates travel; "
        "auto: 2 where that takes over 5 % of the local steps' time",
    )
    model_path: Annotated[str, StringConstraints(min_length=1, max_length=1024)] = Field(
        default="checkpoints/mahe_model.npz",
        description="Where the best version is copied to: a file ending in .npz, in full or below the data folder",
    )
    model_every: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=5, description="Rounds between two copies to model_path; one more when the run ends"
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(default=7, description="Seed of weights and data order")

    @property
    def keeps_deltas(self) -> bool:
        """Whether the aggregator needs every delta at once; else each is added when it comes and forgotten."""
        return self.aggregator in ("trimmed", "median")

    @field_validator("rounds_in_flight", mode="before")
    @classmethod
    def _is_a_number(cls, value: object) -> object:
        """To Python `true` and 1.0 are equal to 1; a specification takes only what its description says."""
        if isinstance(value, bool | float):
            raise ValueError(f"rounds_in_flight is {value}; use auto, 1 or 2")  # noqa: TRY004 - pydantic takes no other
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.keeps_deltas and self.balance != "equal":
            raise ValueError(f"balance is {self.balance}; aggregator={self.aggregator} weighs all alike: use equal")
        if self.rounds_in_flight == 2 and self.balance == "units":
            raise ValueError("rounds_in_flight is 2; balance=units carries nothing from round to round: use 1 or auto")
        return self
