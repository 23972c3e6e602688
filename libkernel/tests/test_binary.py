"""What the built library looks like from outside: stack, relocations, exports; and that other machines can build it."""

import re
import struct
import sys
from pathlib import Path

import building
import pytest

from services.common.kernels import build
from services.common.kernels.paths import LIBRARY_NAME, SOURCE_FOLDER

TIME_LIMIT_S = 300
CROSS_TARGETS = ("aarch64-linux-gnu", "x86_64-windows-gnu", "aarch64-macos")

PT_DYNAMIC, PT_GNU_STACK, PF_X = 2, 0x6474E551, 1
DT_TEXTREL, DT_FLAGS, DF_TEXTREL = 22, 30, 4
SHT_DYNSYM = 11


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


@pytest.mark.skipif(sys.platform != "linux", reason="ELF is the format of Linux")
@pytest.mark.timeout(TIME_LIMIT_S)
@pytest.mark.parametrize("compiler", building.working_compilers(), ids=lambda compiler: Path(compiler.name).name)
@pytest.mark.parametrize("asm", [True, False], ids=["asm", "no-asm"])
def test_the_shared_object_is_clean(compiler: build.Compiler, asm: bool, tmp_path: Path) -> None:
    build.build([compiler], folder=tmp_path, asm=asm)
    elf = Elf(tmp_path / LIBRARY_NAME)
    assert elf.stack_flags()
    assert not any(flags & PF_X for flags in elf.stack_flags())
    dynamic = elf.dynamic()
    assert DT_TEXTREL not in dynamic
    assert not dynamic.get(DT_FLAGS, 0) & DF_TEXTREL
    assert elf.exports() == header_functions()


@pytest.mark.timeout(TIME_LIMIT_S)
@pytest.mark.parametrize("target", CROSS_TARGETS)
def test_other_machines_can_compile_it(target: str, tmp_path: Path) -> None:
    if not building.zig():
        pytest.skip("needs the package ziglang")
    (compiler,) = building.zig(target)
    flags = [*build.compile_flags(windows="windows" in target), *build.OPTIONAL_FLAGS, *building.STRICT, "-pedantic"]
    for source in build.sources():
        build.run_compiler([*compiler.command, *flags, "-c", str(source), "-o", str(tmp_path / f"{source.name}.o")])
