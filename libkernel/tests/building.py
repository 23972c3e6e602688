"""How the tests of libkernel compile and run its check program, with each C compiler of this machine and for others."""

import importlib.util
import platform
import subprocess
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from services.common.kernels import build

TESTS = Path(__file__).resolve().parent
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
TIME_LIMIT_S = 300  # zig builds its own C library on first use

CHECKS_FOR_ALL = ("tiers", "arguments")
CHECKS = (  # for each tier
    "reduce_add",
    "sgd_update",
    "fold",
    "absmax",
    "stats",
    "outer",
    "adamw",
    "bf16",
    "quantise",
    "decode",
    "fold_blocks",
    "topk",
    "segments",
    "long",
    "huge",
)


def this_machine() -> str:
    """The CPU by the name that compilers use: x86_64, aarch64."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def working_compilers() -> list[build.Compiler]:
    """The first compiler found, and ziglang too where it is installed. Empty only on a machine without any."""
    found = build.find_compilers()
    first = [compiler for compiler in found if compiler.name != "ziglang"][:1]
    return first + zig()


def zig(target: str | None = None) -> list[build.Compiler]:
    if not importlib.util.find_spec("ziglang"):
        return []
    return [build.Compiler(target or "ziglang", build.zig_command(target))]


def check_sources() -> list[Path]:
    """The check program without the kernels."""
    return sorted([*TESTS.glob("check*.c"), *TESTS.glob("check*.S")])


def check_flags(compiler: build.Compiler) -> list[str]:
    return [*build.compile_flags(windows=False), *build.supported_flags(compiler), *STRICT]


def compile_check(compiler: build.Compiler, program: Path, *extra: str) -> None:
    """Builds the check program together with the kernels: it looks at the tiers themselves, not at the API."""
    files = [str(path) for path in [*build.sources(), *check_sources()]]
    build.run_compiler([*compiler.command, *check_flags(compiler), "-g", *extra, *files, "-o", str(program), "-lm"])


@dataclass(frozen=True)
class Objects:
    """The check program in pieces, to build it again with one file changed."""

    compiler: build.Compiler
    flags: Sequence[str]
    folder: Path
    objects: dict[Path, Path]  # source -> object

    def link(self, program: Path, changed: dict[Path, Path]) -> None:
        """The program, with the objects of some sources in place of its own."""
        objects = [str(path) for path in {**self.objects, **changed}.values()]
        build.run_compiler([*self.compiler.command, *self.flags, *objects, "-o", str(program), "-lm"])

    def compile(self, source: Path, target: Path) -> None:
        build.run_compiler([*self.compiler.command, *self.flags, "-c", str(source), "-o", str(target)])


def compile_objects(compiler: build.Compiler, sources: Iterable[Path], folder: Path, *extra: str) -> Objects:
    """Compiles every file by itself, as many at once as there are CPUs."""
    made = Objects(compiler, [*check_flags(compiler), *extra], folder, {})
    for number, source in enumerate(sources):
        made.objects[source] = folder / f"{number}-{source.name}.o"
    with ThreadPoolExecutor() as pool:
        list(pool.map(made.compile, made.objects.keys(), made.objects.values()))
    return made


def run_check(
    program: Path, *words: str, runner: Sequence[str] = (), limit_s: float = TIME_LIMIT_S
) -> subprocess.CompletedProcess[str]:
    """Runs the check program: `words` are its SEED, TIER and NAMES, `runner` an emulator before it."""
    command = [*runner, str(program), *words]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False)
