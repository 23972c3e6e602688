"""What goes wrong on one PC ends or pauses that worker with a reason, and nothing else: real sockets and processes."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import zmq

from services.common.protocol import messages
from services.worker.core import commands as c
from services.worker.core import limits
from services.worker.shell.agent import Agent
from services.worker.shell.link import Keys, MasterLink
from services.worker.tests.conftest import ROOT, Job, StartAgent, StartWorker
from services.worker.tests.scripted_master import ScriptedMaster

pytestmark = pytest.mark.system
FAULTY = """
import sys
from services.worker.core.session import Session

def fault(self, event, now_ms):
    raise RuntimeError("a fault in the loop")

Session._tick = fault
from services.worker.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def in_hand(master: ScriptedMaster, start_agent: StartAgent, job: Job) -> Agent:
    """An agent that has just said that it trains the first task."""
    agent = start_agent(master)
    master.enrol()
    master.welcome()
    master.send(job.task(steps=1_000_000))
    master.expect(messages.TaskAck)
    master.serve(0, "run-1", job.anchor_bytes, job.anchor_digest)
    master.expect(messages.Progress)
    return agent


def test_a_closed_link_leaves_no_socket_open() -> None:
    with zmq.Context() as context:
        keys = Keys(*zmq.curve_keypair())
        link = MasterLink(context, keys.public)
        link.open("tcp://127.0.0.1:9", keys)
        held = link.sockets
        link.close()
        assert [one.closed for one in held] == [True, True]
        with pytest.raises(zmq.ZMQError):
            link.open("no endpoint", keys)
        held = link.sockets
        link.close()
        assert [one.closed for one in held] == [True, True]
        link.close()


def test_a_fault_in_the_loop_ends_the_worker_with_a_traceback(master: ScriptedMaster, tmp_path: Path) -> None:
    environment = os.environ | {"MAHE_JOIN": master.join_string(), "MAHE_WORKER_DATA": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", FAULTY], cwd=ROOT, env=environment, capture_output=True, timeout=30, check=False
    )
    assert ended.returncode == 1
    assert b"Traceback" in ended.stderr
    assert b"RuntimeError: a fault in the loop" in ended.stderr


def test_a_frozen_trainer_is_ended_and_the_next_task_is_trained(
    master: ScriptedMaster, in_hand: Agent, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STEP_WAIT_MIN_MS", 1_000)
    monkeypatch.setattr(limits, "PROGRESS_EVERY_MS", 0)
    master.expect(messages.Progress)
    master.expect(messages.Progress)
    frozen = in_hand.trainer_pid
    assert frozen is not None
    os.kill(frozen, signal.Signals["SIGSTOP"])
    refused = master.expect(messages.TaskRefuse)
    assert refused.reason == "the trainer made no progress for 1 s; starting it again in 1 s"
    master.send(job.task(lease="lease-1"))
    master.expect(messages.TaskAck)
    assert master.take_delta()[0].ref.lease == "lease-1"
    with pytest.raises(ProcessLookupError):
        os.kill(frozen, 0)


def test_a_worker_whose_disk_fails_pauses_and_takes_work_again_when_it_is_mended(
    master: ScriptedMaster, start_agent: StartAgent, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STORAGE_RETRY_BASE_MS", 100)
    anchor = tmp_path / "slot-0" / "anchor.f32"
    anchor.mkdir()
    start_agent(master)
    master.enrol()
    master.welcome()
    master.send(job.task())
    master.expect(messages.TaskAck)
    master.expect(messages.Pull)
    drain = master.expect(messages.Drain)
    assert drain.reason.startswith(f"{anchor} cannot be used (Is a directory); ")
    refused = master.expect(messages.TaskRefuse)
    assert (refused.reason, refused.busy) == (drain.reason, True)
    beat = agent_is(master, "paused")
    assert beat.owner == drain.reason
    anchor.rmdir()
    agent_is(master, "idle")
    master.send(job.task(lease="lease-1"))
    master.expect(messages.TaskAck)
    master.serve(0, "run-1", job.anchor_bytes, job.anchor_digest)
    assert master.take_delta()[0].ref.lease == "lease-1"


def test_a_delta_that_cannot_be_written_pauses_the_worker(
    master: ScriptedMaster, start_agent: StartAgent, job: Job, tmp_path: Path
) -> None:
    agent = start_agent(master)
    master.enrol()
    master.welcome()
    agent._slot.delta_path("lease-0").mkdir()
    master.send(job.task())
    master.expect(messages.TaskAck)
    master.serve(0, "run-1", job.anchor_bytes, job.anchor_digest)
    assert "Is a directory" in master.expect(messages.Drain).reason
    master.expect(messages.TaskRefuse)


def test_a_delta_that_cannot_be_removed_costs_no_task(
    master: ScriptedMaster, in_hand: Agent, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = in_hand._slot.delta_path("old")
    path.mkdir()
    assert in_hand._do(c.ForgetDelta("old", counted=True)) is None
    assert capfd.readouterr().err.count(f"[WARN] {path} cannot be removed") == 1
    master.expect(messages.Progress)


def test_a_marker_that_cannot_be_written_costs_no_task(in_hand: Agent, tmp_path: Path) -> None:
    (tmp_path / "slot-0" / "parked.json").mkdir()
    assert in_hand._do(c.Park("the operator removed it")) is None


def test_an_identity_that_cannot_be_saved_ends_the_worker(master: ScriptedMaster, start_worker: StartWorker) -> None:
    worker = start_worker(master.join_string())
    master.expect(messages.Enrol)
    shutil.rmtree(worker.data / "slot-0")
    master.send(messages.Enrolled(worker="w-1", name="pc", endpoints=[], beacon_key="k" * 40))
    assert worker.process.wait(10) == 1
    path = worker.data / "slot-0" / "identity.json"
    assert f"[ERROR] {path} cannot be used (No such file or directory); is the disk there" in worker.log
    assert "Traceback" not in worker.log


def test_a_damaged_slot_is_no_reason_not_to_start(
    master: ScriptedMaster, start_worker: StartWorker, tmp_path: Path
) -> None:
    slot = tmp_path / "worker" / "slot-0"
    slot.mkdir(parents=True)
    for name in ("identity.json", "parked.json", "delta-1.json"):
        (slot / name).write_text("damaged")
    (slot / "anchor.f32").mkdir()
    worker = start_worker(master.join_string())
    master.enrol()
    master.welcome()
    assert worker.log.count("[WARN]") == 4


def agent_is(master: ScriptedMaster, agent: str) -> messages.Heartbeat:
    """The next HEARTBEAT that says so; all else is passed over."""
    while True:
        message, _ = master.receive()
        if isinstance(message, messages.Heartbeat) and message.agent == agent:
            return message
