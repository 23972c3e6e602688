"""What the built library looks like from outside: stack, relocations, exports, notes; that other machines can build it.

Also what only the text of the assembly shows.
"""

import re
import struct
import sys
from pathlib import Path

import building
import pytest

from services.common.kernels import build
from services.common.kernels.paths import LIBRARY_NAME, SOURCE_FOLDER

TIME_LIMIT_S = 300
ELF_TARGETS = ("x86_64-linux-gnu", "aarch64-linux-gnu")
OTHER_TARGETS = ("x86_64-windows-gnu", "aarch64-windows-gnu", "x86_64-macos", "aarch64-macos")

PT_DYNAMIC, PT_GNU_STACK, PF_X = 2, 0x6474E551, 1
DT_TEXTREL, DT_FLAGS, DF_TEXTREL = 22, 30, 4
SHT_PROGBITS, SHT_NOTE, SHT_DYNSYM, SHF_EXECINSTR = 1, 7, 11, 4
# .note.gnu.property: (kind, bits). x86-64: IBT and SHSTK; AArch64: BTI.
PROPERTIES = {"x86_64": (0xC0000002, 3), "aarch64": (0xC0000000, 1)}


class Elf:
    """The few parts of a little-endian ELF64 file that matter here."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        assert self.data[:6] == b"\x7fELF\x02\x01"
        program_at, section_at = struct.unpack_from("<QQ", self.data, 32)
        program_size, program_count, section_size, section_count = struct.unpack_from("<HHHH", self.data, 54)
        # Program header: type, flags, offset, virtual address, physical address, file size, memory size, alignment.
        self.programs = [
            struct.unpack_from("<IIQQQQQQ", self.data, program_at + i * program_size) for i in range(program_count)
        ]
        # Section header: name, type, flags, address, offset, size, link, info, alignment, entry size.
        self.sections = [
            struct.unpack_from("<IIQQQQIIQQ", self.data, section_at + i * section_size) for i in range(section_count)
        ]

    def stack_flags(self) -> list[int]:
        return [program[1] for program in self.programs if program[0] == PT_GNU_STACK]

    def section(self, name: str) -> tuple[int, int, bytes] | None:
        """Type, flags and content of the section of that name, if there is one."""
        names = self.sections[struct.unpack_from("<H", self.data, 62)[0]][4]
        for section in self.sections:
            start = names + section[0]
            if self.data[start : self.data.index(b"\0", start)] == name.encode():
                return section[1], section[2], self.data[section[4] : section[4] + section[5]]
        return None

    def dynamic(self) -> dict[int, int]:
        at, size = next((program[2], program[5]) for program in self.programs if program[0] == PT_DYNAMIC)
        return dict(struct.iter_unpack("<qQ", self.data[at : at + size]))

    def exports(self) -> set[str]:
        table = next(section for section in self.sections if section[1] == SHT_DYNSYM)
        strings = self.sections[table[6]][4]
        found = set()
        symbols = self.data[table[4] : table[4] + table[5]]
        for name, info, other, section, _, _ in struct.iter_unpack("<IBBHQQ", symbols):
            if section and info >> 4 and other & 3 == 0:  # defined here, not local, default visibility
                end = self.data.index(b"\0", strings + name)
                found.add(self.data[strings + name : end].decode())
        return found


def header_functions() -> set[str]:
    header = (SOURCE_FOLDER / "include" / "mahe_kernel.h").read_text(encoding="utf-8")
    return set(re.findall(r"^MAHE_API .*?(mahe_\w+)\(", header, re.MULTILINE))


def expect_clean(path: Path) -> None:
    """No executable stack, no text relocations, and the functions of the header are what it exports."""
    elf = Elf(path)
    assert elf.stack_flags()
    assert not any(flags & PF_X for flags in elf.stack_flags())
    dynamic = elf.dynamic()
    assert DT_TEXTREL not in dynamic
    assert not dynamic.get(DT_FLAGS, 0) & DF_TEXTREL
    assert elf.exports() == header_functions()


def assembly(machine: str) -> list[Path]:
    return [path for path in build.sources() if path.suffix == ".S" and path.parent.name == machine]


def compile_all(compiler: build.Compiler, target: str, folder: Path, *more: Path) -> dict[Path, Path]:
    """Compiles every source for another machine, warnings being errors; source -> object."""
    flags = [*build.compile_flags(windows="windows" in target), *build.OPTIONAL_FLAGS, *building.STRICT, "-DMAHE_BUILD"]
    objects = {}
    for number, source in enumerate([*build.sources(), *more]):
        objects[source] = folder / f"{number}-{source.name}.o"
        build.run_compiler([*compiler.command, *flags, "-c", str(source), "-o", str(objects[source])])
    return objects


def zig(target: str) -> build.Compiler:
    found = building.zig(target)
    if not found:
        pytest.skip("needs the package ziglang")
    return found[0]


@pytest.mark.skipif(sys.platform != "linux", reason="ELF is the format of Linux")
@pytest.mark.timeout(TIME_LIMIT_S)
@pytest.mark.parametrize("compiler", building.working_compilers(), ids=lambda compiler: Path(compiler.name).name)
@pytest.mark.parametrize("asm", [True, False], ids=["asm", "no-asm"])
def test_the_shared_object_is_clean(compiler: build.Compiler, asm: bool, tmp_path: Path) -> None:
    build.build([compiler], folder=tmp_path, asm=asm)
    expect_clean(tmp_path / LIBRARY_NAME)


@pytest.mark.timeout(TIME_LIMIT_S)
@pytest.mark.parametrize("target", ELF_TARGETS)
def test_shared_objects_of_other_machines_are_clean(target: str, tmp_path: Path) -> None:
    compiler = zig(target)
    objects = compile_all(compiler, target, tmp_path)
    library = tmp_path / "library.so"
    build.run_compiler([*compiler.command, "-shared", *map(str, objects.values()), "-o", str(library), "-lm"])
    expect_clean(library)
    machine = target.partition("-")[0]
    assert assembly(machine)
    for source, path in objects.items():
        if source.suffix == ".S":
            expect_notes(Elf(path), PROPERTIES[machine])


def expect_notes(elf: Elf, expected: tuple[int, int]) -> None:
    """What every file of assembly must say, even one that is empty on this machine, or the whole library loses it."""
    stack = elf.section(".note.GNU-stack")
    assert stack is not None
    assert stack[0] == SHT_PROGBITS
    assert not stack[1] & SHF_EXECINSTR
    note = elf.section(".note.gnu.property")
    assert note is not None
    assert note[0] == SHT_NOTE
    name_size, size, kind, name, property_kind, property_size, bits = struct.unpack_from("<III4sIII", note[2])
    assert (name_size, size, kind, name, property_size) == (4, 16, 5, b"GNU\0", 4)
    assert (property_kind, bits) == expected
    assert len(note[2]) == 32


@pytest.mark.timeout(TIME_LIMIT_S)
@pytest.mark.parametrize("target", OTHER_TARGETS)
def test_other_machines_can_compile_it(target: str, tmp_path: Path) -> None:
    checks = [] if "windows" in target else building.check_sources()  # the check program is POSIX
    compile_all(zig(target), target, tmp_path, *checks)


def code_of(path: Path) -> str:
    """An assembly file without its comments."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("path", assembly("aarch64"), ids=lambda path: path.name)
def test_the_system_keeps_x18(path: Path) -> None:
    """No test on Linux can see it, but on macOS and Windows x18 is the system's."""
    assert not re.search(r"\b[xw]18\b", code_of(path))


@pytest.mark.parametrize("path", assembly("x86_64"), ids=lambda path: path.name)
def test_only_vex_instructions(path: Path) -> None:
    """One SSE instruction among AVX ones costs hundreds of cycles on some CPUs, and no result shows it."""
    vectors = [line for line in code_of(path).splitlines() if re.search(r"\b[xy]mm\d|\\to\b", line)]
    slow = [line.strip() for line in vectors if not re.match(r"\s*(v\w+|\.macro .*|nibble\w* .*)", line)]
    assert not slow


@pytest.mark.parametrize("path", [*assembly("x86_64"), *assembly("aarch64")], ids=lambda path: path.name)
def test_every_file_ends_with_the_notes(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[-3:] == ["#endif", "", '#include "../note.h"']
