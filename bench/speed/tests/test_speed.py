"""The pure parts: arms, what rounds and steps say, which learning rate is next, quotas as files, the data set."""

from pathlib import Path

import numpy as np
import pytest

from bench.speed import arms, ddp, mnist, plots, scaling, time_to_loss, unequal
from bench.speed.curves import curves
from bench.speed.figures import (
    Round,
    Steps,
    divided_s,
    next_rate,
    over_divided,
    recovered_after,
    samples_per_s,
    utilisation,
)
from bench.speed.quotas import PERIOD_US, Quotas, available
from services.common.errors import DatasetError
from services.common.learning import build_model

LINK = {"mbit": 100.0, "delay_ms": 2.0, "queue_kib": 512.0}
ARM = {"encoding": "int8", "k_steps": 50}
# Two workers, the first twice as fast; in round 2 they were given the same.
WORK = {
    1: [Steps(1, 200, 0.0, 1.0), Steps(2, 100, 2.0, 2.5)],
    2: [Steps(1, 100, 0.0, 1.0), Steps(2, 100, 2.0, 3.0)],
}


@pytest.mark.parametrize("arm", [*arms.SCALING, *arms.TIME_TO_LOSS, *arms.DDP, *arms.UNEQUAL, *arms.QUICK])
def test_every_arm_is_a_specification(arm: arms.Arm) -> None:
    spec = arms.spec_of(arm, 2)
    assert (spec.min_workers, spec.dataset, spec.k_steps) == (2, mnist.NAME, arm["k_steps"])
    assert build_model(spec.model, mnist.INPUTS, mnist.CLASSES).n_parameters == 1_002_570


def test_a_field_that_no_run_has_is_refused() -> None:
    with pytest.raises(ValueError, match="k_step"):
        arms.spec_of({"k_step": 5}, 1)


def test_another_learning_rate_keeps_the_rest_of_the_inner_optimizer() -> None:
    assert arms.with_rate(ARM, 0.3)["inner"] == {"name": "sgd", "lr": 0.3}
    momentum = {"inner": {"name": "momentum", "lr": 0.1, "momentum": 0.8}}
    assert arms.with_rate(momentum, 0.3)["inner"] == {"name": "momentum", "lr": 0.3, "momentum": 0.8}


def test_rate_is_the_median_over_rounds() -> None:
    assert samples_per_s([Round(1, 1, 1.0, 100), Round(2, 2, 0.5, 100), Round(3, 12, 10.0, 100)]) == 100


def test_utilisation_counts_the_steps_of_these_rounds_only() -> None:
    assert utilisation(WORK, [Round(2, 3.5, 2.0, 200)]) == {1: 0.25, 2: 0.5}


def test_the_divided_round_lets_all_compute_until_the_end() -> None:
    assert divided_s(WORK, 1) == 1.0
    assert divided_s(WORK, 2) == pytest.approx(200 / 300)  # 200 samples/s and 100 samples/s
    assert divided_s({**WORK, 3: []}, 1) is None
    assert over_divided(WORK, [Round(1, 1.1, 1.1, 300), Round(3, 9, 1.0, 300)]) == [1.1, None]


def test_recovery_is_the_first_round_within_the_limit() -> None:
    assert recovered_after([0.9, 1.9, None, 1.15, 1.1], 1.15) == 3
    assert recovered_after([1.0, 1.1], 1.15) == 1
    assert recovered_after([0.9, 1.3, 1.1, 1.1, 1.2, 1.0], 1.15) == 2, "one round over it is noise"
    assert recovered_after([0.9, 1.3, 1.1, 1.1, 1.2, 1.2, 1.2], 1.15) is None, "it is not kept"
    assert recovered_after([1.9, 1.2], 1.15) is None


@pytest.mark.parametrize(
    "tried,expected",
    [
        ({}, 0.05),
        ({0.05: 9.0, 0.1: 5.0}, 0.2),
        ({0.05: 9.0, 0.1: 5.0, 0.2: 7.0}, None),
        ({0.05: 9.0, 0.1: 5.0, 0.2: 4.0}, 0.4),
        ({0.05: 3.0, 0.1: 5.0, 0.2: 7.0}, 0.025),
        ({0.05: None, 0.1: None, 0.2: None}, 0.4),
        ({0.0125: 1.0, 0.025: 2.0, 0.05: 3.0, 0.1: 5.0, 0.2: 7.0}, None),
        ({0.05: 5.0, 0.1: 4.0, 0.2: 3.0, 0.4: 2.5, 0.8: 2.0, 1.6: 1.0}, None),
    ],
)
def test_rates_are_bracketed(tried: dict[float, float | None], expected: float | None) -> None:
    assert next_rate(tried) == expected


