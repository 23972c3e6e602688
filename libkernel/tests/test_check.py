"""Compiles and runs check.c: every kernel on every tier of this CPU, with each compiler of this machine."""

import re
import sys
from pathlib import Path

import building
import pytest

from services.common.kernels.build import Compiler


def test_a_compiler_is_there() -> None:
    assert building.working_compilers(), "no C compiler: install gcc, or `pip install ziglang`"


def test_the_list_of_checks_is_that_of_the_program() -> None:
    text = (building.TESTS / "check.c").read_text(encoding="utf-8")
    assert tuple(re.findall(r'\{"(\w+)", check_\w+\}', text)) == (*building.CHECKS_FOR_ALL, *building.CHECKS)


@pytest.mark.skipif(sys.platform == "win32", reason="the guard pages are POSIX; the kernels' Python tests run there")
@pytest.mark.timeout(building.TIME_LIMIT_S)
@pytest.mark.parametrize("compiler", building.working_compilers(), ids=lambda compiler: Path(compiler.name).name)
def test_every_kernel_on_every_tier(compiler: Compiler, tmp_path: Path) -> None:
    program = tmp_path / "check"
    building.compile_check(compiler, program)
    done = building.run_check(program)
    assert done.returncode == 0, done.stderr
    for name in building.CHECKS:
        assert f"ok scalar {name}\n" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="the guard pages are POSIX")
@pytest.mark.timeout(building.TIME_LIMIT_S)
def test_plain_c_alone(tmp_path: Path) -> None:
    program = tmp_path / "check"
    building.compile_check(building.working_compilers()[0], program, "-DMAHE_NO_ASM")
    done = building.run_check(program, "1", "all", *building.CHECKS_FOR_ALL, "reduce_add", "quantise")
    assert done.returncode == 0, done.stderr
    assert "in use: scalar; this CPU offers: \n" in done.stdout
