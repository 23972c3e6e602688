"""Builds libkernel into `lib/` beside this file: `python -m services.common.kernels.build`.

Needs only the standard library and one C compiler: `$CC`, cc, gcc, clang, or the `ziglang` package (`pip install
ziglang`), whichever first builds a library that this Python can load. Not for cross builds and not used at run time.
"""

import argparse
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.common.errors import KernelError
from services.common.kernels.paths import HEADER_NAME, LIB_FOLDER, LIBRARY_NAME, SOURCE_FOLDER, STAMP_NAME

FLAGS = ("-std=c11", "-O2", "-ffp-contract=off", "-fno-fast-math", "-fno-math-errno", "-fvisibility=hidden")
OPTIONAL_FLAGS = ("-fno-tree-vectorize", "-fno-tree-slp-vectorize")  # so that "scalar" really is scalar
COMPILE_TIMEOUT_S = 600  # zig builds its own C library on first use


@dataclass(frozen=True)
class Compiler:
    """A C compiler as a command line, and the name people know it by."""

    name: str
    command: tuple[str, ...]


def find_compilers(asked: str | None = None) -> list[Compiler]:
    """The compilers to try, best first: only `asked` if given, else only `$CC` if set, else what this machine has."""
    chosen = asked or os.environ.get("CC", "").strip()
    if chosen:
        command = tuple(shlex.split(chosen, posix=os.name != "nt"))
        return [Compiler(chosen, zig_command() if command == ("zig", "cc") else command)]
    found = [Compiler(name, (path,)) for name in ("cc", "gcc", "clang") if (path := shutil.which(name))]
    if importlib.util.find_spec("ziglang"):
        found.append(Compiler("ziglang", zig_command()))
    return found


