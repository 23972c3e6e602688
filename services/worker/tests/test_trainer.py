"""The trainer process alone: the same numbers as in this process, state between rounds, and its end."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.common.learning import datasets
from services.common.learning.inner import build_inner
from services.common.learning.local_steps import LocalTask, run_local_steps
from services.common.learning.parameters import digest
from services.worker.core.commands import Train
from services.worker.shell import trainer as trainer_module
from services.worker.shell.agent import paths_of
from services.worker.shell.benchmark import measure
from services.worker.shell.task_files import TaskFiles
from services.worker.shell.trainer_child import exit_reason, trainer_environment
from services.worker.tests.conftest import Job
from services.worker.tests.trainers import Here, TrainerProcess

MOMENTUM = {"name": "momentum", "lr": 0.05, "momentum": 0.9}


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrainerProcess]:
    """A trainer that is ready; the tests of this module share it, as rounds do."""
    one = TrainerProcess(tmp_path_factory.mktemp("trainer"))
    yield one
    one.child.stop()


def test_its_deltas_are_those_of_the_learning_package_with_state_kept_between_rounds(trainer: TrainerProcess) -> None:
    job = Job(MOMENTUM)
    optimizer = build_inner(MOMENTUM, job.model.n_parameters)
    data = datasets.load(job.data)
    for number in range(2):
        task = job.task(round_number=number, lease=f"lease-{number}")
        path = trainer.give(task, job.anchor_bytes)
        answer = trainer.expect("done")
        local = LocalTask(task.data_seed, number, 0, tuple(task.ranges), task.batch, task.k_steps)
        expected = run_local_steps(job.model, optimizer, job.anchor, data, local, lambda step, loss: False)
        found = np.fromfile(path, "<f4")
        np.testing.assert_allclose(found, expected.delta, rtol=1e-3, atol=1e-5)
        assert answer["digest"] == digest(found)
        assert (answer["samples"], answer["steps"]) == (expected.samples, 20)
        assert answer["loss"] == pytest.approx(expected.loss, rel=1e-4)
        job.step(path.read_bytes())


def test_cancel_stops_it_within_a_step_and_it_goes_on_with_the_next(trainer: TrainerProcess) -> None:
    job = Job()
    trainer.give(job.task(steps=1_000_000), job.anchor_bytes)
    trainer.expect("progress")
    trainer.child.send({"t": "cancel", "lease": "lease-0"})
    trainer.give(job.task(lease="lease-1"), job.anchor_bytes)
    assert trainer.expect("stopped")["lease"] == "lease-0"
    assert trainer.expect("done")["lease"] == "lease-1"


@pytest.mark.parametrize(
    "change, words",
    [
        ({"model": {"family": "tree"}}, "model family is 'tree'"),
        ({"inner": {"name": "sgd", "lr": -1.0}}, "sgd lr is -1.0"),
        ({"n_parameters": 7}, "the task says 7"),
        ({"anchor_digest": "0" * 32}, "the anchor in this slot is another one"),
    ],
)
def test_a_task_it_cannot_do_is_answered_with_the_reason(
    trainer: TrainerProcess, change: dict[str, Any], words: str
) -> None:
    job = Job()
    trainer.give(job.task().model_copy(update=change), job.anchor_bytes)
    assert words in trainer.expect("failed")["reason"]


def test_numbers_that_explode_are_reported_as_no_number(trainer: TrainerProcess) -> None:
    job = Job()
    job.anchor[0] = np.inf
    trainer.give(job.task(), job.anchor_bytes)
    assert trainer.expect("done")["loss"] is None


ADAMW = {"name": "adamw", "lr": 0.01}


def cancelled(here: Here) -> str:
    """A task that is stopped after its first step."""
    here.orders.cancel("lease-0")
    kind: str = here.train()["t"]
    here.orders.give("lease-0")
    return kind


def exploded(here: Here) -> str:
    """A task whose numbers are not finite."""
    anchor = here.job.anchor.copy()
    anchor[0] = np.inf
    kind: str = here.train(anchor=anchor.tobytes())["t"]
    return kind


def overflown(here: Here) -> str:
    """A task whose delta is finite, but not the squares of its gradients, which AdamW keeps."""
    kind: str = here.train(anchor=(here.job.anchor * np.float32(1e10)).tobytes())["t"]
    return kind


def unwritten(here: Here) -> str:
    """A task whose delta cannot be written."""
    kind: str = here.train(to=here.delta / "nowhere")["t"]
    return kind


@pytest.mark.parametrize(
    "inner, attempt, kind",
    [
        (MOMENTUM, cancelled, "stopped"),
        (MOMENTUM, exploded, "done"),
        (MOMENTUM, unwritten, "unwritten"),
        (ADAMW, cancelled, "stopped"),
        (ADAMW, overflown, "done"),
    ],
)
def test_an_attempt_that_does_not_count_leaves_no_trace_in_the_inner_optimizer(
    inner: dict[str, Any], attempt: Callable[[Here], str], kind: str, tmp_path: Path
) -> None:
    here, fresh = Here(tmp_path / "here", Job(inner)), Here(tmp_path / "fresh", Job(inner))
    assert attempt(here) == kind
    found, expected = here.train(), fresh.train()
    assert found["digest"] == expected["digest"]
    assert here.train()["digest"] == fresh.train()["digest"] != expected["digest"]


def test_a_folder_that_cannot_be_used_is_said_apart_from_a_task_that_cannot_be_done(tmp_path: Path) -> None:
    here = Here(tmp_path, Job())
    answer = here.train(to=tmp_path)
    assert (answer["t"], answer["lease"]) == ("unwritten", "lease-0")
    assert str(tmp_path) in answer["text"]
    task = here.job.task()
    files = TaskFiles.of(paths_of(here.slot, Train(task)))
    here.slot.replica.anchor.unlink()
    here.slot.replica.anchor.mkdir()
    answer = trainer_module.Trainer(here.orders).train(task, files)
    assert answer["t"] == "unwritten"


def test_the_end_of_its_input_ends_it_in_the_middle_of_training(tmp_path: Path) -> None:
    job, trainer = Job(), TrainerProcess(tmp_path)
    trainer.give(job.task(steps=1_000_000), job.anchor_bytes)
    trainer.expect("progress")
    started = time.monotonic()
    trainer.child.stop()
    assert time.monotonic() - started < 2
    assert trainer.expect("exit")["code"] == 0


def test_it_measures_itself_when_no_score_is_given(tmp_path: Path) -> None:
    one = TrainerProcess(tmp_path, score=0)
    one.child.stop()
    assert one.score > 0


def test_the_benchmark_counts_samples_per_second() -> None:
    assert measure(0.01) > 0


def test_the_trainers_environment_has_threads_and_no_secret() -> None:
    found = trainer_environment({"MAHE_JOIN": "mahe1.secret", "HOME": "/h"}, 3, 0.0)
    assert (found["OPENBLAS_NUM_THREADS"], found["OMP_NUM_THREADS"], found["HOME"]) == ("3", "3", "/h")
    assert "MAHE_JOIN" not in found


@pytest.mark.parametrize("code, words", [(-9, "out of memory"), (-11, "signal 11"), (1, "exit code 1")])
def test_how_it_ended_in_words(code: int, words: str) -> None:
    assert words in exit_reason(code).text
