"""The outer step: the sign, the mean, and that the update is all a replica needs."""

import numpy as np
import pytest

from services.common.errors import SettingsError
from services.common.kernels import Threads
from services.common.learning.outer import apply_update, build_outer


def drawn(n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(2)
    return random.normal(size=n).astype(np.float32), random.normal(size=n).astype(np.float32)


def test_fedavg_with_lr_1_goes_to_the_weighted_mean_of_the_locals() -> None:
    anchor, _ = drawn()
    random = np.random.default_rng(3)
    locals_ = [anchor + random.normal(size=1000).astype(np.float32) for _ in range(3)]
    weights = np.array([0.5, 0.3, 0.2])
    mean_delta = sum(w * (anchor - local).astype(np.float64) for w, local in zip(weights, locals_, strict=True))
    params = anchor.copy()
    build_outer({"name": "fedavg"}).step(params, mean_delta.astype(np.float32))
    np.testing.assert_allclose(params, np.average(locals_, axis=0, weights=weights), atol=1e-6)


@pytest.mark.parametrize("lr", [1.0, 0.7])
def test_a_replica_that_takes_the_update_away_has_the_same_bits(lr: float) -> None:
    params, delta = drawn()
    replica = params.copy()
    expected = params.astype(np.float64) - lr * delta.astype(np.float64)
    build_outer({"name": "fedavg", "lr": lr}).step(params, delta)
    apply_update(replica, build_outer({"name": "fedavg", "lr": lr}).update(delta))
    assert np.array_equal(params, replica)
    np.testing.assert_allclose(params, expected, rtol=1e-6, atol=1e-6)


def test_a_large_step_on_three_threads_gives_equal_bits() -> None:
    (params, delta), threads = drawn(2**20 + 7), Threads(3)
    replica = params.copy()
    build_outer({"name": "fedavg", "lr": 0.7}, threads).step(params, delta)
    build_outer({"name": "fedavg", "lr": 0.7}).step(replica, delta)
    threads.close()
    assert np.array_equal(params.view(np.uint32), replica.view(np.uint32))


def test_fedavg_has_no_state() -> None:
    optimizer = build_outer({"name": "fedavg"})
    optimizer.load(optimizer.state())
    assert optimizer.state() == {}
    with pytest.raises(SettingsError):
        optimizer.load({"velocity": np.zeros(3, np.float32)})


@pytest.mark.parametrize("spec", [{}, {"name": "nesterov"}, {"name": "fedavg", "lr": 0}, {"name": "fedavg", "mu": 1}])
def test_a_bad_outer_optimizer_is_refused(spec: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        build_outer(spec)
