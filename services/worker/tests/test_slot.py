"""Slots, what they keep over a restart, and which way into the cluster follows from it."""

import dataclasses
import errno
import json
import math
import os
from pathlib import Path

import pytest
import zmq
from zmq.utils import z85

from services.common.errors import SettingsError
from services.common.protocol.join_string import JoinString
from services.common.protocol.messages import TaskRef, What
from services.worker.shell import joining
from services.worker.shell.disk import disk_text
from services.worker.shell.replica_files import file_digest
from services.worker.shell.slot import Parked, Slot, fingerprint, read_chunk, take_slot
from services.worker.tests.driver import delta, ref


def join_to(server: bytes, secret: int = 1) -> JoinString:
    """A join string of a master."""
    return JoinString(("tcp://a:1",), z85.decode(server), bytes([secret]) * 32)


@pytest.fixture(scope="module")
def server() -> bytes:
    """A master's public key."""
    return zmq.curve_keypair()[0]


def enrol(slot: Slot, join: JoinString) -> joining.Way:
    """As after ENROLLED."""
    way = joining.find_way(slot, join)
    slot.save_identity(joining.enrolled(way, "w-1", "pc", ("tcp://a:1",), "k" * 40))
    return way


def hold(slot: Slot, of: TaskRef) -> TaskRef:
    """A whole delta with its note."""
    one = delta(of)
    slot.delta_path(of.lease).write_bytes(b"delta" * 100)
    one.digest = file_digest(slot.delta_path(of.lease))
    slot.keep(one)
    return of


def test_the_first_free_slot_is_taken_and_given_back(tmp_path: Path) -> None:
    first, second = take_slot(tmp_path, print), take_slot(tmp_path, print)
    assert (first.folder.name, second.folder.name) == ("slot-0", "slot-1")
    first.release()
    third = take_slot(tmp_path, print)
    assert third.folder.name == "slot-0"
    second.release()
    third.release()


def test_a_held_delta_survives_with_its_note_and_what_is_not_whole_is_swept(slot: Slot) -> None:
    kept, damaged = delta(ref(1)), delta(ref(2))
    for one in (kept, damaged):
        slot.delta_path(one.ref.lease).write_bytes(b"delta" * 100)
    kept.digest = file_digest(slot.delta_path(kept.ref.lease))
    kept.accepted_session = 3
    slot.keep(kept)
    slot.keep(damaged)
    slot.delta_path("without a note").write_bytes(b"x")
    held = list(slot.held())
    assert [(one.ref, one.digest, one.accepted_session) for one in held] == [(kept.ref, kept.digest, 0)]
    assert sorted(path.suffix for path in slot.folder.glob("delta-*")) == [".bin", ".json"]
    slot.forget(kept.ref.lease, counted=False)
    assert list(slot.held()) == []


@pytest.mark.parametrize("what, version, name", [("snapshot", 0, "anchor.f32"), ("update", 3, "update-3.bin")])
def test_chunks_go_to_their_place_in_any_order(slot: Slot, what: What, version: int, name: str) -> None:
    files, path = slot.replica, slot.folder / name
    files.prepare(what, version, 10)
    files.store(what, version, 8, b"ij")
    files.store(what, version, 0, b"abcdefgh")
    assert path.read_bytes() == b"abcdefghij"
    assert read_chunk(path, 1, 8) == b"ij"
    files.prepare(what, version, 4)
    assert path.read_bytes() == b"abcd"
    with pytest.raises(EOFError, match="has no chunk 1"):
        read_chunk(path, 1, 8)


DAMAGED = [b"{", b"", b"[]", b"\xff", b"{}", b'{"reason": 3, "joined_with": ""}', b'{"public_key": 1}']


