"""What the command line takes, refuses and answers, as a user sees it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.__main__ import main
from services.launch.command_line import build_parser


def parse(*words: str) -> dict[str, object]:
    return vars(build_parser().parse_args(words))


def test_the_demo_as_it_comes() -> None:
    options = parse("demo")
    assert (options["workers"], options["dataset"], options["min_workers"]) == (2, "digits", 1)
    assert options["rounds"] is None
    assert options["stay"] is None
    assert options["browser"] is True


def test_every_option_of_the_demo() -> None:
    numbers = ["--rounds", "3", "--workers", "4", "--min-workers", "2", "--k-steps", "9", "--batch", "16"]
    options = parse("demo", *numbers, "--dataset", "builtin:rings4", "--no-browser", "--no-stay", "--verbose")
    assert options == {
        "command": "demo", "rounds": 3, "workers": 4, "dataset": "builtin:rings4", "min_workers": 2, "k_steps": 9,
        "batch": 16, "browser": False, "stay": False, "verbose": True, "attach": False,
        "no_ui": False,
    }  # fmt: skip


def test_up() -> None:
    options = parse("up", "--port", "0", "--console-port", "8080", "--no-browser")
    assert options == {
        "command": "up",
        "port": 0,
        "console_port": 8080,
        "use": "processes",
        "browser": False,
        "no_ui": False,
    }


@pytest.mark.parametrize(
    "words",
    [
        *("", "nonsense", "demo --rounds 0", "demo --workers x", "demo --workers 65", "up --port 70000", "join"),
        *("runs --limit 0", "watch one two", "pause --yes", "start --minutes-max nan", "start --patience -1"),
        *("start --rounds-in-flight 3", "stop --json=x"),
    ],
)
def test_wrong_usage_is_exit_code_2(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(words.split())
    assert end.value.code == 2
    assert "usage: mahe" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("mahe 0.")


@pytest.mark.usefixtures("mahe_home")
@pytest.mark.parametrize(
    "words",
    [
        *("status", "status --json", "open --no-browser", "runs", "runs digits-1 --json", "start", "start --no-watch"),
        *("watch", "watch --json", "stop --yes", "pause", "resume digits-1"),
    ],
)
def test_without_a_console_it_is_exit_code_3(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "[ERROR] no MAHE console runs on this PC; start one with: mahe up (or: mahe demo)\n"


def test_a_damaged_join_string_is_refused_before_anything_is_kept(
    mahe_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["join", "mahe1.abcdef"]) == 1
    assert "copy the whole line again" in capsys.readouterr().err
    assert not mahe_home.exists()


def test_from_a_folder_with_other_services_in_it(tmp_path: Path) -> None:
    (tmp_path / "services.py").write_text("raise SystemExit('the wrong one')")
    mahe = Path(sys.executable).with_name("mahe")
    answer = subprocess.run(
        [mahe, "kernels"], cwd=tmp_path, capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert "the wrong one" not in answer.stdout + answer.stderr
