"""What is compared: fields of a run's specification, as plain dictionaries. Add a field here and it is measured.

An arm names what differs from COMMON; everything else of a run is what people get without saying anything.
"""

import json
from dataclasses import dataclass
from typing import Any

from bench.speed import mnist
from services.common.protocol.spec import RunSpec

Arm = dict[str, Any]

HIDDEN = [1024, 192]
COMMON: Arm = {
    "dataset": mnist.NAME,
    "model": {"family": "mlp", "hidden": HIDDEN},
    "inner": {"name": "sgd", "lr": 0.1},
    "batch": 32,
    "rounds": 1_000_000,  # each run is ended when enough was seen
}

BLOCKING: Arm = {"encoding": "fp32", "k_steps": 100, "rounds_in_flight": 1}  # where a second PC does not pay
AUTO: Arm = {"encoding": "int8", "k_steps": 50, "k_auto": True}  # what people get: overlap and local steps as measured
SCALING: tuple[Arm, ...] = (BLOCKING, {"encoding": "int8", "k_steps": 200}, AUTO)
TIME_TO_LOSS: tuple[Arm, ...] = (
    {"encoding": "int8", "k_steps": 50, "rounds_in_flight": 1},
    {"encoding": "int8", "k_steps": 50},
    AUTO,
)
DDP: tuple[Arm, ...] = (AUTO,)
UNEQUAL: tuple[Arm, ...] = ({"encoding": "int8", "k_steps": 400},)
QUICK: tuple[Arm, ...] = ({"encoding": "int8", "k_steps": 20},)


@dataclass(frozen=True)
class Setting:
    """What holds for all arms of a run of this benchmark: cores of a worker, counted rounds, how short it must be."""

    cores: float = 0.4
    rounds: int = 12
    workers: tuple[int, ...] = (1, 2, 4)
    target_loss: float = 0.18  # one worker gets there, at several learning rates, within 10 epochs
    limit_s: float = 180.0  # of one run to a loss
    quick: bool = False


def spec_of(arm: Arm, workers: int) -> RunSpec:
    """The specification of an arm for so many workers; pydantic's ValidationError names a bad field."""
    return RunSpec.model_validate_json(json.dumps({**COMMON, **arm, "min_workers": workers}))


def with_rate(arm: Arm, lr: float) -> Arm:
    """The same arm at another learning rate."""
    inner: Arm = arm["inner"] if "inner" in arm else COMMON["inner"]
    return {**arm, "inner": {**inner, "lr": lr}}


def name_of(arm: Arm) -> str:
    """For people: what differs from COMMON."""
    return " ".join(f"{field}={_short(value)}" for field, value in arm.items()) or "as it comes"


def workers_of(count: int) -> str:
    """For people."""
    return f"{count} worker{'s' if count > 1 else ''}"


def _short(value: Any) -> str:
    return ",".join(f"{field}={one}" for field, one in value.items()) if isinstance(value, dict) else str(value)
