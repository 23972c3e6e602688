"""The store: what is found again after a crash, what must be forgotten, and a disk that cannot be read."""

import json
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest

from services.common.errors import CheckpointError
from services.common.protocol.messages import RunSpec
from services.common.protocol.reasons import because, said
from services.master.core.state import RunPhase
from services.master.shell import checkpoints
from services.master.shell.checkpoints import Checkpoint, Vault
from services.master.shell.resume import Found, Unprepared, find_run
from services.master.shell.store import Store

RUN = "digits-1"
SPEC = RunSpec(rounds=3)


def row(round_number: int, loss: float | None) -> dict[str, object]:
    return {"round": round_number, "workers": 1, "train_loss": 1.0, "eval_loss": loss, "eval_accuracy": 0.5}


def closed(folder: Path, version: int) -> None:
    meta = {"run": RUN, "round": version, "version": version, "row": row(version, None) if version else None}
    checkpoints.write(folder / "runs" / RUN, Checkpoint(np.zeros(3, np.float32), {}, meta))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    store.add_run(RUN, 1, SPEC.model_dump(mode="json"), "RUNNING", because("ROUND_RUNS", round=1, n=1))
    return store


def test_a_crash_after_the_last_rename_leaves_a_finished_run(tmp_path: Path, store: Store) -> None:
    closed(tmp_path, 3)
    found, _ = find_run(store, Vault(tmp_path / "runs"), {})
    assert isinstance(found, Found)
    assert found.saved.phase is RunPhase.STOPPED
    [kept] = store.runs(limit=1)
    assert (kept["phase"], kept["finished"]) == ("STOPPED", True)


@pytest.mark.parametrize("phase, expected", [("WAITING", False), ("RUNNING", False), ("PAUSED", True)])
def test_a_run_without_version_0_is_prepared_again(tmp_path: Path, store: Store, phase: str, expected: bool) -> None:
    store.save_run(RUN, phase, because("PREPARING"), finished=False)
    found, _ = find_run(store, Vault(tmp_path / "runs"), {})
    assert isinstance(found, Unprepared)
    assert (found.run, found.spec, found.paused) == (RUN, SPEC, expected)


@pytest.mark.parametrize("phase", ["FAILED", "STOPPED"])
def test_a_run_that_ended_before_version_0_stays_as_it_is(tmp_path: Path, store: Store, phase: str) -> None:
    store.save_run(RUN, phase, said("the data cannot be used"), finished=False)
    assert find_run(store, Vault(tmp_path / "runs"), {}) == (None, [])
    [kept] = store.runs(limit=1)
    assert (kept["phase"], kept["reason"]) == (phase, "the data cannot be used")


def test_rows_of_a_version_that_was_set_aside_are_forgotten(tmp_path: Path, store: Store) -> None:
    for version in (1, 2):
        closed(tmp_path, version)
        store.save_round(RUN, row(version, 0.9 - 0.1 * version))
    checkpoints.path_of(tmp_path / "runs" / RUN, 2).write_bytes(b"damaged")
    found, sentences = find_run(store, Vault(tmp_path / "runs"), {})
    assert isinstance(found, Found)
    assert "set aside" in sentences[0]
    assert [one["round"] for one in found.rows] == [1]
    assert found.saved.best_eval is not None
    assert found.saved.best_eval.version == 1


def test_a_loss_of_zero_is_a_loss(tmp_path: Path, store: Store) -> None:
    closed(tmp_path, 2)
    store.save_round(RUN, row(1, 0.0))
    store.save_round(RUN, row(2, 0.5))
    found, _ = find_run(store, Vault(tmp_path / "runs"), {})
    assert isinstance(found, Found)
    assert found.saved.best_eval is not None
    assert found.saved.best_eval.version == 1
    assert store.best_round(RUN) == 1


def test_evaluations_are_handed_on_in_order_the_best_first_when_it_is_long_ago(tmp_path: Path, store: Store) -> None:
    closed(tmp_path, 2)
    store.save_run(RUN, "STOPPED", because("TIME_OVER", n=1, version=1200), finished=True)
    store._db.execute("PRAGMA synchronous=OFF")  # 1200 times to the disk is nothing to wait for here
    for round_number in range(1, 1201):
        store.save_round(RUN, row(round_number, 0.25 if round_number == 3 else 0.5))
    found, _ = find_run(store, Vault(tmp_path / "runs"), {})
    assert isinstance(found, Found)
    assert found.saved.finished
    versions = [one.version for one in found.saved.evaluations]
    assert versions == [3, *range(201, 1201)]


