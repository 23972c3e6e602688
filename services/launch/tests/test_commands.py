"""`mahe status`, `runs`, `stop` and their like against a console that answers as it is told."""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from services.__main__ import main
from services.common.errors import MaheError
from services.launch import exits, steer
from services.launch.display import ROUND_FIELDS
from services.launch.summary import RunSummary, WorkerSummary
from services.launch.tests.fake_console import FakeConsole, serving
from services.launch.tests.test_display import CLEAN, HOSTILE, Terminal, harmless

DOCS = Path(__file__).parents[3] / "docs"
STATE, RUNS, RUN = "/api/v1/state", "/api/v1/runs", "/api/v1/runs/digits-2"
LIVE = {"state": "live", "since_ms": 1_796_000_000_000, "reason": ""}
EVALUATION = {"version": 3, "loss": 0.25, "accuracy": 0.5}


def run(**changes: Any) -> dict[str, Any]:
    return {
        "id": "digits-2", "name": HOSTILE, "spec": {"name": HOSTILE, "dataset": "digits", "rounds": 12, "seed": 7},
        "phase": "RUNNING", "reason": HOSTILE, "finished": False, "version": 3, "rounds_total": 12,
        "rounds_per_minute": 6.0, "last_eval": EVALUATION, "best_eval": EVALUATION, "created_at_ms": 1_796_000_000_000,
        "number": 2, **changes,
    }  # fmt: skip


WORKER = {
    "id": "w1", "name": HOSTILE, "link": "LINKED", "agent": "training", "owner": "", "reason": HOSTILE,
    "samples_per_s": 9.5, "accepted_rounds": 3, "samples_total": 70, "quarantined": False, "surplus": 1,
}  # fmt: skip


@pytest.fixture
def console(mahe_home: Path) -> Iterator[FakeConsole]:
    """It shows one run and one worker, both with names that a terminal should not obey."""
    with serving() as told:
        told.write_link(mahe_home)
        told.answers |= {
            STATE: {"link": LIVE, "snapshot": {"run": run(), "workers": [WORKER], "history": []}},
            RUNS: {"items": [run()]},
            RUN: run(),
            f"{RUN}/checkpoints": {
                "items": [{"round": 3, "best": True, "bytes": 9, "sha256": "ab", "path": f"/x/{HOSTILE}.npz"}]
            },
        }
        yield told


def shows(console: FakeConsole, **changes: Any) -> None:
    console.answers[STATE]["snapshot"].update(changes)


def test_the_status_for_people(console: FakeConsole, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"[STATUS] the page: {console.url}",
        f"[STATUS] run digits-2: RUNNING, round 3 of 12, accuracy 0.5000 after round 3, about 1:30 min left ({CLEAN})",
        f"[STATUS] worker {CLEAN}: LINKED, training: {CLEAN}; 3 rounds, 70 samples",
    ]  # fmt: skip


