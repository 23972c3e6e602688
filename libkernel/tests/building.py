"""How the tests of libkernel compile: every C compiler of this machine, and zig for other machines."""

import importlib.util
from pathlib import Path

from services.common.kernels import build

TESTS = Path(__file__).resolve().parent
STRICT = ("-Wall", "-Wextra", "-Werror")


def working_compilers() -> list[build.Compiler]:
    """The first compiler found, and ziglang too where it is installed. Empty only on a machine without any."""
    found = build.find_compilers()
    first = [compiler for compiler in found if compiler.name != "ziglang"][:1]
    return first + zig()


def zig(target: str | None = None) -> list[build.Compiler]:
    if not importlib.util.find_spec("ziglang"):
        return []
    return [build.Compiler(target or "ziglang", build.zig_command(target))]


def compile_check(compiler: build.Compiler, program: Path) -> None:
    """Builds the program of check*.c together with the kernels: it looks at the tiers themselves, not at the API."""
    checks = sorted([*TESTS.glob("check*.c"), *TESTS.glob("check*.S")])
    flags = [*build.compile_flags(), *build.supported_flags(compiler), *STRICT, "-g"]
    files = [str(path) for path in [*build.sources(), *checks]]
    build.run_compiler([*compiler.command, *flags, *files, "-o", str(program), "-lm"])
