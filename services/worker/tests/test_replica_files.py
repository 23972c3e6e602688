"""The files of a slot's replica and residual: what a crash, another program or another run may leave of them."""

from pathlib import Path

import numpy as np
import pytest

from services.common.host import failpoints
from services.common.learning.exchange import pack_residual, unpack_residual
from services.worker.core.events import Anchor
from services.worker.core.state import NO_ANCHOR
from services.worker.shell.replica_files import file_digest
from services.worker.shell.slot import Slot, take_slot
from services.worker.shell.task_files import TaskFiles
from services.worker.tests.driver import delta, ref

OLD, NEW = (b"".join(pack_residual("run-1", np.full(5, value, np.float32))) for value in (1, 2))
FIRST, SECOND = ref(1), ref(2)


def hold(slot: Slot, lease: str, left_over: bytes | None = NEW) -> None:
    """A delta as trainer and agent leave it; `left_over` by its encoding."""
    one = delta(next(of for of in (FIRST, SECOND) if of.lease == lease))
    slot.delta_path(lease).write_bytes(b"delta" * 100)
    if left_over is not None:
        slot.next_residual_path(lease).write_bytes(left_over)
    one.digest = file_digest(slot.delta_path(lease))
    slot.keep(one)


def names(slot: Slot) -> list[str]:
    """What is in the slot, the lock left out."""
    return sorted(path.name for path in slot.folder.iterdir() if path.name != "lock")


@pytest.mark.parametrize("before", [None, OLD])
def test_what_a_counted_delta_left_over_takes_the_place_of_the_residual(slot: Slot, before: bytes | None) -> None:
    if before is not None:
        slot.residual_path.write_bytes(before)
    hold(slot, FIRST.lease)
    slot.forget(FIRST.lease, counted=True)
    assert slot.residual_path.read_bytes() == NEW
    assert names(slot) == ["residual.bin"]


@pytest.mark.parametrize("before", [None, OLD])
def test_what_a_delta_left_over_that_does_not_count_is_gone(slot: Slot, before: bytes | None) -> None:
    if before is not None:
        slot.residual_path.write_bytes(before)
    hold(slot, FIRST.lease)
    slot.forget(FIRST.lease, counted=False)
    assert names(slot) == (["residual.bin"] if before is not None else [])
    assert before is None or slot.residual_path.read_bytes() == before


@pytest.mark.parametrize("counted", [True, False])
def test_a_delta_that_left_nothing_over_changes_no_residual(slot: Slot, counted: bool) -> None:
    slot.residual_path.write_bytes(OLD)
    hold(slot, FIRST.lease, None)
    slot.forget(FIRST.lease, counted=counted)
    slot.forget("unknown", counted=counted)
    assert slot.residual_path.read_bytes() == OLD
    assert names(slot) == ["residual.bin"]


def test_of_two_held_deltas_each_has_its_own(slot: Slot) -> None:
    hold(slot, FIRST.lease, OLD)
    hold(slot, SECOND.lease, NEW)
    slot.forget(SECOND.lease, counted=False)
    assert not slot.residual_path.exists()
    slot.forget(FIRST.lease, counted=True)
    assert slot.residual_path.read_bytes() == OLD


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("point", ["forget.before-residual", "forget.before-note", "forget.before-delta"])
def test_a_crash_in_the_middle_is_made_up_for_when_the_master_says_it_again(
    slot: Slot, warnings: list[str], point: str, counted: bool
) -> None:
    slot.residual_path.write_bytes(OLD)
    hold(slot, FIRST.lease)
    failpoints.arm(f"{point}=EIO")
    if point == "forget.before-residual" and not counted:
        slot.forget(FIRST.lease, counted=counted)  # there is nothing to put in its place
    else:
        with pytest.raises(OSError, match="Input/output error"):
            slot.forget(FIRST.lease, counted=counted)
    failpoints.arm("")
    slot.release()
    again = take_slot(slot.folder.parent, warnings.append)
    held = [one.ref for one in again.held()]
    noted = point == "forget.before-note" or (point == "forget.before-residual" and counted)
    assert held == ([FIRST] if noted else [])
    for lease in [one.lease for one in held]:
        again.forget(lease, counted=counted)
    assert again.residual_path.read_bytes() == (NEW if counted else OLD)
    assert names(again) == ["residual.bin"]
    assert warnings == []
    again.release()


def test_what_a_killed_trainer_had_left_is_swept_at_the_start_and_the_residual_stays(slot: Slot) -> None:
    slot.residual_path.write_bytes(OLD)
    hold(slot, FIRST.lease)
    for path in (slot.delta_path("lost"), slot.next_residual_path("lost"), slot.next_residual_path("other")):
        path.write_bytes(b"half")
    slot.replica.update(3).write_bytes(b"update")
    (slot.folder / ".anchor.f32.tmp").write_bytes(b"half")
    slot.release()
    again = take_slot(slot.folder.parent, print)
    assert [one.ref for one in again.held()] == [FIRST]
    assert again.replica.known() == NO_ANCHOR
    stem = slot.delta_path(FIRST.lease).stem
    assert names(again) == [f"{stem}.bin", f"{stem}.json", f"{stem}.residual", "residual.bin"]
    again.release()


