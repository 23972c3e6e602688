"""Outer optimizers: what the master does once per round with the mean delta. Data: `{"name": "fedavg", "lr": 1.0}`.

The mean delta is a gradient (Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 1, with the sign
turned: delta = anchor - local points uphill), so theta goes *against* it. An optimizer makes the *update*
(what is taken from version v to get v+1) out of the mean delta; `apply_update` takes it away. The two are apart because
replicas receive the update, possibly encoded, and must take away the very same numbers.
Their state is float32 arrays between two rounds, so that a run resumed from a checkpoint goes on bit for bit.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from services.common.kernels import Threads, momentum, nesterov, sgd_update
from services.common.learning.optimizer_state import GivenState, State, load_state
from services.common.learning.parameters import Floats
from services.common.learning.specification import Specification, check_fields, choice, real

OUTER_LR_MIN, OUTER_LR_MAX = 1e-6, 10.0
OUTER_LR_DEFAULT = {"fedavg": 1.0, "momentum": 0.7, "nesterov": 0.7, "fedadam": 0.01}
MU_DEFAULT = 0.6
"""Mild, for short runs: a step is worth lr / (1 - mu) = 1.75 deltas in the long run. DiLoCo's 0.9 is for long ones."""
OUTER_DECAY_MAX = 0.999
TAU_MIN, TAU_MAX = 1e-8, 1.0
ENTRIES_AT_ONCE = 1 << 16
"""Entries that FedAdam turns into float64 at a time."""
ROUNDS_PER_MEMORY = 10
"""Momentum remembers about 1 / (1 - mu) rounds; a run shall be this many times as long."""


class OuterOptimizer(Protocol):
    """One outer optimizer for vectors of one length; it owns its state."""

    def update(self, mean_delta: Floats) -> Floats:
        """The update float32[n], a new array; moves the state forward by one round."""

    def state(self) -> State:
        """A copy of the state as arrays by name; empty when there is none."""

    def load(self, state: GivenState) -> None:
        """Takes over a copy of what `state()` gave; SettingsError when it does not fit."""


def build_outer(spec: Specification, n: int, threads: Threads | None = None) -> OuterOptimizer:
    """The outer optimizer of `spec` for vectors of `n`, with fresh state; SettingsError names a bad field.

    With `threads`, those of the master, its steps over some MiB go over several; the bits stay the same.
    """
    name = choice("outer optimizer", spec, "name", OUTER_LR_DEFAULT)
    lr = real(f"{name} lr", spec.get("lr", OUTER_LR_DEFAULT[name]), OUTER_LR_MIN, OUTER_LR_MAX)
    if name == "fedavg":
        check_fields(name, spec, ("name", "lr"))
        return FedAvg(lr)
    if name == "fedadam":
        check_fields(name, spec, ("name", "lr", "beta1", "beta2", "tau"))
        beta1 = real("fedadam beta1", spec.get("beta1", 0.9), 0.0, OUTER_DECAY_MAX)
        beta2 = real("fedadam beta2", spec.get("beta2", 0.99), 0.0, OUTER_DECAY_MAX)
        return FedAdam(lr, beta1, beta2, real("fedadam tau", spec.get("tau", 1e-3), TAU_MIN, TAU_MAX), n)
    check_fields(name, spec, ("name", "lr", "mu"))
    mu = real(f"{name} mu", spec.get("mu", MU_DEFAULT), 0.0, OUTER_DECAY_MAX)
    return OuterMomentum(nesterov if name == "nesterov" else momentum, lr, mu, n, threads)


def warnings_of(spec: Specification, rounds: int) -> list[str]:
    """What to tell whoever starts a run of `rounds` rounds with an outer optimizer that `build_outer` takes.

    In a short run the deltas still point one way and momentum adds them up: at mu 0.9 and lr 0.7 to seven of them,
    which can overshoot.
    """
    mu = float(spec.get("mu", MU_DEFAULT)) if spec["name"] in ("momentum", "nesterov") else 0.0
    if mu == 0 or _long_enough(rounds, mu):
        return []
    advised = f"mu {MU_DEFAULT:g} or fedavg" if _long_enough(rounds, MU_DEFAULT) else "fedavg"
    needed = f"outer momentum {mu:g} needs about {ROUNDS_PER_MEMORY / (1 - mu):.0f} rounds"
    return [f"{needed}; this run has {rounds}: use {advised}"]


