"""When a run stops or goes back: what is counted, what is noise, and that a restart counts the same again."""

from typing import Any

import pytest

from services.common.protocol.messages import RunSpec
from services.common.protocol.reasons import said
from services.master.core import events as e
from services.master.core.commands import SaveRun
from services.master.core.coordinator import Coordinator
from services.master.core.recovery import Saved
from services.master.core.state import Evaluation, RunPhase
from services.master.core.view import run_view
from services.master.core.watch import FAR_EVALS_MAX, Watch
from services.tests.story import RUN, Story

# Measured: digits, mlp 64 64, two workers of 50 steps of 32.
SWINGS = (  # inner momentum 0.05/0.9, outer nesterov 0.7/0.9: up to 12 times the best, and no worse than guessing
    *(0.347, 0.252, 0.151, 0.187, 0.282, 0.167, 0.243, 0.2, 0.229, 0.358, 0.377, 0.178, 0.404, 0.25, 0.524, 0.579),
    *(0.439, 0.322, 0.768, 1.16, 0.349, 0.433, 1.0, 1.89, 1.16, 1.25, 0.49, 0.354, 0.241, 0.839, 1.38, 0.881),
)
STUCK = (2.34, 2.43, 2.36, 2.34, 2.31, 2.38, 2.4, 2.42, 2.4, 2.36, 2.45, 2.37, 2.47, 2.41, 2.42)  # sgd 10: dead units
DIVERGES = (10.5, 4.31, 30.2, 17.5)  # fedavg 5


def noted(losses: tuple[float, ...]) -> list[Watch]:
    """The counts after each of these evaluations."""
    watch, found = Watch(), []
    for loss in losses:
        watch.note(loss, counts=True)
        found.append(Watch(**vars(watch)))
    return found


@pytest.mark.parametrize("losses", [SWINGS, STUCK, (0.5, 9.0, 0.6, 9.0, 0.7, 9.0)])
def test_noise_is_no_divergence(losses: tuple[float, ...]) -> None:
    assert max(watch.far for watch in noted(losses)) < FAR_EVALS_MAX


def test_a_loss_far_above_the_best_twice_in_a_row_is() -> None:
    assert [watch.far for watch in noted(DIVERGES)] == [0, 0, 1, FAR_EVALS_MAX]


def test_hardly_better_is_no_better_and_many_times_hardly_is() -> None:
    falling = tuple(1.0 - 0.0004 * step for step in range(7))
    assert [watch.waited for watch in noted(falling)] == [0, 1, 2, 0, 1, 2, 0]
    assert noted((0.5, 0.6, 0.4, 0.4))[-1].waited == 1


def test_what_is_evaluated_late_counts_only_when_it_is_better() -> None:
    watch = Watch(loss=0.5)
    watch.note(40.0, counts=False)
    assert (watch.waited, watch.far) == (0, 0)
    watch.note(0.4, counts=False)
    assert watch.loss == 0.4


def test_time_counts_while_it_runs_and_the_sleep_of_a_pc_hardly() -> None:
    watch = Watch(counted_ms=1_000)
    watch.count_time(2_000, 4_000, running=True)
    watch.count_time(3_000, 4_000, running=False)
    watch.count_time(3_600_000, 4_000, running=True)
    assert watch.running_ms == 1_000 + 4_000


def restored(spec: RunSpec, evaluations: list[Evaluation], **meta: Any) -> Coordinator:
    """A run of three versions, as a master finds it that was killed before it could act."""
    story = Story()
    story.play("@1000 join ada\n@2000 create k_steps=10 batch=50 rounds=9\n@3000 delta ada\n@4000 delta ada")
    kept = {**story.disk.meta, **meta}
    best = min(evaluations, key=lambda one: one.loss)
    saved = Saved(RUN, spec, RunPhase.RUNNING, said("round 3"), 1000, kept, [], {}, evaluations[-1], best, evaluations)
    coordinator = Coordinator(2)
    coordinator.restore(saved, 10_000)
    return coordinator


def evaluations(*losses: float) -> list[Evaluation]:
    return [Evaluation(version, loss, 0.5) for version, loss in enumerate(losses, start=1)]


def spec(**values: Any) -> RunSpec:
    return RunSpec(k_steps=10, batch=50, rounds=9, encoding="fp32", **values)


def test_patience_that_was_over_when_the_master_died_ends_the_run_at_once() -> None:
    coordinator = restored(spec(patience=2), evaluations(0.5, 0.6, 0.7))
    [save] = [one for one in coordinator.step(e.Tick(), 10_500) if isinstance(one, SaveRun)]
    assert (save.phase, save.finished) == ("STOPPED", True)
    assert save.reason.text == "finished: no better for 2 evaluations; the best is version 1"
    coordinator = restored(spec(patience=3), evaluations(0.5, 0.6, 0.7))
    coordinator.step(e.Tick(), 10_500)
    assert coordinator.state.phase is not RunPhase.STOPPED


def test_so_does_its_time() -> None:
    coordinator = restored(spec(minutes_max=0.5), evaluations(0.5), running_ms=30_000)
    coordinator.step(e.Tick(), 10_500)
    run: Any = coordinator.state.run
    assert run_view(run)["finished"]
    assert run.reason.text == "stopped after 0.5 minutes, as asked, at version 2"


def test_versions_before_the_run_went_back_are_not_counted_again() -> None:
    coordinator = restored(spec(patience=2), evaluations(0.5, 40.0), reverted=2, lr_scale=0.5)
    coordinator.step(e.Tick(), 10_500)
    run: Any = coordinator.state.run
    assert (run.phase, run.watch.waited, run.watch.far) == (RunPhase.WAITING, 0, 0)
    assert (run.inner["lr"], run_view(run)["lr_scale"], run.spec.inner["lr"]) == (0.05, 0.5, 0.1)


def test_a_run_that_had_finished_early_is_finished_after_a_restart() -> None:
    story = Story()
    story.play("@1000 join ada\n@2000 create k_steps=10 batch=50 rounds=9\n@3000 delta ada")
    saved = Saved(RUN, spec(), RunPhase.STOPPED, said("stopped after 1 minute"), 1000, story.disk.meta, [], {})
    for finished in (False, True):
        coordinator = Coordinator(2)
        coordinator.restore(Saved(**{**vars(saved), "finished": finished}), 10_000)
        run: Any = coordinator.state.run
        assert run.finished is finished


def test_a_checkpoint_of_before_there_were_these_counts_is_read() -> None:
    story = Story()
    story.play("@1000 join ada\n@2000 create k_steps=10 batch=50 rounds=9\n@3000 delta ada")
    old = {key: value for key, value in story.disk.meta.items() if key not in ("lr_scale", "reverted", "running_ms")}
    coordinator = Coordinator(2)
    coordinator.restore(Saved(RUN, spec(), RunPhase.RUNNING, said(""), 1000, old, [], {}), 10_000)
    run: Any = coordinator.state.run
    assert (run.lr_scale, run.reverted, run.watch.running_ms) == (1.0, 0, 0)
