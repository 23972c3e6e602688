"""INIT at the master: once a term, in a thread of its own; new runs wait for it, and for nothing else they must not."""

import json
import os
import shutil
import threading
import time
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.common.errors import DatasetError, MaheError
from services.common.learning import catalog
from services.common.protocol.codec import decode_to_console
from services.common.protocol.control import Command, CreateRun, Init, Subscribe
from services.common.protocol.messages import RunSpec
from services.master.core.coordinator import Coordinator
from services.master.shell import checks
from services.master.shell.bulletin import Bulletin
from services.master.shell.checks import Check
from services.master.shell.initialisation import HELD_MAX, HOLD_MS, Initialisation
from services.master.shell.mailbox import Mailbox
from services.master.tests.conftest import Peer, Running, console

FINE = Check("FINE", "ok", "all is well", {"n": 1})


@pytest.fixture
def operator(master: Running) -> Iterator[Peer]:
    peer = console(master)
    yield peer
    peer.close()


def ask(peer: Peer, command: Any, cmd_id: str) -> tuple[Any, dict[str, Any]]:
    peer.send(Command(cmd_id=cmd_id, command=command))
    while True:
        message, payload = decode_to_console(peer.frames())
        if message.t == "REPLY":
            return message, json.loads(bytes(payload or b"{}"))


def events_until(master: Running, text: str) -> list[Any]:
    """All events of the term, up to the first whose text begins so, as a console gets them that comes now."""
    peer = console(master)
    peer.send(Subscribe(term=1, after_seq=0))
    found: list[Any] = []
    while not found or not found[-1].text.startswith(text):
        message, _ = decode_to_console(peer.frames())
        if message.t == "EVENT":
            found.append(message)
    peer.close()
    return found


def test_a_term_has_it_once(master: Running, operator: Peer) -> None:
    first, answer = ask(operator, Init(), "command-1")
    assert (first.ok, answer["term"]) == (True, 1)
    events = [one for one in events_until(master, "ready (") if "init" in one.data]
    assert [one.data["code"] for one in events] == [
        *("BEGIN", "KERNELS", "DISK", "DATASETS", "ADDRESSES_LOCAL", "CLOCK", "READY"),
    ]
    assert [one.kind for one in events] == ["INIT", "INIT", "INIT", "INIT", "WARN", "INIT", "INIT"]
    assert events[1].data["tier"] in {"scalar", "avx2", "neon"}
    again, second = ask(operator, Init(), "command-2")
    assert again.ok
    assert second == {"term": 1, **events[-1].data["init"]}
    assert second["state"] == "done"
    assert [one["code"] for one in second["checks"]] == [one.data["code"] for one in events[1:-1]]
    ask(operator, CreateRun(spec=RunSpec(dataset="gauss3")), "command-3")
    codes = [one.data.get("code") for one in events_until(master, "run gauss3-1 is created")]
    assert codes.count("READY") == 1


def test_a_run_that_comes_first_begins_it_and_comes_after_it(master: Running, operator: Peer) -> None:
    made, answer = ask(operator, CreateRun(spec=RunSpec(dataset="gauss3")), "command-1")
    assert (made.ok, answer["run"]) == (True, "gauss3-1")
    texts = [one.text for one in events_until(master, "run gauss3-1 is created")]
    assert any(text.startswith("ready (warnings: 1") for text in texts)
    refused, _ = ask(operator, CreateRun(spec=RunSpec(dataset="cats")), "command-2")
    assert refused.code == "BAD_SPEC"


class Desk:
    """An Initialisation by itself, with a clock of its own and checks that wait until they may."""

    def __init__(self, **found: Check) -> None:
        self.now_ms = 0
        self.may = threading.Event()
        self.mailbox: Mailbox[Check] = Mailbox()
        self.bulletin = Bulletin(1, lambda kind, text: None, {}, Coordinator(1))
        looks = {name: lambda check=check: self._look(check) for name, check in found.items()}
        self.init = Initialisation(self.bulletin, looks, self.mailbox.put, lambda: self.now_ms)

    def _look(self, check: Check) -> Check:
        assert self.may.wait(10)
        return check

    def let(self) -> list[tuple[str, Any]]:
        """Let the checks be made, and take them; the commands that waited."""
        self.may.set()
        freed: list[tuple[str, Any]] = []
        deadline = time.monotonic() + 10
        while not self.init.done and time.monotonic() < deadline:
            for check in self.mailbox.drain():
                freed += self.init.take(check)
            time.sleep(0.01)
        self.init.stop()
        self.mailbox.close()
        return freed


