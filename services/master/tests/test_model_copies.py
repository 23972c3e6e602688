"""The model where people want it: which paths are refused, that a copy is whole or not there, when one is made."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.common.errors import ProtocolError
from services.common.protocol.reasons import said
from services.master.core import commands as c
from services.master.core import events as e
from services.master.core.coordinator import Coordinator
from services.master.core.events import ModelCopied
from services.master.core.recovery import Saved
from services.master.core.state import Evaluation, RunPhase
from services.master.core.view import run_view
from services.master.shell import checkpoints, disk_answer, model_copies
from services.master.shell.checkpoints import Checkpoint, Vault
from services.master.shell.model_copies import ModelCopies, Places
from services.tests.story import RUN, Story

DEFAULT = "checkpoints/mahe_model.npz"


class Bench:
    """A vault with two versions, and copies that are made here and now."""

    def __init__(self, folder: Path, within: Path | None = None) -> None:
        self.folder, self.posted = folder, list[ModelCopied]()
        self.vault = Vault(folder / "runs")
        for version in (1, 2):
            meta = {"run": RUN, "round": version, "version": version}
            self.vault.write(Checkpoint(np.full(400_000, version, np.float32), {}, meta))
        self.copies = ModelCopies(Places(folder, within), self.vault, self.posted.append)

    def parameters(self, path: str = DEFAULT) -> float:
        """Of a sealed file."""
        raw = (self.folder / path).read_bytes()
        assert checkpoints.is_sealed(raw)
        return float(checkpoints.read_parameters(self.folder / path)[0])


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_copy_is_the_checkpoint_byte_for_byte_and_the_next_replaces_it(bench: Bench) -> None:
    for version in (1, 2):
        copied = bench.copies.copy_now(RUN, version, DEFAULT)
        assert (copied.reason, copied.file) == ("", str(bench.folder / DEFAULT))
        assert Path(copied.file).read_bytes() == bench.vault.path_of(RUN, version).read_bytes()
    assert bench.parameters() == 2.0
    assert bench.copies.found(RUN, DEFAULT).version == 2
    assert bench.copies.found("digits-9", DEFAULT).version is None, "it is of another run"
    assert bench.copies.found(RUN, "nothing/here.npz").version is None


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_fails_leaves_the_old_copy_and_no_rubbish(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    bench.copies.copy_now(RUN, 1, DEFAULT)

    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, fails)
    copied = bench.copies.copy_now(RUN, 2, DEFAULT)
    assert (copied.file, "No space left" in copied.reason) == ("", True)
    assert bench.parameters() == 1.0
    assert [path.name for path in (bench.folder / "checkpoints").iterdir()] == ["mahe_model.npz"]


def test_a_damaged_checkpoint_never_replaces_a_good_copy(bench: Bench) -> None:
    bench.copies.copy_now(RUN, 1, DEFAULT)
    path = bench.vault.path_of(RUN, 2)
    raw = bytearray(path.read_bytes())
    raw[1_200_000] ^= 1
    path.write_bytes(raw)
    assert "is damaged" in bench.copies.copy_now(RUN, 2, DEFAULT).reason
    path.write_bytes(raw[:50])
    assert "is damaged" in bench.copies.copy_now(RUN, 2, DEFAULT).reason
    path.unlink()
    assert "No such file" in bench.copies.copy_now(RUN, 2, DEFAULT).reason
    assert bench.parameters() == 1.0


def test_what_a_killed_master_left_half_written_is_swept(bench: Bench) -> None:
    (bench.folder / "checkpoints").mkdir()
    (bench.folder / "checkpoints" / ".mahe_model.npz.99.tmp").write_bytes(b"half")
    (bench.folder / "checkpoints" / ".mine.tmp").write_bytes(b"not ours")
    bench.copies.copy_now(RUN, 1, DEFAULT)
    assert sorted(path.name for path in (bench.folder / "checkpoints").iterdir()) == [".mine.tmp", "mahe_model.npz"]


def test_missing_folders_are_made_when_a_run_is_asked_for(bench: Bench, tmp_path: Path) -> None:
    for path in ("new/deep/m.npz", str(tmp_path / "elsewhere" / "模型 1.npz")):
        assert list(bench.copies.places.check(path).parent.iterdir()) == []


@pytest.mark.parametrize(
    "path, why",
    [
        ("model", "must be the name of a file that ends in .npz"),
        ("", "must be the name of a file"),
        ("a\nb.npz", "must be the name of a file"),
        ("a\0b.npz", "cannot be looked up"),
        ("~nobody-of-that-name/m.npz", "cannot be looked up"),
        ("runs/digits-1/ckpt-1.npz", "lies among the master's own checkpoints"),
        ("x/../runs/m.npz", "lies among the master's own checkpoints"),
        ("folder.npz", "is a folder; name a file in it"),
        ("file/m.npz", "cannot be written"),
        ("x" * 300 + ".npz", "cannot be written"),
        ("x" * 245 + ".npz", "cannot be written"),
    ],
)
def test_a_path_that_cannot_be_is_refused_by_name(bench: Bench, path: str, why: str) -> None:
    (bench.folder / "folder.npz").mkdir()
    (bench.folder / "file").write_bytes(b"")
    with pytest.raises(ProtocolError, match="field model_path is") as refused:
        bench.copies.places.check(path)
    assert why in refused.value.sentence
    assert refused.value.code == "BAD_SPEC"


def test_a_folder_of_somebody_else_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def theirs(path: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "touch", theirs)
    with pytest.raises(ProtocolError, match=r"\(Permission denied\); let this user write in .*theirs, or name another"):
        bench.copies.places.check("theirs/m.npz")


def test_below_the_volume_means_below_it_also_through_links(tmp_path: Path) -> None:
    volume, outside = tmp_path / "volume", tmp_path / "outside"
    volume.mkdir()
    outside.mkdir()
    bench = Bench(volume, within=volume)
    (volume / "link").symlink_to(outside)
    (volume / "inside").symlink_to(volume / "models")
    for path in ("../m.npz", str(outside / "m.npz"), "link/m.npz", "/etc/m.npz"):
        with pytest.raises(ProtocolError, match="must lie below"):
            bench.copies.places.check(path)
        assert "must lie below" in bench.copies.copy_now(RUN, 1, path).reason
    assert bench.copies.places.check("inside/m.npz") == volume / "models" / "m.npz"


def test_a_disk_that_does_not_answer_is_refused_and_waited_for_a_moment_only(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = threading.Event()
    monkeypatch.setattr(disk_answer, "ANSWER_S", 0.05)
    monkeypatch.setattr(model_copies, "make_folders", lambda _: never.wait(20))
    with pytest.raises(ProtocolError, match="does not answer"):
        bench.copies.places.check(DEFAULT)
    never.set()


def test_of_each_run_only_the_newest_is_copied_and_what_waits_is_pinned(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    going, seen = threading.Event(), threading.Event()
    shipped = ModelCopies.copy_now

    def slow(self: ModelCopies, run: str, version: int, path: str) -> ModelCopied:
        seen.set()
        going.wait(10)
        return shipped(self, run, version, path)

    monkeypatch.setattr(ModelCopies, "copy_now", slow)
    bench.copies.copy(RUN, 1, DEFAULT)
    assert seen.wait(10)
    for version in (7, 2):
        bench.copies.copy(RUN, version, DEFAULT)
    assert bench.copies.pinned() == {1, 2}
    going.set()
    bench.copies.stop()
    assert [(one.version, one.reason) for one in bench.posted] == [(1, ""), (2, "")]
    assert bench.copies.pinned() == set()
    assert bench.parameters() == 2.0


def copies(text: str, failing: Callable[[int], bool] = lambda version: False) -> tuple[list[int], list[str], Any]:
    """Of a story: the versions asked for, the warnings, and the run's view at the end."""
    story, asked, told = Story(), list[int](), list[str]()
    shipped = story._answer

    def answer(command: c.Command) -> e.Event | None:
        if isinstance(command, c.CopyModel):
            asked.append(command.version)
            if failing(len(asked)):
                return e.ModelCopied(command.run, command.version, "", "No space left on device")
        if isinstance(command, c.Report) and command.kind == "WARN":
            told.append(command.text)
        return shipped(command)

    story._answer = answer  # type: ignore[method-assign]
    story.play("@1000 join ada\n@1100 create k_steps=10 batch=50 rounds=12 model_every=3\n" + text)
    run: Any = story.coordinator.state.run
    return asked, told, run_view(run)