def zig_command(target: str | None = None) -> tuple[str, ...]:
    """`zig cc` for `target` (default: this machine). Without a target zig would use every feature of this very CPU."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    libc = "musl" if "musl" in str(sysconfig.get_config_var("HOST_GNU_TYPE")) else "gnu"
    system = {"win32": "windows-gnu", "darwin": "macos"}.get(sys.platform, f"linux-{libc}")
    zig = (sys.executable, "-m", "ziglang") if importlib.util.find_spec("ziglang") else ("zig",)
    return (*zig, "cc", "-target", target or f"{machine}-{system}")


def sources(root: Path = SOURCE_FOLDER) -> list[Path]:
    """The files to compile. All of them on every CPU: assembly of another CPU comes out empty."""
    found = [path for path in (root / "src").rglob("*") if path.suffix in {".c", ".S"}]
    if not found:
        raise KernelError(f"no kernel sources in {root}: run this from a full checkout of MAHE")
    return sorted(found)


def compile_flags(*, asm: bool = True, windows: bool = sys.platform == "win32") -> list[str]:
    """The flags every file of libkernel is built with."""
    return [*FLAGS, *([] if windows else ["-fPIC"]), *([] if asm else ["-DMAHE_NO_ASM"])]


def supported_flags(compiler: Compiler) -> list[str]:
    """Those of the optional flags that `compiler` knows. Also the proof that it works at all: KernelError if not."""
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "probe.c"
        probe.write_text("int probe;\n", encoding="ascii")
        base = [*compiler.command, "-c", str(probe), "-o", str(probe.with_suffix(".o"))]
        if not run_compiler([*base, "-Werror", *OPTIONAL_FLAGS], check=False):
            return list(OPTIONAL_FLAGS)
        run_compiler(base)
        return []


def describe_compiler(compiler: Compiler) -> str:
    """The first line of what it says of its version, with its name if that is not in it; the name alone if nothing."""
    try:
        line = _run([*compiler.command, "--version"]).stdout.partition("\n")[0].strip()
    except (OSError, subprocess.TimeoutExpired):
        line = ""
    return line if line.startswith(compiler.name) else f"{compiler.name}: {line}".rstrip(": ")


def run_compiler(command: Sequence[str], *, check: bool = True) -> str:
    """Runs a command; returns "" if it went well, else what it said (raised as KernelError when `check`)."""
    try:
        done = _run(command)
        said = "" if done.returncode == 0 else (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    if said and check:
        raise KernelError(said)
    return said


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=COMPILE_TIMEOUT_S, check=False
    )


def build(
    compilers: Sequence[Compiler],
    *,
    root: Path = SOURCE_FOLDER,
    folder: Path = LIB_FOLDER,
    asm: bool = True,
    force: bool = False,
) -> str:
    """Builds the sources under `root` into `folder` with the first compiler that can; returns one line for people."""
    tried = []
    for compiler in compilers:
        stamp = _stamp(compiler, root, asm=asm)
        if not force and _up_to_date(folder, stamp):
            return f"kernels: {folder / LIBRARY_NAME} is up to date ({compiler.name})"
        try:
            _build_with(compiler, root, folder, stamp, asm=asm)
        except KernelError as error:
            tried.append(f"{compiler.name}: {error}")
            continue
        return f"kernels: built {folder / LIBRARY_NAME} with {compiler.name}{'' if asm else ', without assembly'}"
    what = "no C compiler found" if not tried else "no compiler could build the kernels:\n  " + "\n  ".join(tried)
    raise KernelError(
        f"{what}\nInstall one and try again: `apt install gcc`, `xcode-select --install`, or on any system "
        f"`{Path(sys.executable).name} -m pip install ziglang`; or name one with --compiler or CC."
    )


def _build_with(compiler: Compiler, root: Path, folder: Path, stamp: str, *, asm: bool) -> None:
    flags = [*compile_flags(asm=asm), *supported_flags(compiler), "-DMAHE_BUILD", "-shared"]
    libraries = [] if sys.platform == "win32" else ["-lm"]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as scratch:
        library = Path(scratch) / LIBRARY_NAME
        run_compiler([*compiler.command, *flags, *map(str, sources(root)), "-o", str(library), *libraries])
        load = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).mahe_abi_version()"
        if said := run_compiler([sys.executable, "-c", load, str(library)], check=False):
            raise KernelError(f"what it built cannot be loaded by this Python: {said.splitlines()[-1]}")
        header = Path(scratch) / HEADER_NAME
        shutil.copyfile(root / "include" / HEADER_NAME, header)
        stamped = Path(scratch) / STAMP_NAME
        stamped.write_text(f"{stamp}\n{describe_compiler(compiler)}\n", encoding="utf-8")
        try:
            for path in (library, header, stamped):
                path.replace(folder / path.name)
        except PermissionError as error:
            raise KernelError(f"{error.filename} is in use: stop all MAHE programs and build again") from error


def _up_to_date(folder: Path, stamp: str) -> bool:
    written = folder / STAMP_NAME
    complete = all((folder / name).is_file() for name in (LIBRARY_NAME, HEADER_NAME, STAMP_NAME))
    return complete and written.read_text(encoding="utf-8").splitlines()[:1] == [stamp]


def _stamp(compiler: Compiler, root: Path, *, asm: bool) -> str:
    """SHA-256 over everything the library depends on: sources, headers, flags, compiler, this machine."""
    digest = hashlib.sha256()
    headers = [path for path in root.rglob("*.h") if "tests" not in path.relative_to(root).parts]
    for path in [*sources(root), *sorted(headers)]:
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
        digest.update(path.read_bytes())
    program = shutil.which(compiler.command[0]) or compiler.command[0]
    size = Path(program).stat().st_size if Path(program).is_file() else 0
    parts = [*compiler.command, str(size), *compile_flags(asm=asm), *OPTIONAL_FLAGS]
    digest.update("\n".join([*parts, platform.system(), platform.machine()]).encode())
    return digest.hexdigest()


def main() -> int:
    """The command: prints one line; exit code 1 when no compiler could build the library."""
    parser = argparse.ArgumentParser(prog="python -m services.common.kernels.build", description=__doc__)
    parser.add_argument("--compiler", metavar="CMD", help="the C compiler, with arguments if need be")
    parser.add_argument("--no-asm", action="store_true", help="plain C only, also where there is assembly")
    parser.add_argument("--force", action="store_true", help="build also when up to date")
    options = parser.parse_args()
    try:
        line = build(find_compilers(options.compiler), asm=not options.no_asm, force=options.force)
    except KernelError as error:
        sys.stderr.write(f"kernels: {error}\n")
        return 1
    sys.stdout.write(line + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
