"""The state of an optimizer as arrays by name, so that a checkpoint can hold it without knowing the optimizer."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from services.common.learning.specification import refuse

State = dict[str, np.ndarray[Any, Any]]
GivenState = Mapping[str, np.ndarray[Any, Any]]


def load_state(own: State, given: GivenState) -> None:
    """Copies `given` into the arrays of `own`; SettingsError, and no change, when a name, shape or type differs."""
    if sorted(own) != sorted(given):
        raise refuse("optimizer state", sorted(given), f"exactly {sorted(own)}")
    for name, array in own.items():
        if given[name].shape != array.shape or given[name].dtype != array.dtype:
            found = f"{given[name].dtype}{list(given[name].shape)}"
            raise refuse(f"optimizer state {name}", found, f"{array.dtype}{list(array.shape)}")
    for name, array in own.items():
        array[...] = given[name]
