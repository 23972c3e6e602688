"""The self-test: passes on every tier of this machine, and says which kernel differs when one does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from services.common.kernels import build, kernel_impl
from services.common.kernels.cases import CASES
from services.common.kernels.library import library
from services.common.kernels.paths import SOURCE_FOLDER
from services.common.kernels.selftest import describe, difference, differences, main, quick_differences

ROOT = SOURCE_FOLDER.parent


def test_every_kernel_of_this_machine_is_right(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MAHE_KERNEL", raising=False)
    before = kernel_impl()
    assert main() == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert f"self-test: {len(CASES)} kernels on scalar" in said.out.splitlines()[-1]
    assert [line.split()[0] for line in said.out.splitlines()] == ["tier", "CPU", "library", "self-test:"]
    assert describe(library())[0].startswith(f"tier {before}; ")
    assert kernel_impl() == before


def test_a_tier_that_is_named_is_the_only_one_tested(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So the advice to set MAHE_KERNEL=scalar ends well, whatever another tier does."""
    monkeypatch.setenv("MAHE_KERNEL", "scalar")
    assert main() == 0
    assert f"self-test: {len(CASES)} kernels on scalar alone (MAHE_KERNEL), " in capsys.readouterr().out


def test_the_quick_one_passes_here_and_leaves_the_tier_alone() -> None:
    before = kernel_impl()
    assert quick_differences(library()) == []
    assert kernel_impl() == before


def test_a_difference_is_told_by_its_entry() -> None:
    zeros = np.zeros(3, np.float32)
    assert difference((zeros,), (zeros,)) == ""
    assert difference((zeros,), (np.array([0, -0.0, 0], np.float32),)).startswith("entry 1 is ")
    nan = np.full(3, np.nan, np.float32)
    assert difference((nan,), (-nan,)) == ""
    assert difference((nan,), (zeros,)).startswith("entry 0 is ")


@pytest.mark.timeout(120)
def test_a_kernel_that_is_wrong_fails_it(tmp_path: Path) -> None:
    """Plain C with a plus for a minus, in a library of its own: exit code 1, and a sentence with the next step."""
    root = tmp_path / "libkernel"
    for part in ("include", "src"):
        shutil.copytree(SOURCE_FOLDER / part, root / part)
    file = root / "src" / "reference" / "adamw.c"
    text = file.read_text("utf-8")
    assert text.count("params[i] - step->lr") == 1
    file.write_text(text.replace("params[i] - step->lr", "params[i] + step->lr"), "utf-8")
    build.build(build.find_compilers(), root=root, folder=tmp_path / "lib", asm=False)
    code = (
        "import pathlib, sys\n"
        "from services.common.kernels import library\n"
        f"library.LIB_FOLDER = pathlib.Path({str(tmp_path / 'lib')!r})\n"
        "from services.common.kernels.selftest import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, env={**os.environ, "MAHE_KERNEL": ""}, capture_output=True, text=True, check=False, timeout=50,
    )  # fmt: skip
    assert done.returncode == 1
    assert "self-test: adamw on tier scalar differs from NumPy for 1 elements: entry 0 is " in done.stderr
    assert done.stderr.endswith("; set MAHE_KERNEL=scalar and report this with the lines above\n")
    assert f"library {tmp_path}" in done.stdout
    assert differences(library()) == []