def rounds(*numbers: int, loss: dict[int, float] | None = None) -> str:
    lines = []
    for number in numbers:
        lines.append(f"@{number * 2000} delta ada")
        if loss and number in loss:
            lines.append(f"@{number * 2000 + 500} eval version={number} loss={loss[number]} acc=0.5")
    return "\n".join(lines) + "\n"


def test_it_is_copied_every_so_many_rounds_and_when_the_run_ends() -> None:
    asked, _, view = copies(rounds(*range(1, 9)) + "@30000 stop")
    assert asked == [3, 6, 8]
    assert (view["model_version"], view["model_path"]) == (8, DEFAULT)
    assert copies(rounds(*range(1, 13)))[0] == [3, 6, 9, 12]
    assert copies("@30000 stop")[0] == [], "nothing is trained yet"


def test_it_is_the_best_as_far_as_it_is_known_and_never_the_same_twice() -> None:
    asked, _, view = copies(rounds(*range(1, 9), loss={1: 0.9, 2: 0.5, 3: 0.7, 6: 0.8}) + "@30000 stop")
    assert (asked, view["model_version"]) == ([2], 2)
    late = copies(rounds(*range(1, 9), loss={2: 0.5}) + "@30000 stop\n@31000 eval version=8 loss=0.1 acc=0.9")
    assert late[0] == [2, 8]


def test_one_that_fails_is_told_once_tried_again_and_stops_nothing() -> None:
    asked, told, view = copies(rounds(*range(1, 8)), failing=lambda count: count < 3)
    assert asked == [3, 6]
    assert told == [f"run {RUN}: its model is not copied (No space left on device)"]
    assert (view["model_reason"], view["model_version"], view["phase"]) == ("No space left on device", None, "RUNNING")
    asked, told, view = copies(rounds(*range(1, 13), loss={2: 0.5}), failing=lambda count: count < 3)
    assert asked == [2, 2, 2], "of the same version, until it is there"
    assert (view["model_reason"], view["model_version"], len(told)) == ("", 2, 1)


def test_after_a_restart_it_goes_on_from_what_lies_there(bench: Bench) -> None:
    story = Story()
    story.play("@1000 join ada\n@1100 create k_steps=10 batch=50 rounds=12\n" + rounds(1, 2))
    bench.copies.copy_now(RUN, 2, DEFAULT)
    best = Evaluation(2, 0.5, 0.5)
    for model, wanted in ((bench.copies.found(RUN, DEFAULT), []), (bench.copies.found(RUN, "gone.npz"), [2])):
        spec: Any = story.disk.spec
        saved = Saved(
            RUN, spec, RunPhase.STOPPED, said("stopped"), 1000, story.disk.meta, [], {}, best, best, model=model
        )
        coordinator = Coordinator(2)
        coordinator.restore(saved, 9000)
        asked = [one.version for one in coordinator.step(e.Tick(), 9500) if isinstance(one, c.CopyModel)]
        assert asked == wanted
