"""Outer optimizers: what the master does once per round with the mean delta. Data: `{"name": "fedavg", "lr": 1.0}`.

The mean delta is a gradient (Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 1, with the sign
turned: delta = anchor - local points uphill), so theta goes *against* it. An optimizer makes the *update*
(what is taken from version v to get v+1) out of the mean delta; `step` takes it away. The two are apart because
replicas receive the update, possibly encoded, and must take away the very same numbers.
Momentum, nesterov and fedadam belong here: a class with `update` and `state`, a branch in `build_outer`.
"""

from typing import Protocol

import numpy as np

from services.common.kernels import Threads, sgd_update
from services.common.learning.optimizer_state import GivenState, State, load_state
from services.common.learning.parameters import Floats
from services.common.learning.specification import Specification, check_fields, choice, real

OUTER_LR_MIN, OUTER_LR_MAX = 1e-6, 10.0
OUTER_LR_DEFAULT = 1.0


class OuterOptimizer(Protocol):
    """One outer optimizer for vectors of one length; it owns its state."""

    def update(self, mean_delta: Floats) -> Floats:
        """The update float32[n], a new array; moves the state forward by one round."""

    def step(self, params: Floats, mean_delta: Floats) -> None:
        """params <- params - update(mean_delta), in place."""

    def state(self) -> State:
        """A copy of the state as arrays by name; empty when there is none."""

    def load(self, state: GivenState) -> None:
        """Takes over a copy of what `state()` gave; SettingsError when it does not fit."""


def build_outer(spec: Specification, threads: Threads | None = None) -> OuterOptimizer:
    """The outer optimizer of `spec`, with fresh state; SettingsError names a bad field.

    With `threads`, those of the master, its steps over some MiB go over several; the bits stay the same.
    """
    choice("outer optimizer", spec, "name", ("fedavg",))
    check_fields("fedavg", spec, ("name", "lr"))
    return FedAvg(real("fedavg lr", spec.get("lr", OUTER_LR_DEFAULT), OUTER_LR_MIN, OUTER_LR_MAX), threads)


def apply_update(params: Floats, update: Floats, threads: Threads | None = None) -> None:
    """params <- params - update, in place: the only way any replica goes from one version to the next."""
    sgd_update(params, update, 1.0, threads=threads)


class FedAvg:
    """Federated averaging: McMahan et al., AISTATS 2017 (arXiv 1602.05629), algorithm 1.

    With lr = 1, theta - sum w_i (theta - theta_i) = sum w_i theta_i: the weighted mean of the workers' parameters.
    """

    def __init__(self, lr: float, threads: Threads | None = None) -> None:
        self._lr = np.float32(lr)
        self._threads = threads

    def update(self, mean_delta: Floats) -> Floats:
        """lr * mean_delta, a new float32[n]."""
        return mean_delta * self._lr

    def step(self, params: Floats, mean_delta: Floats) -> None:
        """params <- params - lr * mean_delta, in place."""
        apply_update(params, self.update(mean_delta), self._threads)

    def state(self) -> State:
        """Empty."""
        return {}

    def load(self, state: GivenState) -> None:
        """Takes only an empty state."""
        load_state({}, state)
