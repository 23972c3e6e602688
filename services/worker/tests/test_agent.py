"""A real worker process with a real trainer against a scripted master on a real socket."""

import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

from services.common.learning.encodings import decode
from services.common.protocol import messages
from services.worker.tests.conftest import Job, StartWorker
from services.worker.tests.scripted_master import ScriptedMaster

pytestmark = pytest.mark.system
SIGKILL = 9  # `signal` has no such name on Windows


def test_two_rounds_from_enrolment_to_round_closed(master: ScriptedMaster, start_worker: StartWorker, job: Job) -> None:
    worker = start_worker(master.join_string())
    master.enrol()
    hello = master.welcome()
    assert (hello.score, hello.threads, hello.holding, hello.working) == (1000.0, 1, [], None)
    losses, delta = [], b""
    for number in range(2):
        task = job.task(round_number=number, lease=f"lease-{number}")
        master.send(task)
        assert master.expect(messages.TaskAck).ref == task.ref
        if number == 0:
            assert master.serve(number, "run-1", job.anchor_bytes, job.anchor_digest) == 5
        else:
            assert master.serve_update(number, "run-1", delta) == 5
        begin, delta = master.take_delta()
        assert (begin.ref, begin.samples, begin.steps, begin.bytes) == (task.ref, 640, 20, len(job.anchor_bytes))
        assert np.isfinite(np.frombuffer(delta, "<f4")).all()
        assert begin.loss is not None
        losses.append(begin.loss)
        master.ack(task.ref, "accepted")
        master.round_closed(task.ref)
        job.step(delta)
    assert losses[1] < losses[0]
    worker.wait_for("round 1 shard 0 of run run-1: the round is closed, counted")
    assert worker.end() == 0
    assert master.expect(messages.Bye).code == "LEAVING"
    assert not list(worker.data.glob("slot-0/delta-*"))
    assert not list(worker.data.glob("slot-0/update-*"))


def first_round(master: ScriptedMaster, job: Job) -> bytes:
    """A worker joins, downloads version 0 and sends a delta as int8: what leads to version 1."""
    master.enrol()
    master.welcome()
    task = job.task().model_copy(update={"encoding": "int8"})
    master.send(task)
    master.expect(messages.TaskAck)
    master.serve(0, "run-1", job.anchor_bytes, job.anchor_digest)
    begin, update = master.take_delta()
    assert (begin.encoding, begin.bytes) == ("int8", messages.encoded_bytes("int8", job.model.n_parameters))
    master.ack(begin.ref, "accepted")
    job.step(decode("int8", np.frombuffer(update, np.uint8), job.model.n_parameters).tobytes())
    return update


def test_an_announced_update_is_there_when_the_next_round_begins_and_survives_a_restart(
    master: ScriptedMaster, start_worker: StartWorker, job: Job
) -> None:
    worker = start_worker(master.join_string())
    slot = worker.data / "slot-0"
    update = first_round(master, job)
    residual, left_over = slot / "residual.bin", next(slot.glob("delta-*.residual")).read_bytes()
    master.announce(1, "run-1", update)
    assert master.serve_update(1, "run-1", update) == 2
    assert not residual.exists()
    master.round_closed(job.task().ref)
    task = job.task(round_number=1, lease="lease-1").model_copy(update={"encoding": "int8"})
    master.send(task)
    master.expect(messages.TaskAck)
    begin, _ = master.take_delta()
    assert begin.ref == task.ref
    assert residual.read_bytes() == left_over
    assert (slot / "anchor.f32").read_bytes() == job.anchor_bytes
    assert not list(slot.glob("update-*"))
    master.round_closed(task.ref, counted=False)
    worker.wait_for("not counted")
    assert worker.end() == 0
    master.expect(messages.Bye)
    assert residual.read_bytes() == left_over
    assert not list(slot.glob("delta-*"))
    start_worker("")
    master.welcome()
    master.send(job.task(round_number=1, lease="lease-2"))
    master.expect(messages.TaskAck)
    assert master.take_delta()[0].ref.lease == "lease-2"  # nothing was pulled


def test_a_damaged_update_is_told_and_the_whole_version_is_pulled(
    master: ScriptedMaster, start_worker: StartWorker, job: Job
) -> None:
    start_worker(master.join_string())
    update = first_round(master, job)
    damaged = bytes([update[0] ^ 1]) + update[1:]
    master.announce(1, "run-1", damaged)
    master.serve_update(1, "run-1", damaged)
    master.round_closed(job.task().ref)
    task = job.task(round_number=1, lease="lease-1").model_copy(update={"encoding": "int8"})
    master.send(task)
    master.expect(messages.TaskAck)
    told = master.expect(messages.Mismatch)
    assert told.ref == task.ref
    assert job.anchor_digest in told.reason
    master.serve(1, "run-1", job.anchor_bytes, job.anchor_digest)
    assert master.take_delta()[0].ref == task.ref


def test_a_restarted_master_gets_the_same_delta_again(
    master: ScriptedMaster, start_worker: StartWorker, job: Job
) -> None:
    worker = start_worker(master.join_string())
    master.enrol()
    master.welcome()
    task = job.task(steps=4_000)
    master.send(task)
    master.expect(messages.TaskAck)
    master.serve(0, "run-1", job.anchor_bytes, job.anchor_digest)
    master.expect(messages.Progress)
    master.unbind()
    worker.wait_for("the work goes on")
    master.term = 2
    master.bind()
    hello = master.welcome()
    assert hello.working == task.ref or [one.ref for one in hello.holding] == [task.ref]
    _, first = master.take_delta()
    master.ack(task.ref, "accepted")
    master.term = 3
    master.send(messages.Rejoin(term=3, reason="restarted again"))
    hello = master.welcome()
    assert [one.ref for one in hello.holding] == [task.ref]
    assert hello.working is None
    begin, second = master.take_delta()
    assert (begin.term, first) == (3, second)
    master.ack(task.ref, "accepted")
    master.round_closed(task.ref)
    worker.wait_for("the round is closed, counted")


