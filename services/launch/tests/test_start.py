"""`mahe start`: what it asks of the console, what it says, and one run for real."""

import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from services import __main__ as command
from services.common.errors import MaheError, SettingsError
from services.common.protocol.encodings import ENCODINGS
from services.common.protocol.presets import PRESETS
from services.common.protocol.spec import RunSpec
from services.launch import places
from services.launch.start import StartOptions, create, read_spec, request_of
from services.launch.tests.conftest import gone, until
from services.launch.tests.test_demo import processes_of, read_until
from services.launch.tests.test_demo import start as launch


class Console:
    """A console that keeps what it was asked, and answers as it is told."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.status = 201
        self.body: dict[str, Any] = {"run": "digits-1", "warnings": []}


@pytest.fixture
def console(mahe_home: Path) -> Iterator[Console]:
    """It is found as that of `mahe up` is found."""
    told = Console()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(200, {})

        def do_POST(self) -> None:
            told.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.answer(told.status, told.body)

        def answer(self, status: int, body: dict[str, Any]) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 its name upstream
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        file = places.console_file(mahe_home / "console")
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"url": f"http://127.0.0.1:{server.server_port}", "token": "t"}))
        yield told
        server.shutdown()
        thread.join()


def options(spec: str | None = None, **fields: Any) -> StartOptions:
    return StartOptions(fields=fields, spec=spec, detach=True)


def test_the_command_line_knows_what_the_run_allows() -> None:
    assert tuple(PRESETS) == command.PRESETS
    assert command.ENCODINGS == ENCODINGS
    assert get_args(RunSpec.model_fields["aggregator"].annotation) == command.AGGREGATORS
    assert get_args(RunSpec.model_fields["balance"].annotation) == command.BALANCES
    assert set(command.START_FIELDS) <= {*RunSpec.model_fields, "preset"}


def test_only_what_is_given_is_asked_for() -> None:
    given = options(dataset="builtin:rings4", rounds=5, batch=None, outer="nesterov", inner="adamw", preset=None)
    assert request_of(given) == {
        "name": "rings4", "dataset": "builtin:rings4", "preset": "standard", "rounds": 5,
        "outer": {"name": "nesterov"}, "inner": {"name": "adamw"},
    }  # fmt: skip
    assert request_of(options()) == {"name": "digits", "dataset": "digits", "preset": "standard"}


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
    assert "start one with: mahe up" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["--preset fast", "--encoding int9", "--outer adam", "--rounds 0", "--balance odd"])
def test_a_word_that_is_not_there_is_wrong_usage(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(["start", *words.split()])
    assert end.value.code == 2
    assert words.split(maxsplit=1)[0] in capsys.readouterr().err


def test_detached_it_says_id_sentence_and_warnings(console: Console, capsys: pytest.CaptureFixture[str]) -> None:
    console.body = {"run": "digits-4", "warnings": ["outer momentum 0.9 needs about 100 rounds"]}
    assert command.main(["start", "--preset", "long", "--rounds", "20", "--detach"]) == 0
    assert console.requests == [{"name": "digits", "dataset": "digits", "preset": "long", "rounds": 20}]
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "[START] run digits-4 is started"
    assert said[1].startswith("[START] Long: Hundreds of short rounds")
    assert said[2] == "[WARN] run digits-4: outer momentum 0.9 needs about 100 rounds"
    assert "mahe status" in said[3]


def test_what_is_refused_ends_with_what_to_do(console: Console, capsys: pytest.CaptureFixture[str]) -> None:
    console.status = 422
    console.body = {"code": "BAD_SPEC", "detail": "field dataset is 'cats', allowed are digits, gauss3"}
    assert command.main(["start", "--dataset", "cats"]) == 1
    assert capsys.readouterr().out.endswith(
        "field dataset is 'cats', allowed are digits, gauss3; correct it and start again; "
        "mahe start --help lists the options\n"
    )


def test_another_refusal_is_told_as_it_is() -> None:
    class Busy:
        def post(self, path: str, body: dict[str, Any]) -> Any:
            raise MaheError(f"{path}: run a-1 is RUNNING; stop it first", code="RUN_ACTIVE")

    link: Any = Busy()
    with pytest.raises(MaheError, match=r"stop it first$"):
        create(link, {})


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
        env=env, capture_output=True, encoding="utf-8", check=False, timeout=50,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout + answer.stderr
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
