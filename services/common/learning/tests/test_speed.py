"""A speed on one model carried over to another: the same workload, the direction, and what was measured."""

import pytest

from services.common.learning import build_model, workload
from services.common.learning.speed import (
    FLOPS_PER_LAYER,
    FLOPS_PER_STEP,
    Workload,
    benchmark_workload,
    expected_samples_per_s,
)


def test_the_same_workload_keeps_its_speed() -> None:
    one = benchmark_workload()
    assert one == Workload(n_parameters=8970, layers=3, batch=32)
    assert expected_samples_per_s(1234.0, one, one) == 1234.0


def test_a_large_model_costs_six_flops_a_parameter_and_sample() -> None:
    """Then the rest hardly counts: twice the parameters, half the speed."""
    small, large = Workload(10_000_000, 3, 4096), Workload(20_000_000, 3, 4096)
    assert small.flops_per_sample == pytest.approx(6 * 10_000_000, rel=0.01)
    assert expected_samples_per_s(1000.0, small, large) == pytest.approx(500.0, rel=0.01)


def test_a_step_of_a_tiny_model_costs_the_same_whatever_its_batch() -> None:
    small, large = Workload(9, 1, 8), Workload(9, 1, 64)
    assert small.flops_per_sample * 8 == pytest.approx(FLOPS_PER_STEP + FLOPS_PER_LAYER, rel=0.01)
    assert expected_samples_per_s(1000.0, small, large) == pytest.approx(8000.0, rel=0.01)


@pytest.mark.parametrize(
    "spec, inputs, classes, batch, step_us",
    [
        ({"family": "softmax"}, 2, 3, 32, 46),
        ({"family": "mlp", "hidden": [64, 64]}, 64, 10, 8, 82),
        ({"family": "mlp", "hidden": [128, 128]}, 64, 10, 32, 139),
        ({"family": "mlp", "hidden": [256, 256]}, 784, 10, 32, 810),
        ({"family": "mlp", "hidden": [512, 512]}, 64, 10, 32, 1066),
        ({"family": "mlp", "hidden": [1024, 192]}, 784, 10, 32, 2641),
        ({"family": "mlp", "hidden": [1024, 192]}, 784, 10, 128, 5636),
    ],
)
def test_it_agrees_with_what_was_measured(
    spec: dict[str, object], inputs: int, classes: int, batch: int, step_us: float
) -> None:
    """Microseconds a step of one thread, when the benchmark's step took 98 (the machine is named in speed.py)."""
    wanted = workload(build_model(spec, inputs, classes), batch)
    expected = expected_samples_per_s(32 / 98e-6, benchmark_workload(), wanted)
    assert expected == pytest.approx(batch / (step_us * 1e-6), rel=0.3)
