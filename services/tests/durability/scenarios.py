"""What is played under the recorder, and what must hold of every state that a loss of power leaves.

A scenario does what the services do, in their order, and says what it would have told others. Its check gets a folder
as the crash left it and all that had been said; it raises AssertionError when something of that is lost.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.common.errors import CheckpointError
from services.common.learning.exchange import pack_residual
from services.common.protocol.join_string import JoinString
from services.common.protocol.messages import Task, TaskRef
from services.master.shell import keys
from services.master.shell.checkpoints import Checkpoint, Vault
from services.tests.durability.disk import Killed, Recorder
from services.worker.core.events import Delta
from services.worker.shell import joining
from services.worker.shell.replica_files import file_digest
from services.worker.shell.slot import Parked, Slot, take_slot
from services.worker.shell.task_files import TaskFiles

RUN = "digits-1"
VERSIONS = 7
VERSIONS_KILLED = 5
BEST = 1  # kept by every prune
PARAMETERS = 400
FIRST = JoinString(("tcp://a:1",), bytes(range(32)), b"1" * 32)
SECOND = JoinString(("tcp://b:1",), bytes(range(1, 33)), b"2" * 32)
LEASES = ("digits-1.1.1.0.1", "digits-1.2.1.0.1", "digits-1.3.1.0.1")
COUNTED, HELD, VOID = LEASES


@dataclass(frozen=True)
class Scenario:
    """`play` does and says; `check` looks at a folder after a crash."""

    play: Callable[[Recorder], None]
    check: Callable[[Path, tuple[Any, ...]], None]


def version(number: int) -> Checkpoint:
    """One version, with numbers of its own."""
    parameters = np.arange(PARAMETERS, dtype=np.float32) * (number + 1)
    meta = {"run": RUN, "round": number, "version": number}
    return Checkpoint(parameters, {"momentum": parameters[:20] * 2}, meta)


def save(recorder: Recorder, number: int) -> None:
    """As the desk does: write, tell, prune."""
    vault = Vault(recorder.root / "runs")
    vault.write(version(number))
    recorder.say(number)
    vault.prune(RUN, {BEST})


def play_checkpoints(recorder: Recorder) -> None:
    """A run of some rounds."""
    for number in range(VERSIONS):
        save(recorder, number)


def play_redone_round(recorder: Recorder) -> None:
    """A round is written again over a file that was there, because the folder could not be synced the first time."""
    save(recorder, 0)
    for _ in range(2):
        Vault(recorder.root / "runs").write(version(1))
    recorder.say(1)


def play_no_room(call: str, refused: Callable[[Any], bool]) -> Callable[[Recorder], None]:
    """The disk is full when the first folders are made, and this call of `os` fails; then there is room, and a run."""

    def play(recorder: Recorder) -> None:
        shipped = getattr(os, call)

        def full(what: Any, *given: Any) -> None:
            if refused(what):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            shipped(what, *given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, call, full)
            with pytest.raises(CheckpointError):
                save(recorder, 0)
        for number in range(VERSIONS_KILLED):
            save(recorder, number)

    return play


def play_killed_master(recorder: Recorder) -> None:
    """The master is killed somewhere in a save; another one takes up what it finds, tells its version and goes on."""
    try:
        for number in range(VERSIONS_KILLED):
            save(recorder, number)
    except Killed:
        pass
    recorder.die_before = 0
    found, _ = Vault(recorder.root / "runs").newest_good(RUN)
    if found is not None:
        recorder.say(found.meta["version"])
        save(recorder, found.meta["version"] + 1)


def check_checkpoints(folder: Path, said: tuple[Any, ...]) -> None:
    """The newest good version is one that was told, or the next; whole, and without a word of damage."""
    found, sentences = Vault(folder / "runs").newest_good(RUN)
    told = max(said, default=-1)
    assert not sentences, sentences
    if found is None:
        assert not said, f"version {told} was told and is lost"
        return
    number = found.meta["version"]
    assert told <= number <= told + 1, f"version {told} was told, found is {number}"
    assert found.parameters.tobytes() == version(number).parameters.tobytes(), f"version {number} is another"
    assert found.outer["momentum"].tobytes() == version(number).outer["momentum"].tobytes()


def play_keys(recorder: Recorder) -> None:
    """The first start of a master."""
    recorder.say(keys.load_keys(recorder.root).public)


def check_keys(folder: Path, said: tuple[Any, ...]) -> None:
    """A public key that was told stays."""
    found = keys.load_keys(folder).public
    assert not said or found == said[-1], "the master has another key"


def play_worker(recorder: Recorder) -> None:
    """A worker enrols, holds deltas, of which one counts and one does not, is removed, and joins another master."""
    slot = take_slot(recorder.root / "worker", lambda text: None)
    way = joining.find_way(slot, FIRST)
    recorder.say(("key", way.identity.public_key))
    slot.save_identity(joining.enrolled(way, "w-1", "pc", ("tcp://a:1",), "k" * 40))
    recorder.say(("enrolled", "w-1"))
    for lease in LEASES:
        slot.keep(train(slot, lease))
        recorder.say(("holds", lease))
        if lease != HELD:
            recorder.say(("forgets", lease))
            slot.forget(lease, counted=lease == COUNTED)
    slot.park(Parked("removed by the operator", way.joined_with))
    recorder.say(("parked", way.joined_with))
    again = joining.find_way(slot, SECOND)
    recorder.say(("key", again.identity.public_key))
    slot.save_identity(joining.enrolled(again, "w-2", "pc", ("tcp://b:1",), "k" * 40))
    recorder.say(("enrolled", "w-2"))
    slot.release()


def check_worker(folder: Path, said: tuple[Any, ...]) -> None:
    """The key, the enrolment, the deltas and the marker that were told of are there."""
    told = dict(said)
    slot = take_slot(folder / "worker", lambda text: None)
    try:
        _check_slot(slot, said, told)
    finally:
        slot.release()


def _check_slot(slot: Slot, said: tuple[Any, ...], told: dict[str, str]) -> None:
    identity, parked, held = slot.identity(), slot.parked(), {one.ref.lease for one in slot.held()}
    assert not list(slot.folder.glob("*.damaged")), "something is damaged"
    enrolled = [what for kind, what in said if kind == "enrolled"]
    if "key" in told:
        assert identity is not None, "the key is lost"
    if enrolled:
        assert identity is not None
        newer = len([1 for kind, _ in said if kind == "key"]) > len(enrolled)
        assert newer or identity.worker == enrolled[-1] or "parked" in told, "the enrolment is lost"
    if said and said[-1][0] == "parked":
        assert parked is not None or joining_again(identity), "the marker is lost"
    if enrolled[-1:] == ["w-2"]:
        assert identity is not None
        assert identity.worker == "w-2", "the second enrolment is lost"
        assert parked is None, "the old marker is back"
    wanted = {what for kind, what in said if kind == "holds"} - {what for kind, what in said if kind == "forgets"}
    assert wanted <= held, f"deltas are lost: {wanted - held}"
    _check_residuals(slot, said, held)


def _check_residuals(slot: Slot, said: tuple[Any, ...], held: set[str]) -> None:
    """What encodings left over is whole, and in its place only when the delta counts."""
    found = slot.residual_path.read_bytes() if slot.residual_path.exists() else None
    assert found in (None, left_over(COUNTED)), "the residual is damaged, or of a delta that does not count"
    assert found is None or ("forgets", COUNTED) in said, "the residual is of a delta that does not count yet"
    later = said[said.index(("forgets", COUNTED)) + 1 :] if ("forgets", COUNTED) in said else ()
    assert found is not None or not later, "the residual is lost"
    for lease in sorted(held):
        path = slot.next_residual_path(lease)
        settled = lease == VOID and ("forgets", VOID) in said
        if lease == COUNTED and found is not None:
            assert not path.exists(), "it is owed twice"
        elif path.exists() or not settled:
            assert path.read_bytes() == left_over(lease), f"what {lease} left over is damaged"


def joining_again(identity: Any) -> bool:
    """Whether the slot has begun anew, under another join string."""
    return identity is not None and not identity.worker


def train(slot: Slot, lease: str, parameters: int = PARAMETERS) -> Delta:
    """As the trainer leaves a delta of int8 and what is left over, and what the session then holds."""
    path = slot.delta_path(lease)
    files = TaskFiles(slot.replica.anchor, (), path, slot.residual_path, slot.next_residual_path(lease))
    encoded = np.frombuffer(number_of(lease).to_bytes(1, "little") * 3 * parameters, dtype=np.uint8)
    files.write_results(a_task(lease), encoded, residual_of(lease, parameters))
    return Delta(a_task(lease).ref, "int8", encoded.nbytes, file_digest(path), 10, 1, 5, 0.5, 3)


def residual_of(lease: str, parameters: int = PARAMETERS) -> Any:
    """Numbers of its own for each lease."""
    return np.arange(parameters, dtype=np.float32) / number_of(lease)


def left_over(lease: str) -> bytes:
    """As a file."""
    return b"".join(pack_residual(RUN, residual_of(lease)))


def number_of(lease: str) -> int:
    """The round of a lease."""
    return int(lease.split(".")[1])


def a_task(lease: str) -> Task:
    """The work of a lease."""
    number = number_of(lease)
    return Task(
        term=1,
        ref=TaskRef(run=RUN, round=number, base_version=number - 1, shard=0, lease=lease),
        anchor_digest="0" * 32,
        n_parameters=PARAMETERS,
        data={},
        data_seed=1,
        model={},
        inner={},
        ranges=[(0, 10)],
        samples=10,
        k_steps=1,
        batch=10,
        delta_scale=1.0,
        encoding="int8",
        rounds=3,
    )


SCENARIOS = {
    "checkpoints": Scenario(play_checkpoints, check_checkpoints),
    "redone round": Scenario(play_redone_round, check_checkpoints),
    "no room for a folder": Scenario(
        play_no_room("mkdir", lambda path: Path(path).name == RUN and Path(path).parent.exists()), check_checkpoints
    ),
    "no room for its name": Scenario(play_no_room("fsync", lambda descriptor: True), check_checkpoints),
    "keys": Scenario(play_keys, check_keys),
    "worker": Scenario(play_worker, check_worker),
}
KILLED_MASTER = Scenario(play_killed_master, check_checkpoints)
