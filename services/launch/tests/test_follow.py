"""Following a run through a console that tells, answer by answer, what became of it."""

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from services.common.errors import MaheError
from services.launch import follow
from services.launch.console_client import RESYNC, Event, Link
from services.launch.display import Lines
from services.launch.ending import Ending
from services.launch.follow import Follower


class Console:
    """What it says of the current run next; and of ended ones, by id."""

    def __init__(self) -> None:
        self.run: dict[str, Any] | None = None
        self.queue: list[dict[str, Any]] = []
        self.ended: dict[str, dict[str, Any]] = {}
        self.rounds: list[dict[str, Any]] = []

    def answer(self, path: str) -> dict[str, Any]:
        if path == "/api/v1/state":
            return {"snapshot": {"run": self.run, "queue": self.queue}, "link": {"state": "live"}}
        if "/rounds?" in path:
            return {"items": self.rounds, "next_cursor": None}
        return self.ended.get(path.rpartition("/")[2], {"code": "RUN_UNKNOWN", "detail": "there is no such run"})


@pytest.fixture
def console() -> Console:
    return Console()


@pytest.fixture
def follower(console: Console) -> Iterator[Follower]:
    """A follower of run r-1 at that console."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = console.answer(self.path)
            self.send_response(404 if "code" in body else 200)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 its name upstream
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        link = Link(f"http://127.0.0.1:{server.server_port}", "t")
        yield Follower(link, "r-1", lambda: None, Lines(), attended=False)
        server.shutdown()
        thread.join()


def run(name: str, phase: str = "RUNNING", **more: Any) -> dict[str, Any]:
    return {"id": name, "phase": phase, "version": 3, "rounds_total": 3, "reason": "", **more}


def test_a_run_that_goes_on_has_no_ending_yet(console: Console, follower: Follower) -> None:
    for shown in (None, run("r-0", "STOPPED"), run("r-1")):  # the console may show the last run a little longer
        console.run = shown
        assert follower._look() is None


def test_a_run_that_waits_for_another_is_waited_for(
    console: Console, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "UNSEEN_S", -1.0)
    console.run, console.queue = run("r-0"), [{"id": "r-1"}]
    assert follower._look() is None
    console.run, console.queue = run("r-1", "STOPPED", reason="all 3 rounds", finished=True, version=0), []
    ending = follower._look()
    assert ending is not None
    assert ending.finished


@pytest.mark.parametrize(
    ("attended", "advice"), [(True, "watch that one on the page"), (False, "start the demo again with --stay")]
)
def test_a_run_replaced_by_another_ends_with_a_sentence(
    console: Console, follower: Follower, attended: bool, advice: str
) -> None:
    follower._attended = attended
    console.run = run("r-1")
    assert follower._look() is None
    console.run = run("r-2")
    console.ended["r-1"] = run("r-1", "STOPPED", reason="stopped by the operator", finished=False)
    ending = follower._look()
    assert ending is not None
    assert not ending.finished
    assert ending.reason.startswith(f"run r-1 was replaced by run r-2; {advice}")


def test_a_run_that_had_finished_when_it_was_replaced_has_finished(console: Console, follower: Follower) -> None:
    console.run = run("r-1")
    assert follower._look() is None
    console.run = run("r-2")
    console.ended["r-1"] = run("r-1", "STOPPED", reason="all 3 rounds", finished=True)
    ending = follower._look()
    assert ending is not None
    assert ending.finished


def test_the_last_evaluation_that_was_seen_is_kept(console: Console, follower: Follower) -> None:
    """It has ended and its last evaluation is waited for: then another run begins."""
    seen = {"loss": 0.3, "accuracy": 0.9, "version": 2}
    console.run = run("r-1", "STOPPED", reason="all 3 rounds", finished=True, last_eval=seen)
    assert follower._look() is None
    console.run = run("r-2")
    assert follower._look() == Ending(True, "all 3 rounds", 0.3, 0.9)


def test_a_replaced_run_that_the_console_does_not_know(console: Console, follower: Follower) -> None:
    console.run = run("r-1")
    assert follower._look() is None
    console.run = run("r-2")
    ending = follower._look()
    assert ending is not None
    assert "run r-1 was replaced by run r-2" in ending.reason
    assert not ending.finished


def test_a_run_that_never_appears_is_not_waited_for_without_end(
    console: Console, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "UNSEEN_S", -1.0)
    with pytest.raises(MaheError, match="the console does not show run r-1") as caught:
        follower._look()
    assert caught.value.code == "RUN_LOST"
    console.run = run("r-0")
    ending = follower._look()
    assert ending is not None
    assert "run r-1 was replaced by run r-0" in ending.reason


def test_a_run_that_waits_for_its_turn_is_waited_for(
    console: Console, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "UNSEEN_S", -1.0)
    console.run = run("r-0")
    console.ended["r-1"] = run("r-1", "QUEUED", reason="second in the queue")
    assert [follower._look() for _ in range(3)] == [None, None, None]


def row(number: int) -> dict[str, Any]:
    return {"round": number, "workers": 2, "eval_loss": 0.5, "eval_accuracy": 0.75}


def rounds_of(capsys: pytest.CaptureFixture[str]) -> list[int]:
    return [int(line.split("=")[1].split()[0]) for line in capsys.readouterr().out.splitlines() if "[ROUND]" in line]


def test_rounds_of_another_run_are_not_shown(follower: Follower, capsys: pytest.CaptureFixture[str]) -> None:
    for kind, data in (("ROUND", row(9)), ("RUN", {"id": "r-1"}), ("ROUND", row(1)), ("RUN", {"id": "r-2"})):
        follower._show(Event(kind, f"{kind} of a run", data))
    follower._show(Event("ROUND", "", row(2)))
    said = capsys.readouterr().out.splitlines()
    assert said == ["[RUN] RUN of a run", "[ROUND] ROUND of a run"]


def test_what_the_events_lost_is_read_from_the_list(
    console: Console, follower: Follower, capsys: pytest.CaptureFixture[str]
) -> None:
    follower._show(Event("RUN", "", {"id": "r-1"}))
    follower._show(Event("ROUND", "", row(1)))
    follower._show(Event(RESYNC, "", {}))
    console.run = run("r-1")
    console.rounds = [row(number) for number in (1, 2, 3)]
    assert follower._look() is None
    follower._show(Event("ROUND", "", row(3)))
    follower._show(Event("ROUND", "", row(4)))
    assert rounds_of(capsys) == [1, 2, 3, 4]
    console.rounds += [row(4), row(5)]  # and no event of it
    console.run = run("r-1", "STOPPED", finished=True, last_eval={"loss": 0.5, "accuracy": 0.75, "version": 3})
    assert follower._look() is not None
    assert rounds_of(capsys) == [5]


def test_a_console_that_is_away_is_waited_for_but_not_without_end(
    follower: Follower, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    follower._link = Link("http://127.0.0.1:9", "t")
    assert follower._look() is None
    assert capsys.readouterr().err.startswith("[WAIT] the console at http://127.0.0.1:9 does not answer")
    monkeypatch.setattr(follow, "LINK_LOST_S", -1.0)
    with pytest.raises(MaheError, match="does not answer"):
        follower._look()
