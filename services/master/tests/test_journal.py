"""A journal of a real run replays to the same decisions; a changed or foreign one is noticed."""

import json
from pathlib import Path

import pytest

from services.common.errors import SettingsError
from services.master.__main__ import run_replay
from services.master.core.commands import Command
from services.master.core.events import Event
from services.master.shell import journal
from services.master.shell.journal import Journal, replay
from services.tests.simulation.cluster import Cluster, Plan
from services.tests.simulation.master import Master


def a_real_run(path: Path) -> None:
    """A simulated cluster full of faults, up to the first crash of its master."""
    cluster = Cluster(Plan(4, hours=0.05))
    watch = cluster.oracle.watch
    journals: list[Journal] = []

    def write(master: Master) -> None:
        watch(master)
        watched = master.reactor.seen
        assert watched is not None
        if journals:
            return
        journals.append(Journal(path, master.term))

        def both(now_ms: int, event: Event, commands: list[Command]) -> None:
            journals[0].seen(now_ms, event, commands)
            watched(now_ms, event, commands)

        master.reactor.seen = both

    cluster.oracle.watch = write  # type: ignore[method-assign]
    cluster.run()
    journals[0].close()


def test_the_journal_of_a_run_replays_to_the_same_decisions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "journal"
    a_real_run(path)
    assert len(path.read_bytes().splitlines()) > 100
    assert run_replay(path) == 0
    assert "the same decisions" in capsys.readouterr().err
    path.write_bytes(path.read_bytes() + b'{"at": 1, "kind": "Ti')  # killed while it wrote
    assert run_replay(path) == 0

    lines = path.read_bytes().splitlines()
    at = next(number for number, line in enumerate(lines) if b'"kind": "DeltaStaged"' in line)
    changed = json.loads(lines[at])
    changed["event"]["nonfinite"] = 3
    path.write_bytes(b"\n".join([*lines[:at], json.dumps(changed).encode(), *lines[at + 1 :]]) + b"\n")
    assert replay(path).differs_at == at + 1
    assert run_replay(path) == 1


def test_what_is_no_journal_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    for content in (b"hello\n", b"[1]\n", b'{"kind": "Nothing", "at": 1, "event": {}, "digest": ""}\n', b"\xff\n"):
        path.write_bytes(content)
        with pytest.raises(SettingsError, match="journal"):
            replay(path)
    with pytest.raises(SettingsError, match="cannot be read"):
        replay(tmp_path / "none")
    with pytest.raises(SettingsError, match="MAHE_MASTER_JOURNAL"):
        Journal(tmp_path / "no" / "folder", 1)


def test_a_journal_never_grows_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "JOURNAL_BYTES_MAX", 3_000)
    a_real_run(tmp_path / "journal")
    assert (tmp_path / "journal").stat().st_size <= 3_000
    assert run_replay(tmp_path / "journal") == 0