def test_a_broken_upload_goes_on_with_what_is_missing(
    master: ScriptedMaster, start_worker: StartWorker, job: Job
) -> None:
    worker = start_worker(master.join_string())
    master.enrol()
    master.welcome()
    master.send(job.task())
    master.expect(messages.TaskAck)
    master.serve(0, "run-1", job.anchor_bytes, job.anchor_digest)
    begin = master.expect(messages.DeltaBegin)
    master.send(messages.Credit(term=1, ref=begin.ref, want=[0, 1, 2, 3]))
    for index in range(4):
        assert master.expect(messages.DeltaChunk).index == index
    master.unbind()
    worker.wait_for("the connection to")
    master.bind()
    master.welcome()
    assert master.expect(messages.DeltaBegin) == begin
    master.send(messages.Credit(term=1, ref=begin.ref, want=[4]))
    assert master.expect(messages.DeltaChunk).index == 4
    assert master.expect(messages.DeltaCommit).digest == begin.digest
    master.ack(begin.ref, "refused")
    worker.wait_for("refused, forgotten")


def test_a_killed_agent_takes_its_trainer_along_and_its_heir_offers_the_held_delta(
    master: ScriptedMaster, start_worker: StartWorker, job: Job
) -> None:
    worker = start_worker(master.join_string())
    master.enrol()
    master.welcome()
    master.send(job.task())
    master.expect(messages.TaskAck)
    master.serve(0, "run-1", job.anchor_bytes, job.anchor_digest)
    begin, delta = master.take_delta()
    master.ack(begin.ref, "accepted")
    master.send(job.task(round_number=1, steps=1_000_000, lease="lease-1"))
    master.expect(messages.TaskAck)
    master.expect(messages.Progress)
    worker.kill()
    assert_gone(trainer_pid(worker.log))
    start_worker("")
    hello = master.welcome()
    assert [(one.ref, one.digest) for one in hello.holding] == [(begin.ref, begin.digest)]
    assert hello.working is None
    again, same = master.take_delta()
    assert (again, same) == (begin, delta)


def test_a_killed_trainer_hands_the_task_back_and_the_next_one_is_trained(
    master: ScriptedMaster, start_worker: StartWorker, job: Job
) -> None:
    worker = start_worker(master.join_string())
    master.enrol()
    master.welcome()
    master.send(job.task(steps=1_000_000))
    master.expect(messages.TaskAck)
    master.serve(0, "run-1", job.anchor_bytes, job.anchor_digest)
    master.expect(messages.Progress)
    os.kill(trainer_pid(worker.log), SIGKILL)
    refused = master.expect(messages.TaskRefuse)
    assert "the trainer was killed (signal 9" in refused.reason
    master.send(job.task(lease="lease-1"))
    master.expect(messages.TaskAck)
    assert master.take_delta()[0].ref.lease == "lease-1"


def test_cancel_stops_a_long_task_and_the_next_one_is_trained(
    master: ScriptedMaster, start_worker: StartWorker, job: Job
) -> None:
    worker = start_worker(master.join_string())
    master.enrol()
    master.welcome()
    long = job.task(steps=1_000_000)
    master.send(long)
    master.expect(messages.TaskAck)
    master.serve(0, "run-1", job.anchor_bytes, job.anchor_digest)
    master.expect(messages.Progress)
    master.send(messages.Cancel(term=1, ref=long.ref, reason="the operator stopped the run"))
    master.send(job.task(lease="lease-1", steps=10))
    master.expect(messages.TaskAck)
    assert master.take_delta()[0].steps == 10
    worker.wait_for("cancelled: the operator stopped the run")


def test_a_task_that_cannot_be_done_comes_back_with_the_reason(
    master: ScriptedMaster, start_worker: StartWorker, job: Job
) -> None:
    start_worker(master.join_string())
    master.enrol()
    master.welcome()
    master.send(job.task().model_copy(update={"data": job.data | {"digest": "0" * 64}}))
    master.expect(messages.TaskAck)
    master.serve(0, "run-1", job.anchor_bytes, job.anchor_digest)
    assert "Update MAHE" in master.expect(messages.TaskRefuse).reason


def test_sigterm_in_the_middle_of_training_ends_everything_in_three_seconds(
    master: ScriptedMaster, start_worker: StartWorker, job: Job
) -> None:
    worker = start_worker(master.join_string())
    master.enrol()
    master.welcome()
    master.send(job.task(steps=1_000_000))
    master.expect(messages.TaskAck)
    master.serve(0, "run-1", job.anchor_bytes, job.anchor_digest)
    master.expect(messages.Progress)
    worker.process.terminate()
    assert worker.process.wait(3) == 0
    assert_gone(trainer_pid(worker.log))
    assert master.expect(messages.Bye).reason.startswith("SIGTERM")


def test_two_workers_share_a_data_folder_but_not_a_slot(master: ScriptedMaster, start_worker: StartWorker) -> None:
    worker = start_worker(master.join_string())
    master.enrol("w-1")
    master.welcome("w-1")
    start_worker(master.join_string())
    master.enrol("w-2")
    assert sorted(path.name for path in worker.data.iterdir()) == ["slot-0", "slot-1"]


def trainer_pid(log: str) -> int:
    """Of the last trainer that said it was ready."""
    return int(re.findall(r"process (\d+) is ready", log)[-1])


def assert_gone(pid: int) -> None:
    """A process ends within a second, or is but waiting to be reaped."""
    deadline = time.monotonic() + 1
    while alive(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