def _long_enough(rounds: int, mu: float) -> bool:
    return rounds >= ROUNDS_PER_MEMORY / (1 - mu) - 1e-6  # 1 - 0.9 is not quite 0.1


def apply_update(params: Floats, update: Floats, threads: Threads | None = None) -> None:
    """params <- params - update, in place: the only way any replica goes from one version to the next."""
    sgd_update(params, update, 1.0, threads=threads)


class FedAvg:
    """Federated averaging: McMahan et al., AISTATS 2017 (arXiv 1602.05629), algorithm 1.

    With lr = 1, theta - sum w_i (theta - theta_i) = sum w_i theta_i: the weighted mean of the workers' parameters.
    """

    def __init__(self, lr: float) -> None:
        self._lr = np.float32(lr)

    def update(self, mean_delta: Floats) -> Floats:
        """lr * mean_delta, a new float32[n]."""
        return mean_delta * self._lr

    def state(self) -> State:
        """Empty."""
        return {}

    def load(self, state: GivenState) -> None:
        """Takes only an empty state."""
        load_state({}, state)


class OuterMomentum:
    """m <- mu * m + g with the mean delta g; the update is lr * m, or lr * (g + mu * m) by the kernel `nesterov`.

    FedAvgM: Hsu et al., arXiv 1909.06335, section 4; Nesterov's: Douillard et al. (DiLoCo), arXiv 2311.08105,
    algorithm 1, in the form of Sutskever et al., ICML 2013, as PyTorch has it. The learning rate is outside m.
    """

    def __init__(
        self, kernel: Callable[..., Any], lr: float, mu: float, n: int, threads: Threads | None = None
    ) -> None:
        self._kernel, self._lr, self._mu, self._threads = kernel, lr, mu, threads
        self._momentum = np.zeros(n, dtype=np.float32)

    def update(self, mean_delta: Floats) -> Floats:
        """The update, a new float32[n]; m moves on."""
        update = np.empty_like(mean_delta)
        self._kernel(update, self._momentum, mean_delta, self._lr, self._mu, threads=self._threads)
        return update

    def state(self) -> State:
        """`momentum` float32[n]."""
        return {"momentum": self._momentum.copy()}

    def load(self, state: GivenState) -> None:
        """Takes over a copy of `momentum`."""
        load_state({"momentum": self._momentum}, state)


class FedAdam:
    """Reddi et al., "Adaptive Federated Optimization", ICLR 2021, algorithm 2, with the mean delta g as the gradient.

    m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g^2;  update = lr * m / (sqrt(v) + tau). No bias
    correction; m begins at 0 and v at tau^2, the least the algorithm allows. Computed in float64, kept in float32:
    |g| is at most the bound of the fold, 2^40, so v stays finite.
    """

    def __init__(self, lr: float, beta1: float, beta2: float, tau: float, n: int) -> None:
        self._lr, self._beta1, self._beta2, self._tau = lr, beta1, beta2, tau
        self._first = np.zeros(n, dtype=np.float32)
        self._second = np.full(n, tau * tau, dtype=np.float32)

    def update(self, mean_delta: Floats) -> Floats:
        """The update, a new float32[n]; the moments move on. In ranges: little memory for any n."""
        update = np.empty_like(mean_delta)
        for start in range(0, len(mean_delta), ENTRIES_AT_ONCE):
            part = slice(start, start + ENTRIES_AT_ONCE)
            g = mean_delta[part].astype(np.float64)
            m = self._beta1 * self._first[part].astype(np.float64) + (1 - self._beta1) * g
            v = self._beta2 * self._second[part].astype(np.float64) + (1 - self._beta2) * g * g
            self._first[part], self._second[part] = m, v
            update[part] = self._lr * m / (np.sqrt(v) + self._tau)
        return update

    def state(self) -> State:
        """The moments `first` and `second`, float32[n]."""
        return {"first": self._first.copy(), "second": self._second.copy()}

    def load(self, state: GivenState) -> None:
        """Takes over copies of `first` and `second`."""
        load_state({"first": self._first, "second": self._second}, state)