@pytest.mark.parametrize("content", [*DAMAGED, b'{"public_key": "short", "secret_key": "short"}'])
def test_a_damaged_identity_is_set_aside_and_the_next_join_string_makes_another(
    slot: Slot, warnings: list[str], content: bytes, server: bytes
) -> None:
    path = slot.folder / "identity.json"
    path.write_bytes(content)
    assert joining.needs_join_string(slot)
    assert path.with_name("identity.json.damaged").read_bytes() == content
    assert len(warnings) == 1
    assert warnings[0].startswith(f"{path} is damaged (")
    assert warnings[0].endswith("and set aside as identity.json.damaged; this PC joins anew, with a join string")
    assert joining.find_way(slot, join_to(server)).can_enrol


@pytest.mark.parametrize("secret", [zmq.curve_keypair()[1].decode(), "x" * 40, "\u00e4", ""], ids=range(4))
def test_keys_that_do_not_belong_together_are_a_damaged_identity(
    slot: Slot, warnings: list[str], secret: str, server: bytes
) -> None:
    identity = enrol(slot, join_to(server)).identity
    slot.save_identity(dataclasses.replace(identity, secret_key=secret))
    assert slot.identity() is None
    assert len(warnings) == 1


def test_an_enrolled_identity_without_a_master_is_a_damaged_one(slot: Slot, warnings: list[str], server: bytes) -> None:
    identity = enrol(slot, join_to(server)).identity
    slot.save_identity(dataclasses.replace(identity, worker="w-1", endpoints=()))
    assert slot.identity() is None
    assert len(warnings) == 1


def test_an_identity_of_a_newer_mahe_is_read(slot: Slot, server: bytes) -> None:
    enrol(slot, join_to(server))
    path = slot.folder / "identity.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"colour": "blue"}))
    identity = slot.identity()
    assert identity is not None
    assert identity.worker == "w-1"


def test_an_identity_that_cannot_be_read_for_now_stays_and_is_an_error(slot: Slot) -> None:
    path = slot.folder / "identity.json"
    path.mkdir()
    with pytest.raises(SettingsError) as caught:
        slot.identity()
    assert caught.value.sentence.startswith(f"{path} cannot be used (Is a directory); ")
    assert path.is_dir()


def test_an_identity_that_cannot_be_saved_is_an_error(slot: Slot, server: bytes) -> None:
    slot.folder.rename(slot.folder.with_name("gone"))
    with pytest.raises(SettingsError) as caught:
        joining.find_way(slot, join_to(server))
    assert caught.value.sentence.startswith(f"{slot.folder / 'identity.json'} cannot be used (No such file")


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_parked_marker_is_set_aside(slot: Slot, warnings: list[str], content: bytes) -> None:
    (slot.folder / "parked.json").write_bytes(content)
    assert slot.parked() is None
    assert (slot.folder / "parked.json.damaged").exists()
    assert len(warnings) == 1


@pytest.mark.parametrize("content", [*DAMAGED, b'{"ref": {"run": "r"}, "delta_bytes": 4}'])
def test_a_damaged_note_of_a_delta_is_dropped_with_a_warning(slot: Slot, warnings: list[str], content: bytes) -> None:
    kept = hold(slot, ref(1))
    path = slot.delta_path("lost")
    path.write_bytes(b"delta")
    path.with_suffix(".json").write_bytes(content)
    assert [one.ref for one in slot.held()] == [kept]
    assert not list(slot.folder.glob(f"{path.stem}*"))
    assert len(warnings) == 1
    assert "its shard comes again" in warnings[0]