def test_what_waits_is_freed_in_order_and_what_waits_too_long_is_refused() -> None:
    desk = Desk(disk=FINE, clock=FINE)
    assert desk.bulletin.snapshot(0)["init"] == {"state": "waiting", "checks": []}
    desk.init.hold("late", "a run")
    desk.now_ms = HOLD_MS - 1
    assert desk.init.overdue() == []
    desk.init.hold("second", "another")
    desk.init.hold("third", "one more")
    desk.now_ms = HOLD_MS
    [(cmd_id, error)] = desk.init.overdue()
    assert (cmd_id, error.code) == ("late", "NOT_READY")
    assert error.sentence == "INIT is not done, it still checks disk, clock; try again in a moment"
    assert desk.bulletin.snapshot(0)["init"]["state"] == "running"
    assert desk.let() == [("second", "another"), ("third", "one more")]
    assert desk.bulletin.snapshot(0)["init"]["state"] == "done"
    assert desk.init.overdue() == []
    desk.init.check()


def test_too_many_that_wait_are_refused_at_once() -> None:
    desk = Desk(disk=FINE)
    for number in range(HELD_MAX):
        desk.init.hold(str(number), "a run")
    with pytest.raises(MaheError, match="INIT is not done"):
        desk.init.hold("one more", "a run")
    assert len(desk.let()) == HELD_MAX


def test_only_what_blocks_keeps_runs_away() -> None:
    error = Check("DISK_UNWRITABLE", "error", "the disk is full")
    desk = Desk(disk=error)
    desk.init.begin()
    desk.let()
    desk.init.check()
    desk = Desk(kernels=Check("KERNELS_WRONG", "error", "a kernel differs", blocks=True), disk=error)
    desk.init.begin()
    desk.let()
    with pytest.raises(MaheError, match="INIT has found that a kernel differs") as refused:
        desk.init.check()
    assert refused.value.code == "NOT_READY"
    last = desk.bulletin.events[-1]
    assert (last.kind, last.text) == ("INIT", "ready (warnings: 0, errors: 2)")


def test_a_check_that_fails_by_itself_is_an_error() -> None:
    def bug() -> Check:
        raise ZeroDivisionError("by zero")

    def bad() -> Check:
        raise DatasetError("the bundled digits cannot be read")

    found = checks.looked("the clock", bug)
    assert (found.code, found.level) == ("CHECK_FAILED", "error")
    assert found.text == "the clock could not be checked (ZeroDivisionError: by zero); please report it"
    found = checks.looked("the data sets", bad)
    assert (found.code, found.level, found.text) == ("DATASET", "error", "the bundled digits cannot be read")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    found = checks.data_folder(tmp_path / "gone")
    assert (found.code, found.level, found.blocks) == ("DISK_UNWRITABLE", "error", False)
    assert "cannot be written (No such file or directory); free the disk" in found.text
    assert list(tmp_path.iterdir()) == []


def test_little_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "free")  # noqa: PYI024 - as shutil makes it
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(900 * 2**20))
    found = checks.data_folder(tmp_path)
    assert (found.code, found.level, found.values["free_mib"]) == ("DISK_LOW", "warn", 900)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "endpoints, advertised, code, level",
    [
        (["tcp://127.0.0.1:1"], False, "ADDRESSES_LOCAL", "warn"),
        (["tcp://127.0.0.1:1", "tcp://[::1]:1"], True, "ADDRESSES_LOCAL", "ok"),
        (["tcp://127.0.0.1:1", "tcp://192.0.2.1:1"], True, "ADDRESSES", "ok"),
    ],
)
def test_addresses(endpoints: list[str], advertised: bool, code: str, level: str) -> None:
    found = checks.addresses(endpoints, advertised=advertised)
    assert (found.code, found.level, found.values["endpoints"]) == (code, level, endpoints)


def test_a_clock_that_was_set_back(tmp_path: Path) -> None:
    (tmp_path / "master.sqlite").touch()
    assert checks.clock(tmp_path).code == "CLOCK"
    tomorrow = time.time() + 86_400
    os.utime(tmp_path / "master.sqlite", (tomorrow, tomorrow))
    found = checks.clock(tmp_path)
    assert (found.code, found.level) == ("CLOCK_BACK", "warn")
    assert 86_000 < found.values["behind_s"] <= 86_400


def test_the_data_sets_are_what_their_cards_say(monkeypatch: pytest.MonkeyPatch) -> None:
    found = checks.datasets()
    assert (found.code, found.values["count"]) == ("DATASETS", 4)
    cards = catalog()
    monkeypatch.setattr(checks, "catalog", lambda: [{**cards[0], "classes": 11}])
    with pytest.raises(DatasetError, match="digits is not what the catalog says"):
        checks.datasets()
