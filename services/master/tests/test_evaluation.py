"""The evaluator's places: one runs, one waits, a newer one takes its place; what may become the best is not pruned."""

import math
import os
import queue
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.common.host.children import Child
from services.common.host.logs import Log
from services.common.learning import build_model, describe
from services.master.core.events import EvalDone, EvalSkipped
from services.master.shell import checkpoints
from services.master.shell.checkpoints import Checkpoint
from services.master.shell.evaluation import DEADLINE_MS, REST_MS, RESTARTS_MAX, Evaluation, evaluator

MODEL = {"family": "softmax"}


def test_places_pins_and_a_damaged_checkpoint(tmp_path: Path) -> None:
    data = describe("gauss3")
    parameters = build_model(MODEL, 2, 3).initial_parameters(1)
    paths = [checkpoints.write(tmp_path, Checkpoint(parameters, {}, {"round": at})) for at in range(4)]
    paths[3].write_bytes(b"damaged")
    lines: queue.Queue[dict[str, Any]] = queue.Queue()
    evaluation = Evaluation(lambda: evaluator(lines.put, Log("master")))
    assert evaluation.ask("r-1", 0, paths[0], data, MODEL) == []
    assert evaluation.ask("r-1", 1, paths[1], data, MODEL) == []
    skipped = evaluation.ask("r-1", 2, paths[2], data, MODEL)
    assert skipped == [EvalSkipped("r-1", 1, "not evaluated: a newer version was ready")]
    assert evaluation.pinned() == {0, 2}
    [done] = evaluation.take(lines.get(timeout=20))
    assert isinstance(done, EvalDone)
    assert (done.version, 0.0 < done.loss < 10.0, 0.0 <= done.accuracy <= 1.0) == (0, True, True)
    assert evaluation.pinned() == {0, 2}, "the newest result may be the best: its file stays until that is settled"
    evaluation.ask("r-1", 3, paths[3], data, MODEL)
    [done] = evaluation.take(lines.get(timeout=20))
    [failed] = evaluation.take(lines.get(timeout=20))
    assert isinstance(failed, EvalSkipped)
    assert "is damaged" in failed.reason
    evaluation.stop()


def test_an_evaluator_that_dies_is_started_again_and_its_version_is_told(tmp_path: Path) -> None:
    data = describe("gauss3")
    parameters = np.asarray(build_model(MODEL, 2, 3).initial_parameters(1))
    path = checkpoints.write(tmp_path, Checkpoint(parameters, {}, {"round": 0}))
    lines: queue.Queue[dict[str, Any]] = queue.Queue()
    evaluation = Evaluation(lambda: evaluator(lines.put, Log("master")))
    evaluation.ask("r-1", 0, path, data, MODEL)
    child = evaluation._child
    assert child is not None
    child.kill()
    events = evaluation.take(lines.get(timeout=20))
    if isinstance(events[0], EvalDone):  # it was quicker than the signal
        events = evaluation.take(lines.get(timeout=20)) or [EvalSkipped("r-1", 0, "the evaluator ended")]
    assert "the evaluator ended" in str(events[0])
    evaluation.ask("r-1", 0, path, data, MODEL)
    [done] = evaluation.take(lines.get(timeout=20))
    assert isinstance(done, EvalDone)
    evaluation.stop()


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    lines: queue.Queue[dict[str, Any]] = queue.Queue()
    evaluation = Evaluation(lambda: evaluator(lines.put, Log("master")))
    evaluation.ask("r-1", 7, tmp_path / "ckpt-7.npz", describe("gauss3"), MODEL)
    [skipped] = evaluation.take(lines.get(timeout=20))
    assert isinstance(skipped, EvalSkipped)
    assert "cannot be read" in skipped.reason
    evaluation.stop()


def test_an_evaluation_that_hangs_is_ended_and_told(tmp_path: Path) -> None:
    lines: queue.Queue[dict[str, Any]] = queue.Queue()
    evaluation = Evaluation(lambda: evaluator(lines.put, Log("master")))
    evaluation.ask("r-1", 0, tmp_path / "ckpt-0.npz", {"name": "no such data"}, MODEL)
    evaluation.tick(10 * DEADLINE_MS)  # asked before the first tick, as at a restart: its time begins with this one
    child = evaluation._child
    assert isinstance(child, Child)
    os.kill(child.pid, signal.Signals["SIGSTOP"])
    evaluation.tick(11 * DEADLINE_MS - 1)
    assert evaluation._running is not None
    evaluation.tick(11 * DEADLINE_MS)
    line = lines.get(timeout=20)
    while line["t"] != "exit":  # it was quicker than the signal
        line = lines.get(timeout=20)
    assert "the evaluator ended" in str(evaluation.take(line))
    evaluation.stop()


def test_chatter_and_late_answers_are_ignored_and_failures_forgotten(tmp_path: Path) -> None:
    evaluation = Evaluation(lambda: evaluator(lambda line: None, Log("master")))
    path = tmp_path / "ckpt-0.npz"
    for round_number in range(RESTARTS_MAX + 1):
        evaluation.ask("r-1", round_number, path, {}, MODEL)
        for line in (
            {"t": "chatter"},
            {"t": "done", "version": 99, "loss": 1.0},
            {"t": "done", "version": round_number},
        ):
            assert evaluation.take(line) == [], line
        assert len(evaluation.take({"t": "exit", "code": 1})) == 1
    [skipped] = evaluation.ask("r-1", 9, path, {}, MODEL)
    assert "ends again and again" in str(skipped)
    evaluation.tick(REST_MS)
    assert evaluation.ask("r-1", 10, path, {}, MODEL) == [], "after a rest it is tried again"
    evaluation.take({"t": "exit", "code": 1})
    evaluation.stop()


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_told_as_such(tmp_path: Path, loss: float) -> None:
    evaluation = Evaluation(lambda: evaluator(lambda line: None, Log("master")))
    evaluation.ask("r-1", 3, tmp_path / "ckpt-3.npz", {}, MODEL)
    told = evaluation.take({"t": "done", "version": 3, "loss": loss, "accuracy": 0.1})
    assert told == [EvalSkipped("r-1", 3, "the evaluation loss is not finite", not_finite=True)]
    evaluation.stop()


def test_a_pc_that_cannot_start_it_says_so_and_tries_again(tmp_path: Path) -> None:
    def full() -> Child:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    evaluation = Evaluation(full)
    evaluation.warm()
    [skipped] = evaluation.ask("r-1", 0, tmp_path / "ckpt-0.npz", {}, MODEL)
    assert "cannot start the evaluator (Resource temporarily unavailable)" in str(skipped)
