"""How fast a PC trains one model, worked out from how fast it trains another. Arithmetic only, nothing is measured.

A worker's micro-benchmark measures one small model. Small models spend their time in NumPy's calls, large ones in
products, so samples/s do not go with 1 / parameters: at batch 32, 9 parameters take a half of the benchmark's time a
step, a million take 27 times as much (by parameters alone: 112 times).
"""

from dataclasses import dataclass

from services.common.learning.models import Model, build_model

BENCHMARK_MODEL = {"family": "mlp", "hidden": [64, 64]}
BENCHMARK_INPUTS, BENCHMARK_CLASSES, BENCHMARK_BATCH = 64, 10, 32

FLOPS_PER_PARAMETER = 6
"""Of one sample through a dense layer: a multiply and an add, forward, and twice backward."""
# Fitted to 12 models of 9 to 3,716,106 parameters at batches of 8 to 128, one thread (2-core x86-64 with AVX-512,
# NumPy with OpenBLAS, sgd; the fastest of 4 passes): 51 of 60 points within 25 %, the worst off by a factor of 2.1.
FLOPS_PER_STEP = 4.6e6  # what NumPy's calls cost, in flops of that CPU
FLOPS_PER_LAYER = 1.8e6
SAMPLES_PER_STEP = 27
"""A step reads and writes weights, gradient and optimizer state once: as long as so many more samples would take."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of local step."""

    n_parameters: int
    layers: int
    batch: int

    @property
    def flops_per_sample(self) -> float:
        """Its cost, with what a step costs whatever its batch spread over the batch; only ratios mean anything."""
        parameters = FLOPS_PER_PARAMETER * self.n_parameters * (self.batch + SAMPLES_PER_STEP)
        return (parameters + FLOPS_PER_STEP + FLOPS_PER_LAYER * self.layers) / self.batch


def workload(model: Model, batch: int) -> Workload:
    """The local step of a model with dense layers."""
    layers = sum(len(shape) == 2 for shape in model.layout.shapes)
    return Workload(model.n_parameters, layers, batch)


def benchmark_workload() -> Workload:
    """What a worker's score at join is measured on."""
    return workload(build_model(BENCHMARK_MODEL, BENCHMARK_INPUTS, BENCHMARK_CLASSES), BENCHMARK_BATCH)


def expected_samples_per_s(samples_per_s: float, measured_on: Workload, wanted: Workload) -> float:
    """What a PC that trains one workload at `samples_per_s` is expected to reach with another."""
    return samples_per_s * measured_on.flops_per_sample / wanted.flops_per_sample
