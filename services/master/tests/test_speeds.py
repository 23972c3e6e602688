"""Shares follow the speed that tasks show: short ones, wrong scores, a PC that got busy, the next run, a restart."""

from collections.abc import Mapping

import pytest

from services.tests.story import Story

START = "@1000 create k_steps=10 batch=32 rounds=1000 min_workers=2"


class Cluster:
    """A transcript in which each worker's PC takes as long as its true speed says; a round each call."""

    def __init__(self, *joins: str, start: str = START) -> None:
        self.story, self.now = Story(), 1000
        for line in (*(f"@1000 join {join}" for join in joins), start):
            self.story.play(line)

    def play(self, line: str) -> str:
        self.now += 10
        return self.story.play(f"@{self.now} {line}")

    def shares(self) -> dict[str, float]:
        run = self.story.coordinator.state.run
        assert run is not None
        round_ = run.rounds[-1]
        return {lease.worker.removeprefix("w-"): lease.samples / round_.samples for lease in round_.leases}

    def round(self, per_s: Mapping[str, float]) -> dict[str, float]:
        """One round with these true speeds; the shares of the next."""
        run = self.story.coordinator.state.run
        assert run is not None
        for lease in list(run.rounds[-1].leases):
            name = lease.worker.removeprefix("w-")
            took_ms = 1000 * lease.samples / per_s[name]
            self.play(f"delta {name} samples={lease.samples} steps={lease.k_steps} compute={took_ms:.3f}")
        return self.shares()

    def speed(self, name: str, measured: bool) -> float:
        """Samples/s as the master takes it, after a look at whether training or a score says so."""
        worker = self.story.coordinator.state.workers[f"w-{name}"]
        assert worker.measured is measured
        return worker.samples_per_s


@pytest.mark.parametrize("round_ms", [0.4, 5.0, 60.0, 300.0])
def test_a_wrong_score_is_gone_when_the_steps_make_a_tenth_of_a_second_together(round_ms: float) -> None:
    cluster = Cluster("ada speed=5000", "bob speed=1000")
    per_s = dict.fromkeys(("ada", "bob"), 1000 * 320 / round_ms)
    assert cluster.shares()["ada"] == pytest.approx(0.83, abs=0.01)
    rounds = 0
    while cluster.shares()["ada"] > 0.52:
        cluster.round(per_s)
        rounds += 1
        assert rounds <= 100 / (0.3 * round_ms) + 2, "bob's part of a round takes a third of it at first"
    assert [cluster.round(per_s)["ada"] for _ in range(30)] == pytest.approx([0.5] * 30, abs=0.03)


def test_until_then_the_score_stands() -> None:
    cluster = Cluster("ada speed=1000", "bob speed=1000")
    for _ in range(9):
        assert cluster.round({"ada": 32_000, "bob": 29_000}) == {"ada": 0.5, "bob": 0.5}
    assert cluster.speed("ada", measured=False) == 1000
    cluster.round({"ada": 32_000, "bob": 29_000})
    assert cluster.speed("ada", measured=True) == pytest.approx(32_000)


@pytest.mark.parametrize("round_ms", [60.0, 3000.0])
def test_a_pc_that_got_busy_has_its_share_three_rounds_later(round_ms: float) -> None:
    cluster = Cluster("ada", "bob")
    fast = 1000 * 320 / round_ms
    for _ in range(12):
        cluster.round({"ada": fast, "bob": fast})
    for _ in range(3):
        cluster.round({"ada": fast, "bob": fast / 4})
    assert cluster.shares()["bob"] == pytest.approx(0.2, abs=0.02)


def test_a_delta_that_is_offered_again_says_nothing_new() -> None:
    cluster = Cluster("ada", "bob")
    for _ in range(5):
        cluster.play("begin ada samples=320 compute=60")
    assert cluster.speed("ada", measured=False) == 1000
    cluster.play("delta ada samples=320 compute=60")
    cluster.play("delta bob samples=320 compute=60")
    cluster.play("begin ada samples=320 compute=60")
    assert cluster.speed("ada", measured=True), "that was the next round's"


def test_who_is_not_measured_yet_is_compared_by_the_scores() -> None:
    """Samples/s of the run's model say nothing beside a score: a fast PC that comes later would get next to nothing."""
    cluster = Cluster("ada speed=1000", "bob speed=1000")
    cluster.round({"ada": 50_000, "bob": 50_000})
    for _ in range(20):
        cluster.round({"ada": 50_000, "bob": 50_000})
    cluster.play("join cyd speed=2000")
    assert cluster.round({"ada": 50_000, "bob": 50_000, "cyd": 1.0})["cyd"] == pytest.approx(0.5, abs=0.02)


def test_a_run_of_another_model_begins_with_the_ratios_that_the_last_one_showed() -> None:
    cluster = Cluster("ada speed=5000", "bob speed=1000")
    per_s = {"ada": 4000.0, "bob": 4000.0}
    for _ in range(20):
        cluster.round(per_s)
    cluster.play("stop digits-1")
    cluster.play("create digits-2 k_steps=10 batch=64 rounds=1000")
    assert cluster.shares() == pytest.approx({"ada": 0.5, "bob": 0.5}, abs=0.02)
    cluster.play("left ada")
    cluster.play("join ada speed=5000")
    by_score = [cluster.speed(name, measured=False) for name in ("ada", "bob")]
    assert by_score[0] == pytest.approx(by_score[1], rel=0.1), "a break of the line takes nothing away"
    cluster.round({"ada": 100.0, "bob": 100.0})
    assert cluster.speed("ada", measured=True) == pytest.approx(100, rel=0.01)


def test_a_run_of_the_same_model_goes_on_with_what_was_measured() -> None:
    cluster = Cluster("ada", "bob")
    cluster.round({"ada": 3000.0, "bob": 1000.0})
    cluster.play("stop digits-1")
    cluster.play("create digits-2 k_steps=20 batch=32 rounds=9")
    assert cluster.speed("ada", measured=True) == pytest.approx(3000, rel=0.01)
    assert cluster.shares()["ada"] == pytest.approx(0.75, abs=0.01)


def test_a_delta_of_the_run_before_does_not_count_for_the_new_one() -> None:
    cluster = Cluster("ada", "bob")
    old = cluster.story.leases["w-ada"]
    cluster.play("stop digits-1")
    cluster.play("create digits-2 k_steps=10 batch=64 rounds=9")
    cluster.story.leases["w-ada"] = old
    assert "stale" in cluster.play("begin ada samples=320 compute=9000")
    assert cluster.speed("ada", measured=False) == 1000


def test_after_a_restart_the_score_stands_until_it_is_measured_again() -> None:
    cluster = Cluster("ada speed=5000", "bob speed=1000")
    per_s = {"ada": 64_000.0, "bob": 64_000.0}
    for _ in range(60):
        cluster.round(per_s)
    for line in ("restart", "join ada speed=5000 holds boot=2", "join bob speed=1000 holds boot=2"):
        cluster.play(line)
    rounds = 0
    while cluster.round(per_s)["ada"] > 0.52:
        rounds += 1
        assert rounds < 70
    assert rounds > 3