@pytest.mark.parametrize(
    "field, value",
    [
        ("samples", "many"),
        ("steps", -1),
        ("loss", math.nan),
        ("delta_bytes", -4),
        ("digest", ""),
        ("sync_ms", -1),
        ("late_ms", -1),
    ],
)
def test_a_note_with_a_field_that_no_master_would_take_is_dropped(
    slot: Slot, warnings: list[str], field: str, value: object
) -> None:
    hold(slot, ref(1))
    path = slot.delta_path(ref(1).lease).with_suffix(".json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    assert slot.held() == []
    assert len(warnings) == 1


def test_a_delta_that_cannot_be_read_for_now_stays_for_the_next_start(slot: Slot, warnings: list[str]) -> None:
    kept = hold(slot, ref(1))
    path = slot.delta_path(kept.lease)
    path.rename(path.with_name("aside"))
    path.mkdir()
    assert slot.held() == []
    assert warnings == [f"{path} cannot be read (Is a directory); it stays for the next start"]
    path.rmdir()
    path.with_name("aside").rename(path)
    assert [one.ref for one in slot.held()] == [kept]


def test_a_note_that_cannot_be_read_for_now_stays_too_with_its_delta(slot: Slot, warnings: list[str]) -> None:
    path = slot.delta_path("a")
    path.write_bytes(b"delta")
    path.with_suffix(".json").mkdir()
    assert slot.held() == []
    assert path.exists()
    assert len(warnings) == 1


def test_a_slot_is_checked_by_writing_and_by_the_space_that_is_needed(slot: Slot) -> None:
    slot.check(1000)
    assert [path.name for path in slot.folder.iterdir()] == ["lock"]
    with pytest.raises(OSError, match=r"MiB .* needed") as caught:
        slot.check(2**60)
    assert caught.value.errno == errno.ENOSPC
    slot.replica.anchor.mkdir()
    with pytest.raises(IsADirectoryError):
        slot.check(1000)


@pytest.mark.parametrize(
    "number, words",
    [
        (errno.ENOSPC, "this PC's disk is full: {0} cannot be written (No space left on device); free some space"),
        (errno.EROFS, "{0} cannot be used (Read-only file system); is the disk there, and may this user write there?"),
    ],
)
def test_what_a_failing_disk_is_called(number: int, words: str, tmp_path: Path) -> None:
    error = OSError(number, os.strerror(number))
    assert disk_text(tmp_path, error) == words.format(tmp_path)
    named = OSError(number, os.strerror(number), str(tmp_path / "file"))
    assert disk_text(tmp_path, named) == words.format(tmp_path / "file")


def test_without_a_join_string_there_is_no_way(slot: Slot) -> None:
    assert joining.needs_join_string(slot)
    with pytest.raises(SettingsError, match="no join string"):
        joining.find_way(slot, None)


def test_the_key_pair_stays_the_same_over_failed_starts(slot: Slot, server: bytes) -> None:
    first = joining.find_way(slot, join_to(server))
    assert first.can_enrol
    assert joining.find_way(slot, join_to(server)).identity == first.identity


def test_an_enrolled_slot_keeps_its_key_whatever_string_of_the_same_master_comes(slot: Slot, server: bytes) -> None:
    way = enrol(slot, join_to(server))
    for join, can_enrol in ((None, False), (join_to(server), False), (join_to(server, 2), True)):
        again = joining.find_way(slot, join)
        assert again.identity.public_key == way.identity.public_key
        assert (again.can_enrol, again.endpoints) == (can_enrol, ("tcp://a:1",))


def test_another_master_gets_another_key_pair(slot: Slot, server: bytes) -> None:
    way = enrol(slot, join_to(server))
    other = joining.find_way(slot, join_to(zmq.curve_keypair()[0]))
    assert other.identity.public_key != way.identity.public_key
    assert not other.identity.worker


def test_only_another_join_string_leads_out_of_the_parked_state(slot: Slot, server: bytes) -> None:
    way = enrol(slot, join_to(server))
    slot.park(Parked("removed", fingerprint(join_to(server))))
    for join in (None, join_to(server)):
        assert joining.find_way(slot, join).parked == "removed"
    assert not joining.needs_join_string(slot)
    out = joining.find_way(slot, join_to(server, 2))
    assert (out.parked, out.can_enrol) == ("", True)
    assert out.identity.public_key != way.identity.public_key
    assert slot.parked() is None


def test_what_a_killed_agent_had_half_written_is_swept(tmp_path: Path, warnings: list[str]) -> None:
    take_slot(tmp_path, warnings.append).release()
    half = tmp_path / "slot-0" / ".identity.json.4711.tmp"
    half.write_bytes(b"half a secret key")
    take_slot(tmp_path, warnings.append).release()
    assert not half.exists()
