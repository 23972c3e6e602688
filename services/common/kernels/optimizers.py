"""The steps of optimizers, each in one pass: outer momentum, Nesterov momentum, AdamW. SGD is `sgd_update`."""

from dataclasses import dataclass

from services.common.errors import KernelError, quoted
from services.common.kernels.arguments import (
    FLOAT32,
    Float32Array,
    check_array,
    check_shape,
    float32_number,
    integer,
    number,
)
from services.common.kernels.calls import call
from services.common.kernels.library import library
from services.common.kernels.threads import Threads

STEPS_MAX = 2**53  # beyond, beta^t would not get the t it was given


@dataclass(frozen=True)
class AdamWStep:
    """The numbers of AdamW's step `t` (1, 2, ...). `adamw` takes them, and what follows from them, as float32.

    1 - beta, and the bias corrections 1 / (1 - beta^t), are computed in float64 and rounded once. `beta1` and `beta2`
    lie in 0..1, 1 excluded; `eps` is not negative.
    """

    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float
    t: int

    def __post_init__(self) -> None:
        for name in ("lr", "eps", "weight_decay"):
            float32_number(name, getattr(self, name))
        for name in ("beta1", "beta2"):
            if not 0 <= number(name, getattr(self, name)) < 1:
                raise KernelError(f"{name} is {quoted(getattr(self, name))}; allowed: a number from 0 to below 1")
        if self.eps < 0:
            raise KernelError(f"eps is {quoted(self.eps)}; allowed: a number that is not negative")
        integer("t", self.t, 1, STEPS_MAX, ", the number of this step")

    def rounded(self) -> dict[str, float]:
        """The fields of C's `mahe_adamw`; cffi rounds each to float32 as it stores it."""
        return {
            "lr": self.lr,
            "beta1": self.beta1,
            "rest1": 1 - self.beta1,
            "beta2": self.beta2,
            "rest2": 1 - self.beta2,
            "unbias1": 1 / (1 - self.beta1**self.t),
            "unbias2": 1 / (1 - self.beta2**self.t),
            "eps": self.eps,
            "weight_decay": self.weight_decay,
        }


def momentum(
    update: Float32Array, m: Float32Array, g: Float32Array, lr: float, mu: float, *, threads: Threads | None = None
) -> None:
    """`m = float32(mu) * m + g`, then `update = float32(lr) * m`. `update is g` is allowed.

    Hsu et al., "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification" (2019).
    """
    _momentum("mahe_momentum_f32", update, m, g, lr, mu, threads)


def nesterov(
    update: Float32Array, m: Float32Array, g: Float32Array, lr: float, mu: float, *, threads: Threads | None = None
) -> None:
    """`m = float32(mu) * m + g`, then `update = float32(lr) * (g + mu * m)`. `update is g` is allowed.

    Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models" (2023), the outer optimizer.
    """
    _momentum("mahe_nesterov_f32", update, m, g, lr, mu, threads)


def _momentum(
    op: str,
    update: Float32Array,
    m: Float32Array,
    g: Float32Array,
    lr: float,
    mu: float,
    threads: Threads | None,
) -> None:
    check_array("update", update, FLOAT32, writable=True)
    check_array("m", m, FLOAT32, writable=True)
    check_array("g", g, FLOAT32)
    check_shape("m", m, "update", update)
    check_shape("g", g, "update", update)
    numbers = (float32_number("lr", lr), float32_number("mu", mu))
    arrays = {"update": update, "m": m, "g": g}
    call(op, arrays, numbers, update.size, written=2, twins=(("update", "g"),), threads=threads)


def adamw(
    params: Float32Array,
    m: Float32Array,
    v: Float32Array,
    grad: Float32Array,
    step: AdamWStep,
    *,
    threads: Threads | None = None,
) -> None:
    """One step in place: `params` and the moments `m` and `v` change, `grad` is only read. No two may overlap.

    Loshchilov & Hutter, ICLR 2019 (arXiv 1711.05101), algorithm 2; the header says in which order it is rounded.
    """
    check_array("params", params, FLOAT32, writable=True)
    check_array("m", m, FLOAT32, writable=True)
    check_array("v", v, FLOAT32, writable=True)
    check_array("grad", grad, FLOAT32)
    for name, array in (("m", m), ("v", v), ("grad", grad)):
        check_shape(name, array, "params", params)
    if not isinstance(step, AdamWStep):
        raise KernelError(f"step is {quoted(step)}; allowed: an AdamWStep")
    numbers = library().ffi.new("mahe_adamw *", step.rounded())
    arrays = {"params": params, "m": m, "v": v, "grad": grad}
    call("mahe_adamw_f32", arrays, (numbers,), params.size, written=3, threads=threads)
