"""Slots, what they keep over a restart, and which way into the cluster follows from it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
from zmq.utils import z85

from services.common.errors import SettingsError
from services.common.protocol.join_string import JoinString
from services.worker.shell import joining
from services.worker.shell.slot import Parked, Slot, file_digest, fingerprint, read_chunk, take_slot
from services.worker.tests.driver import delta, ref


def join_to(server: bytes, secret: int = 1) -> JoinString:
    """A join string of a master."""
    return JoinString(("tcp://a:1",), z85.decode(server), bytes([secret]) * 32)


@pytest.fixture
def slot(tmp_path: Path) -> Iterator[Slot]:
    """A slot of its own."""
    one = take_slot(tmp_path)
    yield one
    one.release()


@pytest.fixture(scope="module")
def server() -> bytes:
    """A master's public key."""
    return zmq.curve_keypair()[0]


def enrol(slot: Slot, join: JoinString) -> joining.Way:
    """As after ENROLLED."""
    way = joining.find_way(slot, join)
    slot.save_identity(joining.enrolled(way, "w-1", "pc", ("tcp://a:1",), "k" * 40))
    return way


def test_the_first_free_slot_is_taken_and_given_back(tmp_path: Path) -> None:
    first, second = take_slot(tmp_path), take_slot(tmp_path)
    assert (first.folder.name, second.folder.name) == ("slot-0", "slot-1")
    first.release()
    third = take_slot(tmp_path)
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
    assert sorted(path.suffix for path in slot.folder.glob("delta-*")) == [".f32", ".json"]
    slot.forget(kept.ref.lease)
    assert list(slot.held()) == []


def test_chunks_go_to_their_place_in_any_order(slot: Slot) -> None:
    slot.prepare_anchor(10)
    slot.store(8, b"ij")
    slot.store(0, b"abcdefgh")
    assert slot.anchor_path.read_bytes() == b"abcdefghij"
    assert read_chunk(slot.anchor_path, 1, 8) == b"ij"
    slot.prepare_anchor(4)
    assert slot.anchor_path.read_bytes() == b"abcd"
    with pytest.raises(OSError, match="has no chunk 1"):
        read_chunk(slot.anchor_path, 1, 8)


def test_a_damaged_identity_is_named(slot: Slot) -> None:
    (slot.folder / "identity.json").write_text("{")
    with pytest.raises(SettingsError, match="cannot be read"):
        slot.identity()


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
