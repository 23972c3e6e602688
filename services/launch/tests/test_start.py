"""`mahe start`: what it asks of the console, what it says, and one run for real."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from services import __main__ as command
from services.common.errors import MaheError, SettingsError
from services.common.protocol.encodings import ENCODINGS
from services.common.protocol.presets import PRESETS
from services.common.protocol.spec import RunSpec
from services.launch import command_line
from services.launch.start import StartOptions, create, read_spec, request_of
from services.launch.tests.conftest import gone, until
from services.launch.tests.fake_console import FakeConsole, serving
from services.launch.tests.test_demo import processes_of, read_until
from services.launch.tests.test_demo import start as launch

RUNS = "/api/v1/runs"


@pytest.fixture
def console(mahe_home: Path) -> Iterator[FakeConsole]:
    """It is found as that of `mahe up` is found."""
    with serving() as told:
        told.write_link(mahe_home)
        told.answers[RUNS] = {"run": "digits-1", "warnings": []}
        yield told


def options(spec: str | None = None, **fields: Any) -> StartOptions:
    return StartOptions(fields=fields, spec=spec, watch=False, as_json=False)


def test_the_command_line_knows_what_the_run_allows() -> None:
    fields = RunSpec.model_fields
    assert tuple(PRESETS) == command_line.PRESETS
    assert command_line.ENCODINGS == ENCODINGS
    assert get_args(fields["aggregator"].annotation) == command_line.AGGREGATORS
    assert get_args(fields["balance"].annotation) == command_line.BALANCES
    assert get_args(fields["rounds_in_flight"].annotation) == command_line.IN_FLIGHT
    assert {*command_line.START_FIELDS} == {*fields, "preset"} - {"model"}, "a model is data, for --spec"


def test_only_what_is_given_is_asked_for() -> None:
    given = options(dataset="builtin:rings4", rounds=5, batch=None, outer="nesterov", inner="adamw", preset=None)
    assert request_of(given) == {
        "name": "rings4", "dataset": "builtin:rings4", "preset": "standard", "rounds": 5,
        "outer": {"name": "nesterov"}, "inner": {"name": "adamw"},
    }  # fmt: skip
    assert request_of(options()) == {"name": "digits", "dataset": "digits", "preset": "standard"}


def test_every_field_of_a_run_can_be_said(console: FakeConsole) -> None:
    words = "--minutes-max 1.5 --patience 0 --min-workers 2 --no-k-auto --k-steps-max 9 --units 3 --clip 2 --trim 2"
    more = "--rounds-in-flight 2 --seed 0 --k-steps 5 --batch 16 --dataset gauss3 --name Nacht --preset quick"
    assert command.main(["start", *words.split(), *more.split(), "--no-watch"]) == 0
    assert console.asked[-1][2] == {
        "minutes_max": 1.5, "patience": 0, "min_workers": 2, "k_auto": False, "k_steps_max": 9, "units": 3,
        "clip": 2.0, "trim": 2, "rounds_in_flight": 2, "seed": 0, "k_steps": 5, "batch": 16, "dataset": "gauss3",
        "name": "Nacht", "preset": "quick",
    }  # fmt: skip


def test_a_file_is_the_request_and_options_win_over_it(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text('{"dataset": "spiral3", "rounds": 9, "outer": {"name": "nesterov", "mu": 0.8}}')
    assert request_of(options(str(file), rounds=4)) == json.loads(file.read_text()) | {"rounds": 4}


@pytest.mark.parametrize(("text", "wrong"), [("{", "is not JSON"), ("[1]", r"holds \[1\]"), (None, "cannot be read")])
def test_a_file_that_is_none_is_named_with_what_is_wanted(tmp_path: Path, text: str | None, wrong: str) -> None:
    file = tmp_path / "run.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SettingsError, match=f"--spec .*run.json {wrong}.*; give a file with a JSON object"):
        read_spec(file)


@pytest.mark.usefixtures("mahe_home")
def test_the_list_needs_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["start", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(PRESETS)
    assert all(line.endswith(".") for line in lines)


@pytest.mark.usefixtures("mahe_home")
def test_without_a_cluster_it_is_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["start"]) == 3
    assert "start one with: mahe up" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["--preset fast", "--encoding int9", "--outer adam", "--rounds 0", "--balance odd"])
def test_a_word_that_is_not_there_is_wrong_usage(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(["start", *words.split()])
    assert end.value.code == 2
    assert words.split(maxsplit=1)[0] in capsys.readouterr().err


def test_detached_it_says_id_sentence_and_warnings(console: FakeConsole, capsys: pytest.CaptureFixture[str]) -> None:
    warnings = ["outer momentum 0.9 needs about 100 rounds"]
    console.answers[RUNS] = {"run": "digits-4", "warnings": warnings}
    assert command.main(["start", "--preset", "long", "--rounds", "20", "--no-watch"]) == 0
    asked = {"name": "digits", "dataset": "digits", "preset": "long", "rounds": 20}
    assert console.asked[-1] == ("POST", RUNS, asked)
    captured = capsys.readouterr()
    said, told = captured.out.splitlines(), captured.err.splitlines()
    assert said[0] == "[START] run digits-4 is started"
    assert said[1].startswith("[START] Long: Hundreds of short rounds")
    assert told[0] == "[WARN] run digits-4: outer momentum 0.9 needs about 100 rounds"
    assert "mahe watch" in told[1]
    assert command.main(["start", "--no-watch", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "type": "started",
        "run": "digits-4",
        "position": None,
        "warnings": warnings,
    }


def test_a_run_that_has_to_wait_is_said_to(console: FakeConsole, capsys: pytest.CaptureFixture[str]) -> None:
    console.answers[RUNS] = 201, {"run": "digits-4", "warnings": [], "position": 2}
    assert command.main(["start", "--no-watch"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "[START] run digits-4 waits in the queue, position 2"


def test_what_is_refused_ends_with_what_to_do(console: FakeConsole, capsys: pytest.CaptureFixture[str]) -> None:
    console.answers[RUNS] = 422, {"code": "BAD_SPEC", "detail": "field dataset is 'cats', allowed are digits, gauss3"}
    assert command.main(["start", "--dataset", "cats"]) == 1
    assert capsys.readouterr().err.endswith(
        "field dataset is 'cats', allowed are digits, gauss3; correct it and start again; "
        "mahe start --help lists the options\n"
    )


def test_another_refusal_is_told_as_it_is() -> None:
    class Busy:
        def post(self, path: str, body: dict[str, Any]) -> Any:
            raise MaheError(f"{path}: 20 runs wait already; stop one of them", code="QUEUE_FULL")

    link: Any = Busy()
    with pytest.raises(MaheError, match=r"stop one of them$"):
        create(link, {}, as_json=False)


@pytest.mark.system
def test_a_run_is_followed_to_its_end(mahe_home: Path) -> None:
    up = launch(mahe_home, command="up")
    read_until(up, r"^    mahe join mahe1\.")
    env = os.environ | {"MAHE_HOME": str(mahe_home), "CI": "true", "PYTHONUTF8": "1"}
    mahe = [sys.executable, "-m", "services"]
    worker = subprocess.Popen([*mahe, "worker"], env=env, start_new_session=True, stderr=subprocess.PIPE)
    short = ["--dataset", "gauss3", "--preset", "long", "--rounds", "3", "--k-steps", "5", "--balance", "equal"]
    answer = subprocess.run(
        [*mahe, "start", *short, "--aggregator", "median", "--name", "try", "--inner", "momentum"],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False, timeout=50,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout
    assert re.search(r"^\[START\] run gauss3-1 is started\n\[START\] Long: ", answer.stdout), answer.stdout
    warned = r"^\[WARN\] run gauss3-1: outer momentum 0\.9 needs about 100 rounds; this run has 3: use fedavg$"
    assert len(re.findall(warned, answer.stdout, re.MULTILINE)) == 1, answer.stdout
    assert re.search(r"^\[ROUND\] round=3 ", answer.stdout, re.MULTILINE), answer.stdout
    assert re.search(r"^\[START\] final accuracy 0\.\d+", answer.stdout, re.MULTILINE), answer.stdout
    for process in (worker, up):
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
    until(lambda: up.returncode == 0)
    gone(processes_of(mahe_home))