def test_a_damaged_note_takes_what_its_delta_left_over_along(slot: Slot) -> None:
    hold(slot, FIRST.lease)
    slot.delta_path(FIRST.lease).with_suffix(".json").write_bytes(b"{")
    assert slot.held() == []
    assert names(slot) == []


def test_a_residual_that_cannot_be_put_in_its_place_is_dropped_with_the_old_one(
    slot: Slot, warnings: list[str]
) -> None:
    hold(slot, FIRST.lease)
    slot.residual_path.mkdir()
    slot.forget(FIRST.lease, counted=True)
    assert len(warnings) == 1
    assert "cannot be moved (Is a directory); what was left over is dropped" in warnings[0]
    assert slot.held() == []


@pytest.mark.parametrize("place", range(0, len(NEW), 3))
def test_a_residual_that_is_damaged_anywhere_is_none(place: int) -> None:
    damaged = bytearray(NEW)
    damaged[place] ^= 1
    assert unpack_residual("run-1", bytes(damaged), 5) is None
    assert unpack_residual("run-1", NEW[:place], 5) is None


def test_a_residual_counts_for_its_run_and_length_only() -> None:
    found = unpack_residual("run-1", NEW, 5)
    assert found is not None
    assert found.tolist() == [2.0] * 5
    assert unpack_residual("run-2", NEW, 5) is None
    assert unpack_residual("run-1", NEW, 4) is None


def noted(slot: Slot) -> Anchor:
    """An anchor with its note."""
    slot.replica.prepare("snapshot", 0, 8)
    anchor = Anchor("run-1", 3, slot.replica.digest())
    slot.replica.note(anchor)
    return anchor


def test_which_version_the_anchor_is_survives_a_restart(slot: Slot) -> None:
    anchor = noted(slot)
    assert slot.replica.known() == anchor


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"run": "run-1"}', b'{"run": 1, "version": 2, "digest": ""}'])
def test_an_anchor_with_a_damaged_note_is_known_by_its_digest_alone(slot: Slot, content: bytes) -> None:
    anchor = noted(slot)
    (slot.folder / "anchor.json").write_bytes(content)
    assert slot.replica.known() == Anchor("", -1, anchor.digest)
    (slot.folder / "anchor.json").unlink()
    assert slot.replica.known() == Anchor("", -1, anchor.digest)


def test_an_anchor_that_is_not_the_noted_one_is_known_by_its_digest_alone(slot: Slot) -> None:
    noted(slot)
    slot.replica.store("snapshot", 0, 0, b"x")
    assert slot.replica.known() == Anchor("", -1, slot.replica.digest())


def test_a_note_without_an_anchor_is_none(slot: Slot) -> None:
    noted(slot)
    slot.replica.anchor.unlink()
    assert slot.replica.known() == NO_ANCHOR


def test_an_anchor_that_cannot_be_read_is_one_that_is_not_there(slot: Slot, warnings: list[str]) -> None:
    slot.replica.anchor.mkdir()
    assert slot.replica.known() == NO_ANCHOR
    assert warnings == [f"{slot.replica.anchor} cannot be read (Is a directory); it is downloaded again"]


def test_a_note_that_cannot_be_written_costs_no_task(slot: Slot, warnings: list[str]) -> None:
    (slot.folder / "anchor.json").mkdir()
    anchor = noted(slot)
    assert warnings == ["anchor.json cannot be written (Is a directory); after a restart the anchor comes whole"]
    assert anchor.version == 3


def test_updates_are_forgotten_up_to_a_version(slot: Slot) -> None:
    for version in (2, 9, 10, 11):
        slot.replica.update(version).write_bytes(b"x")
    (slot.folder / "update-old.bin").write_bytes(b"x")
    slot.replica.forget_updates(9)
    assert names(slot) == ["update-10.bin", "update-11.bin"]
    slot.replica.known()
    assert names(slot) == []


def files_in(folder: Path) -> TaskFiles:
    """With a residual, without updates."""
    return TaskFiles(folder / "anchor.f32", (), folder / "delta", folder / "residual", folder / "next")


@pytest.mark.parametrize("point", ["anchor.before-write", "anchor.before-rename"])
def test_an_anchor_that_cannot_be_written_stays_what_it_was(tmp_path: Path, point: str) -> None:
    files = files_in(tmp_path)
    files.write_anchor(np.zeros(3, np.float32))
    failpoints.arm(f"{point}=ENOSPC")
    with pytest.raises(OSError, match="No space left"):
        files.write_anchor(np.ones(3, np.float32))
    failpoints.arm("")
    assert files.read_anchor().tolist() == [0.0] * 3
    assert [path.name for path in tmp_path.iterdir()] == ["anchor.f32"]
    files.write_anchor(np.ones(3, np.float32))
    assert files.read_anchor().tolist() == [1.0] * 3