def test_a_reason_is_kept_with_its_code_and_one_of_an_older_mahe_is_its_text(tmp_path: Path, store: Store) -> None:
    stopped = because("STOPPED", version=2)
    store.save_run(RUN, "STOPPED", stopped, finished=False)
    closed(tmp_path, 2)
    found, _ = find_run(store, Vault(tmp_path / "runs"), {})
    assert isinstance(found, Found)
    assert found.saved.reason == stopped
    store._db.execute("ALTER TABLE runs DROP COLUMN reason_said")  # as it was before
    store.close()
    older = Store(tmp_path)
    [kept] = older.runs(limit=1)
    assert (kept["reason"], kept["reason_said"]) == ("stopped by the operator at version 2", None)
    found, _ = find_run(older, Vault(tmp_path / "runs"), {})
    assert isinstance(found, Found)
    assert found.saved.reason == said("stopped by the operator at version 2")
    older.save_run(RUN, "STOPPED", stopped, finished=False)
    older.close()
    [kept] = Store(tmp_path).runs(limit=1)
    assert kept["reason_said"] == {"code": "STOPPED", "values": {"version": 2}}


def test_the_best_round_is_the_first_of_the_lowest(store: Store) -> None:
    assert store.best_round(RUN) is None
    for round_number, loss in enumerate([0.5, 0.25, None, 0.25, 10.0], start=1):
        store.save_round(RUN, row(round_number, loss))
    assert store.best_round(RUN) == 2
    assert (store.has_run(RUN), store.has_run("digits-2")) == (True, False)


def test_only_its_owner_reads_it_and_a_broken_one_is_a_sentence(tmp_path: Path, store: Store) -> None:
    assert stat.S_IMODE((tmp_path / "master.sqlite").stat().st_mode) == 0o600
    store.close()
    (tmp_path / "master.sqlite").write_bytes(b"this is not a database" * 1000)
    for beside in ("master.sqlite-wal", "master.sqlite-shm"):
        (tmp_path / beside).unlink(missing_ok=True)
    with pytest.raises(CheckpointError, match=r"cannot be opened: .*restore a backup"):
        Store(tmp_path)


def test_a_read_that_fails_is_a_sentence(tmp_path: Path, store: Store) -> None:
    store._db.execute("DROP TABLE joins")
    with pytest.raises(CheckpointError, match=r"cannot be read: .*check the disk"):
        store.joins()


def test_spec_rows_are_json(store: Store) -> None:
    [kept] = store.runs(limit=1)
    assert json.loads(json.dumps(kept["spec"])) == SPEC.model_dump(mode="json")


def killed_copy(store: Store, folder: Path, to: Path) -> tuple[Path, int]:
    """The files as a kill leaves them, one more row in the WAL; the WAL and where its last transaction begins."""
    wal = folder / "master.sqlite-wal"
    begin = wal.stat().st_size
    store.save_round(RUN, row(2, 0.5))
    to.mkdir()
    for name in ("master.sqlite", "master.sqlite-wal"):
        shutil.copy(folder / name, to / name)
    return to / "master.sqlite-wal", begin


def test_damage_of_the_last_transaction_costs_at_most_its_row_and_that_is_repaired(
    tmp_path: Path, store: Store
) -> None:
    store.save_round(RUN, row(1, 0.9))
    wal, begin = killed_copy(store, tmp_path, tmp_path / "killed")
    whole, main = wal.read_bytes(), (wal.parent / "master.sqlite").read_bytes()
    assert begin < len(whole)
    closed(wal.parent, 2)
    rows = set()
    for at in range(begin, len(whole), 397):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            (wal.parent / "master.sqlite-shm").unlink(missing_ok=True)
            (wal.parent / "master.sqlite").write_bytes(main)
            wal.write_bytes(damaged)
            again = Store(wal.parent)
            rows.add(tuple(one["round"] for one in again.rounds(RUN, 0, 10)))
            found, _ = find_run(again, Vault(wal.parent / "runs"), {})
            assert [one["round"] for one in again.rounds(RUN, 0, 10)] == [1, 2]
            assert again._read("PRAGMA integrity_check") == [("ok",)]
            again.close()
            assert isinstance(found, Found)
    assert rows == {(1,)}
