"""`make bench`: all are run, also after one that fails, and which failed is said."""

import sys
from pathlib import Path

import pytest

from bench.__main__ import STEPS, Step, run_all
from bench.report.results import BENCHMARKS, ROOT

WRITES = "import sys, pathlib; pathlib.Path(sys.argv[-1]).write_text(' '.join(sys.argv[1:])); sys.exit({})"


def step(name: str, code: str) -> Step:
    return Step(name, (sys.executable, "-c", code), ("--short",))


def test_one_that_fails_does_not_stop_the_others(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "silent.json").write_text("of an earlier run")
    steps = (
        step("silent", "import sys; print('too bad'); sys.exit(3)"),
        Step("absent", (str(tmp_path / "no-python"),), ()),
        step("missed", WRITES.format(1)),
        step("good", WRITES.format(0)),
    )
    silent, absent, missed = run_all(steps, tmp_path, quick=False)
    assert (tmp_path / "good.json").read_text() == f"--json {tmp_path / 'good.json'}"
    assert silent == "silent ended with exit code 3, no figures: see what it said above"
    assert absent.startswith("absent could not be started: ") and "no-python" in absent
    assert missed == "missed ended with exit code 1, its figures are written: see what it said above"
    assert "== silent\ntoo bad\n== absent\n" in capfd.readouterr().out


def test_quick_says_so_to_each(tmp_path: Path) -> None:
    assert run_all([step("good", WRITES.format(0))], tmp_path, quick=True) == []
    assert (tmp_path / "good.json").read_text() == f"--short --json {tmp_path / 'good.json'}"


def test_the_steps_are_all_that_is_reported_and_their_programs_are_there() -> None:
    assert {step.name for step in STEPS} == set(BENCHMARKS)
    for one in STEPS:
        _, *words = one.command
        path = words[0] if words[0] != "-m" else f"{words[1].replace('.', '/')}/__main__.py"
        assert (ROOT / path).is_file(), one.name
        folder = one.command[0].removesuffix("/bin/python")
        assert f":= {folder}\n" in (ROOT / "Makefile").read_text("utf-8")
