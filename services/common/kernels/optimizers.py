"""The steps of optimizers, each in one pass: outer momentum, Nesterov momentum, AdamW. SGD is `sgd_update`."""

import functools
from dataclasses import dataclass
from typing import Any

from services.common.errors import KernelError, quoted
from services.common.kernels.arguments import (
    FLOAT32,
    Float32Array,
    check_read,
    check_shape,
    check_written,
    float32_number,
    integer,
    number,
)
from services.common.kernels.calls import Function, call
from services.common.kernels.library import library
from services.common.kernels.threads import Threads

STEPS_MAX = 2**53  # beyond, beta^t would not get the t it was given


_MOMENTUM_ARRAYS = {"update": FLOAT32, "m": FLOAT32, "g": FLOAT32}
_MOMENTUM = Function("mahe_momentum_f32", _MOMENTUM_ARRAYS, 2, (("update", "g"),))
_NESTEROV = Function("mahe_nesterov_f32", _MOMENTUM_ARRAYS, 2, (("update", "g"),))
_ADAMW = Function("mahe_adamw_f32", {"params": FLOAT32, "m": FLOAT32, "v": FLOAT32, "grad": FLOAT32}, 3)


@dataclass(frozen=True)
class AdamWNumbers:
    """The numbers of one AdamW optimizer, checked once. `adamw` takes them, and what follows from them, as float32.

    1 - beta, and the bias corrections 1 / (1 - beta^t), are computed in float64 and rounded once. `beta1` and `beta2`
    lie in 0..1, 1 excluded; `eps` is not negative. They keep the memory that C reads, which each step fills again: two
    threads must not take steps with the same numbers at the same time.
    """

    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float

    def __post_init__(self) -> None:
        for name in ("lr", "eps", "weight_decay"):
            float32_number(name, getattr(self, name))
        for name in ("beta1", "beta2"):
            if not 0 <= number(name, getattr(self, name)) < 1:
                raise KernelError(f"{name} is {quoted(getattr(self, name))}; allowed: a number from 0 to below 1")
        if self.eps < 0:
            raise KernelError(f"eps is {quoted(self.eps)}; allowed: a number that is not negative")

    def of_step(self, t: int, lr_scale: float = 1.0) -> tuple[float, float, float]:
        """What differs from step to step: `lr * lr_scale` and the two bias corrections of step `t` (1, 2, ...)."""
        t = integer("t", t, 1, STEPS_MAX, ", the number of this step")
        lr = float32_number("lr * lr_scale", self.lr * float32_number("lr_scale", lr_scale))
        return lr, 1 / (1 - self.beta1**t), 1 / (1 - self.beta2**t)

    def fields(self, t: int, lr_scale: float = 1.0) -> dict[str, float]:
        """The fields of C's `mahe_adamw`; cffi rounds each to float32 as it stores it."""
        lr, unbias1, unbias2 = self.of_step(t, lr_scale)
        return {
            "lr": lr,
            "beta1": self.beta1,
            "rest1": 1 - self.beta1,
            "beta2": self.beta2,
            "rest2": 1 - self.beta2,
            "unbias1": unbias1,
            "unbias2": unbias2,
            "eps": self.eps,
            "weight_decay": self.weight_decay,
        }

    def in_c(self, t: int, lr_scale: float = 1.0) -> Any:
        """The same in C's memory: a pointer to this optimizer's `mahe_adamw`, until the next step."""
        numbers = self._numbers
        numbers.lr, numbers.unbias1, numbers.unbias2 = self.of_step(t, lr_scale)
        return numbers

    @functools.cached_property
    def _numbers(self) -> Any:
        return library().ffi.new("mahe_adamw *", self.fields(1))


def momentum(
    update: Float32Array, m: Float32Array, g: Float32Array, lr: float, mu: float, *, threads: Threads | None = None
) -> None:
    """`m = float32(mu) * m + g`, then `update = float32(lr) * m`. `update is g` is allowed.

    Hsu et al., "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification" (2019).
    """
    _momentum(_MOMENTUM, update, m, g, lr, mu, threads)


def nesterov(
    update: Float32Array, m: Float32Array, g: Float32Array, lr: float, mu: float, *, threads: Threads | None = None
) -> None:
    """`m = float32(mu) * m + g`, then `update = float32(lr) * (g + mu * m)`. `update is g` is allowed.

    Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models" (2023), the outer optimizer.
    """
    _momentum(_NESTEROV, update, m, g, lr, mu, threads)


def _momentum(
    function: Function,
    update: Float32Array,
    m: Float32Array,
    g: Float32Array,
    lr: float,
    mu: float,
    threads: Threads | None,
) -> None:
    check_written("update", update, FLOAT32)
    check_written("m", m, FLOAT32)
    check_read("g", g, FLOAT32)
    check_shape("m", m, "update", update)
    check_shape("g", g, "update", update)
    numbers = (float32_number("lr", lr), float32_number("mu", mu))
    call(function, (update, m, g), numbers, update.size, threads)


def adamw(
    params: Float32Array,
    m: Float32Array,
    v: Float32Array,
    grad: Float32Array,
    numbers: AdamWNumbers,
    t: int,
    lr_scale: float = 1.0,
    *,
    threads: Threads | None = None,
) -> None:
    """Step `t` (1, 2, ...) in place, with the learning rate `lr * lr_scale`. No two arrays may overlap.

    `params` and the moments `m` and `v` change, `grad` is only read.

    Loshchilov & Hutter, ICLR 2019 (arXiv 1711.05101), algorithm 2; the header says in which order it is rounded.
    """
    check_written("params", params, FLOAT32)
    check_written("m", m, FLOAT32)
    check_written("v", v, FLOAT32)
    check_read("grad", grad, FLOAT32)
    check_shape("m", m, "params", params)
    check_shape("v", v, "params", params)
    check_shape("grad", grad, "params", params)
    if not isinstance(numbers, AdamWNumbers):
        raise KernelError(f"numbers is {quoted(numbers)}; allowed: AdamWNumbers")
    call(_ADAMW, (params, m, v, grad), (numbers.in_c(t, lr_scale),), params.size, threads)
