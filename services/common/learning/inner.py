"""Inner optimizers: one mini-batch step on the local parameters, in place. Data: `{"name": "sgd", "lr": 0.1}`.

Each also takes `schedule` and `warmup` (`schedule.py`) and `prox`, FedProx's pull to the anchor: the optimizer only
carries these, `local_steps.py` knows position and anchor and does them.
Not for the step the master takes once per round: that is `outer.py`. All of it on one thread: a worker has been given
its cores already.
"""

from typing import Protocol

import numpy as np

from services.common.kernels import AdamWNumbers, adamw, sgd_update
from services.common.learning.optimizer_state import GivenState, State, load_state
from services.common.learning.parameters import Floats
from services.common.learning.schedule import SCHEDULE_FIELDS, Schedule, read_schedule
from services.common.learning.specification import Specification, check_fields, choice, real

LR_MIN, LR_MAX = 1e-8, 10.0
DECAY_RATE_MAX = 0.99999
EPS_MIN, EPS_MAX = 1e-12, 1.0
WEIGHT_DECAY_MAX = 1.0
PROX_MAX = 10.0

_COMMON_FIELDS = ("name", "lr", "prox", *SCHEDULE_FIELDS)


class InnerOptimizer(Protocol):
    """One optimizer for vectors of one length; it owns its state."""

    schedule: Schedule
    prox: float
    """mu of FedProx: Li et al., MLSys 2020, eq. 2. 0: none."""

    def step(self, params: Floats, grad: Floats, lr_scale: float = 1.0, start: int = 0) -> None:
        """Changes `params` (float32[n]) in place, at the rate lr * `lr_scale`; `grad` (float32[n]) is only read.

        A step may also come in parts that follow one another from the last to the first: then both are those from
        position `start` on, and the part at 0 ends the step. The bits are the same.
        """

    def state(self) -> State:
        """A copy of the state as arrays by name; empty when there is none."""

    def load(self, state: GivenState) -> None:
        """Takes over a copy of what `state()` gave; SettingsError when names or shapes differ."""


def build_inner(spec: Specification, n: int) -> InnerOptimizer:
    """The optimizer of `spec` for vectors of `n`, with fresh state; SettingsError names a bad field."""
    optimizer = _build_rule(spec, n)
    optimizer.schedule = read_schedule(spec)
    optimizer.prox = real("prox", spec.get("prox", 0.0), 0.0, PROX_MAX)
    return optimizer


def _build_rule(spec: Specification, n: int) -> InnerOptimizer:
    name = choice("inner optimizer", spec, "name", ("adamw", "momentum", "sgd"))
    lr = real(f"{name} lr", spec.get("lr"), LR_MIN, LR_MAX)
    if name == "sgd":
        check_fields(name, spec, _COMMON_FIELDS)
        return Sgd(lr)
    if name == "momentum":
        check_fields(name, spec, (*_COMMON_FIELDS, "momentum"))
        return Momentum(lr, real("momentum", spec.get("momentum", 0.9), 0.0, DECAY_RATE_MAX), n)
    check_fields(name, spec, (*_COMMON_FIELDS, "beta1", "beta2", "eps", "weight_decay"))
    return AdamW(
        lr,
        real("adamw beta1", spec.get("beta1", 0.9), 0.0, DECAY_RATE_MAX),
        real("adamw beta2", spec.get("beta2", 0.999), 0.0, DECAY_RATE_MAX),
        real("adamw eps", spec.get("eps", 1e-8), EPS_MIN, EPS_MAX),
        real("adamw weight_decay", spec.get("weight_decay", 0.01), 0.0, WEIGHT_DECAY_MAX),
        n,
    )


class Sgd:
    """params <- params - lr * grad (Robbins & Monro, 1951). No state."""

    schedule = Schedule()
    prox = 0.0

    def __init__(self, lr: float) -> None:
        self._lr = lr

    def step(self, params: Floats, grad: Floats, lr_scale: float = 1.0, start: int = 0) -> None:
        """One step in place."""
        del start
        sgd_update(params, grad, self._lr * lr_scale)

    def state(self) -> State:
        """Empty."""
        return {}

    def load(self, state: GivenState) -> None:
        """Takes only an empty state."""
        load_state({}, state)


class Momentum:
    """v <- momentum * v + grad; params <- params - lr * v (Polyak, 1964; the learning rate outside v, as PyTorch does).

    Sutskever et al., ICML 2013, eq. 1-2 keep lr inside v; for a constant lr both are the same. Here a schedule leaves v
    as it is: the rate of the moment is that of the whole step.
    """

    schedule = Schedule()
    prox = 0.0

    def __init__(self, lr: float, momentum: float, n: int) -> None:
        self._lr = lr
        self._momentum = np.float32(momentum)
        self._velocity = np.zeros(n, dtype=np.float32)

    @np.errstate(over="ignore", invalid="ignore")  # a diverging run is seen in its loss, not in warnings
    def step(self, params: Floats, grad: Floats, lr_scale: float = 1.0, start: int = 0) -> None:
        """One step in place. Not the kernel `momentum`: it writes the update, too, for `sgd_update` to read again."""
        velocity = self._velocity[start : start + len(grad)]
        velocity *= self._momentum
        velocity += grad
        sgd_update(params, velocity, self._lr * lr_scale)

    def state(self) -> State:
        """`velocity` float32[n]."""
        return {"velocity": self._velocity.copy()}

    def load(self, state: GivenState) -> None:
        """Takes over a copy of `velocity`."""
        load_state({"velocity": self._velocity}, state)


class AdamW:
    """Adam with decoupled weight decay: Loshchilov & Hutter, ICLR 2019 (arXiv 1711.05101), algorithm 2.

    m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g^2;  with the bias corrections of Kingma & Ba, ICLR 2015,
    params <- params - lr * (mhat / (sqrt(vhat) + eps) + weight_decay * params). This is line 12 with alpha = 1 and
    eta_t = lr: the decay is multiplied by lr, as in PyTorch.
    """

    schedule = Schedule()
    prox = 0.0

    def __init__(self, lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, n: int) -> None:
        self._numbers = AdamWNumbers(lr, beta1, beta2, eps, weight_decay)
        self._steps = np.zeros(1, dtype=np.int64)
        self._first = np.zeros(n, dtype=np.float32)
        self._second = np.zeros(n, dtype=np.float32)

    def step(self, params: Floats, grad: Floats, lr_scale: float = 1.0, start: int = 0) -> None:
        """One step in place."""
        part = slice(start, start + len(grad))
        t = int(self._steps[0]) + 1
        adamw(params, self._first[part], self._second[part], grad, self._numbers, t, lr_scale)
        if start == 0:
            self._steps[0] = t

    def state(self) -> State:
        """`steps` int64[1], `first` and `second` moments float32[n]."""
        return {"steps": self._steps.copy(), "first": self._first.copy(), "second": self._second.copy()}

    def load(self, state: GivenState) -> None:
        """Takes over copies of `steps`, `first` and `second`."""
        load_state({"steps": self._steps, "first": self._first, "second": self._second}, state)
