"""Compiles and runs check.c: every kernel on every tier of this CPU, with each compiler of this machine."""

import subprocess
import sys
from pathlib import Path

import building
import pytest

from services.common.kernels.build import Compiler

TIME_LIMIT_S = 300  # zig builds its own C library on first use


def test_a_compiler_is_there() -> None:
    assert building.working_compilers(), "no C compiler: install gcc, or `pip install ziglang`"


@pytest.mark.skipif(sys.platform == "win32", reason="the guard pages are POSIX; the kernels' Python tests run there")
@pytest.mark.timeout(TIME_LIMIT_S)
@pytest.mark.parametrize("compiler", building.working_compilers(), ids=lambda compiler: Path(compiler.name).name)
def test_every_kernel_on_every_tier(compiler: Compiler, tmp_path: Path) -> None:
    program = tmp_path / "check"
    building.compile_check(compiler, program)
    done = subprocess.run([program], capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    for kernel in ("reduce_add", "sgd_update", "fold", "stats"):
        assert f"ok scalar {kernel}" in done.stdout