def test_the_status_where_nothing_runs(console: FakeConsole, capsys: pytest.CaptureFixture[str]) -> None:
    shows(console, run=None, workers=[])
    assert main(["status"]) == 0
    said = capsys.readouterr().out
    assert "no run; to start one: mahe start" in said
    assert "no worker; to let this PC work: mahe worker" in said
    assert main(["status", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["run"], told["workers"]) == (None, [])


def test_the_status_without_a_master_says_since_when(console: FakeConsole, capsys: pytest.CaptureFixture[str]) -> None:
    console.answers[STATE] = {"link": {**LIVE, "state": "stale", "reason": "no word"}, "snapshot": None}
    assert main(["status"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"the master does not answer since 2026-\d\d-\d\d \d\d:\d\d: no word", said)
    assert "no run" not in said


def names(one: type[Any]) -> set[str]:
    return {field.name for field in fields(one)}


@pytest.mark.usefixtures("console")
def test_the_status_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--json"]) == 0
    said = capsys.readouterr().out
    assert harmless(said)
    told = json.loads(said)
    assert set(told) == {"console", "master", "run", "workers"}
    assert set(told["run"]) == names(RunSummary)
    assert set(told["workers"][0]) == names(WorkerSummary)
    assert told["run"]["last"] == EVALUATION
    assert told["run"]["name"] == HOSTILE


@pytest.mark.usefixtures("console")
def test_the_link_as_json(capsys: pytest.CaptureFixture[str], console: FakeConsole) -> None:
    assert main(["open", "--no-browser", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"url": console.url}


def test_runs_in_a_table(console: FakeConsole, capsys: pytest.CaptureFixture[str]) -> None:
    """The current run as the state tells it; how far an earlier one came is read from its rounds, page by page."""
    earlier = {name: value for name, value in run().items() if name in {"spec", "phase", "created_at_ms"}}
    console.answers[RUNS] = {"items": [run(version=0), {**earlier, "id": "digits-1", "number": 1, "phase": "STOPPED"}]}
    losses = [None, 0.5, 0.25, 0.375]
    rows = [{"round": at, "eval_loss": loss, "eval_accuracy": loss} for at, loss in enumerate(losses, 1)]
    console.answers[f"{RUNS}/digits-1/rounds?limit=500"] = {"items": rows[:2], "next_cursor": "two"}
    console.answers[f"{RUNS}/digits-1/rounds?cursor=two&limit=500"] = {"items": rows[2:], "next_cursor": None}
    assert main(["runs"]) == 0
    said = [re.sub(r" +", " ", line) for line in capsys.readouterr().out.splitlines()]
    assert said[0] == "RUN DATA SET PHASE ROUNDS BEST LOSS BEST ACC LAST LOSS LAST ACC CREATED"
    assert said[1].startswith("digits-2 digits RUNNING 3/12 0.2500 0.5000 0.2500 0.5000 2026-")
    assert said[2].startswith("digits-1 digits STOPPED 4/12 0.2500 0.2500 0.3750 0.3750 2026-")


def test_so_many_runs_as_were_asked_for(console: FakeConsole, capsys: pytest.CaptureFixture[str]) -> None:
    pages = [[run(id=f"r-{number}", number=number) for number in range(top, top - 500, -1)] for top in (1000, 500)]
    console.answers[f"{RUNS}?limit=500"] = {"items": pages[0], "next_cursor": "more"}
    console.answers[f"{RUNS}?cursor=more&limit=3"] = {"items": pages[1][:3], "next_cursor": None}
    assert main(["runs", "--limit", "503", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in told["runs"]] == [f"r-{number}" for number in range(1000, 497, -1)]
    assert set(told["runs"][0]) == names(RunSummary)


def test_no_run_yet(console: FakeConsole, capsys: pytest.CaptureFixture[str]) -> None:
    console.answers[RUNS] = {"items": []}
    assert main(["runs"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err[:18]) == ("", "[RUNS] no run yet;")
    assert main(["runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"runs": []}


@pytest.mark.usefixtures("console")
def test_one_run_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "digits-2"]) == 0
    said = capsys.readouterr().out
    assert harmless(said.replace("\n", ""))
    assert re.search(r"^best +round 3: loss 0.2500, accuracy 0.5000$", said, re.MULTILINE)
    assert re.search(r"^seed +7$", said, re.MULTILINE)
    assert f"3           best  9      /x/{CLEAN}.npz" in said
    assert main(["runs", "digits-2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told) == {*names(RunSummary), "settings", "checkpoints"}
    assert set(told["checkpoints"][0]) == {"round", "best", "bytes", "sha256", "path"}


@pytest.mark.usefixtures("console")
@pytest.mark.parametrize("words", ["runs", "watch", "pause", "stop --yes"])
def test_a_run_that_is_not_there(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words.split(), f"../{HOSTILE}"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "[ERROR] there is no such run\n")


@pytest.mark.parametrize("words", ["watch", "stop --yes", "resume"])
def test_without_a_run_it_says_how_to_start_one(
    console: FakeConsole, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shows(console, run=None)
    assert main(words.split()) == 1
    assert "to start one: mahe start" in capsys.readouterr().err


def asked(console: FakeConsole) -> list[str]:
    return [path for method, path, _ in console.asked if method == "POST"]


@pytest.mark.parametrize(("action", "phase"), [("stop", "STOPPED"), ("pause", "PAUSED"), ("resume", "RUNNING")])
def test_what_an_operator_does(
    console: FakeConsole, action: str, phase: str, capsys: pytest.CaptureFixture[str]
) -> None:
    console.answers[f"{RUN}/{action}"] = 202, {"run": "digits-2"}
    console.answers[RUN] = run(phase=phase, reason="by the operator")
    words = [action, "--yes"] if action == "stop" else [action]
    assert main(words) == 0
    assert asked(console) == [f"{RUN}/{action}"]
    said = capsys.readouterr().out
    assert said.startswith(f"[{action.upper()}] run digits-2: {phase}, round 3 of 12")
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["phase"] == phase


def test_a_refusal_is_told_as_it_is(console: FakeConsole, capsys: pytest.CaptureFixture[str]) -> None:
    console.answers[f"{RUN}/pause"] = 409, {"code": "RUN_NOT_IN_PHASE", "detail": "it is PAUSED; nothing to pause"}
    assert main(["pause"]) == 1
    assert capsys.readouterr().err == "[ERROR] it is PAUSED; nothing to pause\n"


def test_what_takes_long_is_done_all_the_same(console: FakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steer, "SETTLE_S", 0.2)
    console.answers[f"{RUN}/stop"] = 202, {"run": "digits-2"}
    assert main(["stop", "--yes"]) == 0


def test_with_nobody_to_ask_stop_names_the_flag(
    console: FakeConsole, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert main(["stop"]) == 2
    assert capsys.readouterr().err.endswith(
        "nobody is here to ask; to do it without asking: mahe stop digits-2 --yes\n"
    )
    assert asked(console) == []


@pytest.mark.parametrize(("text", "code"), [("y\n", 0), ("YES\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_stop_asks(
    console: FakeConsole, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, code: int
) -> None:
    console.answers[f"{RUN}/stop"] = 202, {"run": "digits-2"}
    monkeypatch.setattr("sys.stdin", Terminal(text))
    monkeypatch.setattr(steer, "SETTLE_S", 0.0)
    assert main(["stop", "digits-2"]) == code
    assert asked(console) == [f"{RUN}/stop"] * (code == 0)
    said = capsys.readouterr()
    assert said.err.startswith("Stop run digits-2: RUNNING, round 3 of 12")
    assert harmless(said.err.replace("\n", ""))
    assert ("goes on" in said.err) == (code == 1)


def test_what_has_ended_is_not_stopped(console: FakeConsole, capsys: pytest.CaptureFixture[str]) -> None:
    shows(console, run=run(phase="STOPPED", finished=True))
    assert main(["stop", "--yes"]) == 1
    assert capsys.readouterr().err == "[ERROR] run digits-2 has ended already: FINISHED\n"
    assert asked(console) == []


def test_a_run_that_has_ended_is_not_waited_for(console: FakeConsole, capsys: pytest.CaptureFixture[str]) -> None:
    console.answers[f"{RUN}/rounds"] = {"items": [], "next_cursor": None}
    shows(console, run=run(phase="STOPPED", finished=True, reason="all 12 rounds"))
    assert main(["watch", "--json"]) == 0
    shown, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert (shown["type"], shown["finished"]) == ("state", True)
    assert end == {
        "type": "end", "run": "digits-2", "finished": True, "reason": "all 12 rounds", "loss": 0.25, "accuracy": 0.5,
        "checkpoint": f"/x/{HOSTILE}.npz",
    }  # fmt: skip
    shows(console, run=run(phase="FAILED", reason="the disk is full"))
    assert main(["watch"]) == 1
    assert "the run did not finish: the disk is full" in capsys.readouterr().err


def test_the_presets_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["start", "--list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [set(one) for one in told["presets"]] == [{"id", "title", "sentence", "sets"}] * 4


def test_a_console_without_its_master_is_not_reachable() -> None:
    assert exits.exit_of(MaheError("", code="MASTER_UNREACHABLE")) == exits.NOT_REACHABLE
    assert exits.exit_of(MaheError("", code="BAD_SPEC")) == exits.FAILED


def documented(text: str, name: str) -> set[str]:
    """The fields in the row of the table of JSON."""
    found = re.search(rf"^\| {re.escape(name)} \| (.*) \|$", text, re.MULTILINE)
    assert found is not None, name
    return set(re.findall(r"`(\w+)`", found[1]))


@pytest.mark.parametrize("file", ["USER_GUIDE.md", "USER_GUIDE.zh-CN.md"])
def test_the_guide_has_every_exit_code(file: str) -> None:
    text = (DOCS / file).read_text("utf-8")
    codes = re.findall(r"^\| (\d+) \| (.*?) \|", text, re.MULTILINE)
    assert [int(code) for code, _ in codes if len(code) < 4] == list(exits.MEANING)
    if file == "USER_GUIDE.md":
        assert {int(code): meaning for code, meaning in codes if len(code) < 4} == exits.MEANING


@pytest.mark.parametrize("file", ["SCRIPTS.md", "USER_GUIDE.zh-CN.md"])
def test_every_field_of_the_json_is_documented(file: str) -> None:
    text = (DOCS / file).read_text("utf-8")
    assert documented(text, "*run*") == names(RunSummary)
    assert documented(text, "*worker*") == names(WorkerSummary)
    assert documented(text, '`"type": "round"`') == {"type", "run", *ROUND_FIELDS}
