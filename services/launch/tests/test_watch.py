"""`mahe watch` and what goes with it, on a real cluster: restarts of the console, a terminal, scripts."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from services.launch import places
from services.launch.tests.terminal import TerminalSession
from services.launch.tests.test_display import harmless
from services.tests.system.cluster import Cluster, version

pytestmark = pytest.mark.system
MAHE = [sys.executable, "-m", "services"]
HOSTILE = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202ename"
ROUNDS = 20
SPEC: dict[str, Any] = {"dataset": "digits", "k_steps": 150, "batch": 32, "name": HOSTILE}  # rounds of 0.2 s or more


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAHE_")}
    kept = {name: value for name, value in kept.items() if name not in {"CI", "NO_COLOR", "COLUMNS", "LINES"}}
    return kept | {"MAHE_HOME": str(home), "TERM": "xterm", "PYTHONUTF8": "1"}


def mahe(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command with nobody at the terminal."""
    return subprocess.run(
        [*MAHE, *words], env=environment(home), capture_output=True, encoding="utf-8", check=False, timeout=50,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def watch(home: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*MAHE, "watch", *words], env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        encoding="utf-8", stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_a_console_killed_and_started_again_loses_no_round_and_repeats_none(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start(workers=1)
        run = cluster.run(**SPEC, rounds=ROUNDS)
        watchers = [watch(tmp_path), watch(tmp_path, run, "--json")]
        first = [read_until(watchers[0], r"^\[ROUND\]"), read_until(watchers[1], '"type": "round"')]
        cluster.kill("console")
        places.console_file(tmp_path / "console").unlink()
        seen = cluster.log("master").count("[ROUND]")
        cluster.until_log("master", f"round={seen + 5} ")
        cluster.start_console()  # on another port
        answers = [rest_of(one) for one in watchers]
        assert [one.returncode for one in watchers] == [0, 0], answers
        plain = [
            int(number) for number in re.findall(r"^\[ROUND\] round=(\d+) ", first[0] + answers[0][0], re.MULTILINE)
        ]
        assert plain == list(range(plain[0], ROUNDS + 1)), answers[0][0]
        assert plain[0] <= seen
        told = [json.loads(line) for line in (first[1] + answers[1][0]).splitlines()]
        numbers = [one["round"] for one in told if one["type"] == "round"]
        assert numbers == list(range(numbers[0], ROUNDS + 1))
        rows = {row["round"]: row["eval_loss"] for row in cluster.api.rounds(run)}  # None: a newer version was ready
        assert all(one["eval_loss"] == rows[one["round"]] for one in told if one["type"] == "round")
        assert any(one["type"] == "state" for one in told)
        assert (told[-1]["type"], told[-1]["finished"]) == ("end", True)
        assert Path(told[-1]["checkpoint"]).is_file()
        assert re.search(r"^\[WAIT\] the console at .* does not answer", answers[0][1], re.MULTILINE), answers[0][1]
        assert all(harmless(text) for pair in answers for text in pair)
        assert re.search(r"^\[WATCH\] the best is version \d+; its checkpoint: .*npz$", answers[0][0], re.MULTILINE)
        check_runs(tmp_path, run, rounds=ROUNDS)


def check_runs(home: Path, run: str, *, rounds: int) -> None:
    """What `mahe runs` tells of a run that has finished."""
    listed = json.loads(mahe(home, "runs", "--json").stdout)["runs"]
    assert [(one["id"], one["version"], one["finished"]) for one in listed] == [(run, rounds, True)]
    assert listed[0]["best"]["loss"] <= listed[0]["last"]["loss"]
    whole = mahe(home, "runs", run)
    assert whole.returncode == 0, whole.stderr
    assert harmless(whole.stdout)
    assert re.search(r"^k_steps +150$", whole.stdout, re.MULTILINE)
    table = mahe(home, "runs").stdout
    assert re.search(rf"^{run} +digits +FINISHED +{rounds}/{rounds} +0\.\d+", table, re.MULTILINE), table


def rest_of(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it still says, to its end; `communicate` would lose what was read ahead with the lines before."""
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        said = process.stdout.read(), process.stderr.read()
        process.wait(50)
    return said


def read_until(process: subprocess.Popen[str], pattern: str) -> str:
    """The lines up to the first that matches."""
    assert process.stdout is not None
    lines = ""
    for line in process.stdout:
        lines += line
        if re.search(pattern, line):
            return lines
    raise AssertionError(lines)


def test_a_terminal_has_a_bar_and_asks_before_it_stops(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.start_master()
        cluster.start_console()
        started = mahe(
            tmp_path,
            "start",
            "--rounds",
            "5000",
            "--patience",
            "0",
            "--dataset",
            "rings4",
            "--name",
            HOSTILE,
            "--no-watch",
            "--json",
        )
        run = json.loads(started.stdout)["run"]
        seen = TerminalSession([*MAHE, "watch"], environment(tmp_path))
        seen.until(rf"\r{run} \[\.+\] 0/5000  WAITING: 0 of 1 workers; start one more")
        cluster.start_worker("worker-1", MAHE_WORKER_NAME=HOSTILE)
        seen.until(rf"\r{run} \[\.+\] \d+/5000  loss \d\.\d+  accuracy \d\.\d+  .*1 worker")
        seen.type("\x03")
        assert seen.end() == 130
        assert "[WATCH] no longer watched; the run goes on" in seen.shown
        assert "[ROUND]" not in seen.shown
        assert harmless(seen.shown)
        before = version(cluster.api.snapshot())
        cluster.until(lambda state: version(state) > before, "the run to go on")
        status = mahe(tmp_path, "status")
        assert harmless(status.stdout)
        assert f"run {run}: RUNNING, round " in status.stdout
        paused = mahe(tmp_path, "pause", "--json")
        assert json.loads(paused.stdout)["phase"] == "PAUSED", paused.stderr
        resumed = mahe(tmp_path, "resume", run)
        assert resumed.stdout.startswith(f"[RESUME] run {run}: RUNNING"), resumed.stderr
        refused = mahe(tmp_path, "stop")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"mahe stop {run} --yes" in refused.stderr
        assert "goes on" in stop(tmp_path, "n", code=1)
        stopped = stop(tmp_path, "y", code=0)
        assert re.search(rf"\[STOP\] run {run}: STOPPED, round \d+ of 5000", stopped), stopped
        assert mahe(tmp_path, "watch", run).returncode == 1


def stop(home: Path, answer: str, *, code: int) -> str:
    """Ask for it at a terminal; what is shown."""
    asking = TerminalSession([*MAHE, "stop"], environment(home))
    asking.until(r"for good\? Its checkpoints stay\. \[y/N\]")
    asking.type(f"{answer}\n")
    assert asking.end() == code, asking.shown
    return asking.shown
