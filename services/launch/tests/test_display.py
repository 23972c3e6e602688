"""How a followed run looks, and that nothing from outside reaches the terminal raw."""

import io
import json

import pytest

from services.launch import display, lines
from services.launch.display import Bar, JsonLines, Lines, bar, workers_text
from services.launch.summary import RunSummary, run_of

HOSTILE = "a\x1b]0;owned\x07\x1b[31m\x9b2J\u202eb\r\nc"
CLEAN = "a]0;owned[31m2Jbc"


def run(**changes: object) -> RunSummary:
    facts = {"id": "digits-1", "phase": "RUNNING", "version": 3, "rounds_total": 12, "rounds_per_minute": 6.0}
    last = {"version": 3, "loss": 0.25, "accuracy": 0.5}
    return run_of({**facts, "last_eval": last, "reason": "", **changes})


def harmless(text: str) -> bool:
    return not any(ord(one) < 32 or 127 <= ord(one) < 160 or one == "\u202e" for one in text if one not in "\r\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Both outputs are one terminal, until the test ends. Not a fixture: pytest puts its own outputs after those."""
    made = Terminal()
    for name in ("CI", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(f"sys.{name}", made)
    return made


def test_the_bar_says_how_far_and_how_long() -> None:
    text = "digits-1 [######..................] 3/12  loss 0.2500  accuracy 0.5000  1:30 min left  2 workers"
    assert bar(run(), "2 workers", "", 200) == text
    assert bar(run(version=12), "2 workers", "", 36) == "digits-1 [############] 12/12  lo..."


def test_the_bar_says_what_is_waited_for() -> None:
    waiting = run(phase="WAITING", reason="1 of 2 workers; start one more")
    assert bar(waiting, "1 worker", "", 200).endswith("3/12  WAITING: 1 of 2 workers; start one more")
    assert bar(run(), "", "the console does not answer", 200).endswith("3/12  the console does not answer")
    assert bar(run(finished=True, phase="STOPPED"), "", "", 200).endswith("3/12  FINISHED")


@pytest.mark.parametrize("width", [0, 1, 10, 40, 79, 120])
def test_the_bar_never_needs_more_columns_than_there_are(width: int) -> None:
    waiting = run(phase="WAITING", reason=f"等待机器 {HOSTILE} " * 20)
    text = bar(waiting, "1 worker", "", width)
    assert lines.columns(text) <= width
    assert harmless(text)


def test_lines_go_above_the_bar_and_it_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_terminal(monkeypatch)
    shown = display.display(as_json=False)
    assert isinstance(shown, Bar)
    shown.state(run(), "2 workers", "")
    shown.round("digits-1", {"round": 4}, "round=4")
    shown.line("WARN", HOSTILE)
    shown.close()
    said = terminal.getvalue()
    text = bar(run(), "2 workers", "", 79)
    assert said == f"\r{text}\r{' ' * len(text)}\r[WARN] {CLEAN}\n\r{text}\n"


@pytest.mark.parametrize("why", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"CI": "true"}])
def test_no_bar_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch, why: dict[str, str]) -> None:
    at_terminal(monkeypatch)
    assert isinstance(display.display(as_json=False), Bar)
    for name, value in why.items():
        monkeypatch.setenv(name, value)
    assert isinstance(display.display(as_json=False), Lines)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_no_bar_without_a_terminal(monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    at_terminal(monkeypatch)
    monkeypatch.setattr(f"sys.{stream}", io.StringIO())
    assert isinstance(display.display(as_json=False), Lines)


def test_lines_say_once_why_nothing_comes(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Lines()
    for trouble in ("", HOSTILE, HOSTILE, "", HOSTILE):
        shown.state(run(), "", trouble)
    shown.round("digits-1", {}, "round=1 workers=2")
    said = capsys.readouterr()
    assert said.err == f"[WAIT] {CLEAN}\n" * 2
    assert said.out == "[ROUND] round=1 workers=2\n"


def test_json_is_one_object_a_line_and_a_state_only_when_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    shown = JsonLines()
    for changes in ({}, {"version": 4}, {"phase": "WAITING", "reason": HOSTILE}):
        shown.state(run(**changes), "2 workers", "")
    shown.round("digits-1", {"round": 4, "eval_loss": 0.5, "surplus": 1}, "round=4")
    shown.line("WARN", HOSTILE)
    said = capsys.readouterr().out
    assert harmless(said.replace("\n", ""))
    first, second, third, fourth = map(json.loads, said.splitlines())
    assert (first["type"], first["phase"], first["version"]) == ("state", "RUNNING", 3)
    assert (second["phase"], second["reason"]) == ("WAITING", HOSTILE)
    assert third == {
        "type": "round", "run": "digits-1", "round": 4, "workers": None, "train_loss": None, "eval_loss": 0.5,
        "eval_accuracy": None, "samples": None, "bytes": None, "seconds": None,
    }  # fmt: skip
    assert fourth == {"type": "line", "kind": "WARN", "text": HOSTILE}


def test_workers_are_counted_as_they_can_be_reached() -> None:
    here, lost = {"link": "LINKED"}, {"link": "LOST"}
    assert [workers_text(found) for found in ([], [here], [here, here], [here, lost])] == [
        "0 workers", "1 worker", "2 workers", "1 of 2 workers",
    ]  # fmt: skip


def test_a_table_is_aligned_and_clean(capsys: pytest.CaptureFixture[str]) -> None:
    lines.show_table([["RUN", "NAME"], ["a", "数字"], [HOSTILE, "x"]])
    assert capsys.readouterr().out.splitlines() == [
        f"RUN{' ' * (len(CLEAN) - 3)}  NAME", f"a{' ' * (len(CLEAN) - 1)}  数字", f"{CLEAN}  x",
    ]  # fmt: skip