def test_targets_are_judged() -> None:
    row = {"link": LINK, "arm": ARM, "workers": 2, "samples_per_s": 1.0, "of_one": 1.8, "of_lone": 1.7}
    assert [met for _, met in scaling.targets([row])] == [True, False]
    assert not list(scaling.targets([{**row, "link": {**LINK, "mbit": 10.0}}, {**row, "workers": 1}]))
    loss = {"link": LINK, "target_loss": 0.2, "workers": 1, "seconds": 10.0}
    assert [met for _, met in time_to_loss.targets([loss, {**loss, "workers": 2, "seconds": 9.0}])] == [True]
    assert [met for _, met in time_to_loss.targets([loss, {**loss, "workers": 2, "seconds": None}])] == [False]
    for code, met in (("HELPS", False), ("ONE_PC_IS_ENOUGH", True), ("LEAVE_OUT", True)):
        later = {**loss, "workers": 2, "seconds": 11.0, "verdict": {"code": code, "sentence": "as it was said"}}
        assert [one for _, one in time_to_loss.targets([loss, later])] == [met]
    assert [met for _, met in ddp.targets([{"who": "DDP"}, {**row, "who": "MAHE", "of_ddp": 99.0}])] == [False]
    steady = {"arm": ARM, "utilisation_mean": 0.9, "of_divided": 1.15, "recovered_after": 3}
    assert [met for _, met in unequal.targets([steady])] == [True, True, True]
    missed = {"arm": ARM, "utilisation_mean": 0.89, "of_divided": None, "recovered_after": None}
    assert [met for _, met in unequal.targets([missed])] == [False, False, False]


def test_the_picture_shows_the_arm_that_is_fastest_with_most_workers() -> None:
    slow = [{"link": LINK, "arm": ARM, "workers": count, "samples_per_s": 10.0 * count} for count in (1, 2)]
    fast = [{**row, "arm": {"k_steps": 1}, "samples_per_s": 5.0 + 10.0 * row["workers"]} for row in slow]
    assert plots.best_by_link([*slow, *fast]) == {"100 Mbit/s": fast}


@pytest.mark.parametrize("version", [1, 2])
def test_quotas_as_the_kernel_reads_them(tmp_path: Path, version: int) -> None:
    assert "no control group" in available(tmp_path)
    quotas = Quotas([0.4], tmp_path)
    if version == 2:
        (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory\n")
    folders = quotas.folders(1)
    assert [folder.parent.name for folder in folders] == ([tmp_path.name] if version == 2 else ["cpu", "cpuacct"])
    for folder in folders:
        folder.mkdir(parents=True)
    quotas.change(1, 0.25)
    quotas.admit(1, 77)
    assert all((folder / "cgroup.procs").read_text() == "77" for folder in folders)
    if version == 2:
        assert (folders[0] / "cpu.max").read_text() == f"{PERIOD_US // 4} {PERIOD_US}"
        (folders[0] / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    else:
        assert (folders[0] / "cpu.cfs_quota_us").read_text() == str(PERIOD_US // 4)
        assert (folders[0] / "cpu.cfs_period_us").read_text() == str(PERIOD_US)
        (folders[1] / "cpuacct.usage").write_text("2500000000\n")
    assert quotas.used_s(1) == 2.5


def test_digits_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(mnist.VARIABLE, str(tmp_path / "digits.npz"))
    assert str(tmp_path) in mnist.missing()
    with pytest.raises(DatasetError, match="--mnist"):
        mnist.examples(7, 3)
    np.savez(tmp_path / "digits.npz", x=np.full((4, 784), 255, np.uint8), y=np.arange(4, dtype=np.uint8))
    assert mnist.missing() == ""
    x, y = mnist.examples(7, 3)
    assert (x.dtype, x.shape, float(x.min()), y.tolist()) == (np.float32, (3, 784), 1.0, [0, 1, 2])
    with pytest.raises(DatasetError, match="at least 5 rows"):
        mnist.examples(7, 5)


def test_a_curve_has_seconds_rounds_and_bytes() -> None:
    run = {"arm": ARM, "lr": 0.1, "curve": [[1.5, 0.9, 2], [3.0, 0.4, 4]]}
    row = {"link": LINK, "workers": 2, "target_loss": 0.2, "best": None}
    (found,) = curves([{**row, "curves": [run, {**run, "curve": []}]}])
    assert (found.label, found.link) == ("2 workers, encoding=int8 k_steps=50", "100 Mbit/s")
    assert (found.seconds, found.losses, found.rounds) == ((1.5, 3.0), (0.9, 0.4), (2, 4))
    each_mb = 4 * 1_006_490 / 1e6  # two deltas up and two updates down, each with its scales
    assert found.megabytes == pytest.approx((2 * each_mb, 4 * each_mb), rel=1e-3)
    (before,) = curves([{**row, "best": {"arm": ARM, "lr": 0.1}, "curve": [[1.5, 0.9], [3.0, 0.4]]}])
    assert (before.seconds, before.rounds, before.megabytes) == ((1.5, 3.0), (), ())
    assert curves([{**row, "curve": []}]) == []


def test_the_curve_of_an_arm_is_its_soonest_run() -> None:
    slow, soon, never = ({"arm": ARM, "seconds": seconds} for seconds in (9.0, 5.0, None))
    other = {"arm": {"k_steps": 1}, "seconds": None}
    assert time_to_loss.best_of_each_arm([never, slow, soon, other, other]) == [soon, other]
