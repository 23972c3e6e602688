"""Bugs put into the kernels on purpose: what one is, where they come from, and how the check program is run with one.

Written ones are in mutants/*.txt. `[file: tier check]` says where the next ones go, which tier has the bug and which
check has to notice. Then, for each: `# what is wrong | what the check says`, the line before the place (the file has it
once), the lines that go (`-`), found soon after it, and those that come (`+`). Comments and indentation do not count.
Others are made from every assembly file by a rule.
"""

import copy
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import building

from services.common.kernels import build
from services.common.kernels.paths import SOURCE_FOLDER

FOLDER = building.TESTS / "mutants"
TIME_LIMIT_S = 60  # of one run: a mutant may loop for ever
REACH = 45  # lines after the given one within which the others must stand

SAYS = {  # what a check says, as a regular expression
    "wrong": r"FAILED (?!.*( was written|without vzeroupper|changed ([rxd]\d|rbx|rbp|the )))",
    "crashes": r"CRASHED",
    "beside": r" was written|CRASHED",
    "vzeroupper": r"returned without vzeroupper",
    "any": r"FAILED|CRASHED|did not end",
}
NOTICED_BY = {  # which check calls an entry of the assembly
    "stats_blocks": "stats",
    "momentum": "outer",
    "nesterov": "outer",
    "bf16_from_f32": "bf16",
    "f32_from_bf16": "bf16",
    "add_absmax": "quantise",
    "encode_q8": "quantise",
    "encode_q4": "quantise",
    "decode_q8": "decode",
    "decode_q4": "decode",
    "decode_add_q8": "decode",
    "decode_add_q4": "decode",
    "fold_q8": "fold_blocks",
    "fold_q4": "fold_blocks",
    "topk_count": "topk",
    "topk_match": "topk",
    "topk_take": "topk",
}
KEPT = {
    "x86_64": {name: f"xor {name}, 1" for name in ("rbx", "rbp", "r12", "r13", "r14", "r15")},
    "aarch64": {
        **{f"x{number}": f"eor x{number}, x{number}, #1" for number in range(19, 30)},
        **{f"d{number}": f"fneg d{number}, d{number}" for number in range(8, 16)},
    },
}
TIERS = {"x86_64": "avx2", "aarch64": "neon"}

COMMENT = re.compile(r"/\*.*?\*/|//.*|/\*.*")
ENTRY = re.compile(r"ENTRY\(mahe_(\w+)_(avx2|neon)\)")
MASK = re.compile(r"(and \w+, |ands \w+, \w+, #)(3|7|15|31)")
JUMP = re.compile(r"(jz|b\.eq) ")


@dataclass(frozen=True)
class Mutant:
    """One bug: in `file` (below libkernel/src) the lines `old`, soon after the line `after`, become `new`."""

    name: str
    file: str
    after: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    tier: str
    check: str
    says: str

    def apply(self, text: str) -> str:
        lines = text.splitlines()
        plain = [_plain(line) for line in lines]
        count = plain.count(_plain(self.after))
        assert count == 1, f"{self.name}: {self.file} has the line {self.after!r} {count} times, not once"
        first = plain.index(_plain(self.after)) + 1
        size = len(self.old)
        for at in range(first, min(first + REACH, len(lines) - size + 1)):
            if plain[at : at + size] == [_plain(line) for line in self.old]:
                return "\n".join([*lines[:at], *(f"    {line}" for line in self.new), *lines[at + size :], ""])
        raise AssertionError(f"{self.name}: {self.file} has no {self.old} within {REACH} lines of {self.after!r}")


def _plain(line: str) -> str:
    return COMMENT.sub("", line).strip()


def written(name: str) -> list[Mutant]:
    """Those of mutants/`name`.txt."""
    found = []
    file = tier = check = ""
    for block in re.split(r"\n{2,}", (FOLDER / f"{name}.txt").read_text(encoding="utf-8").strip()):
        lines = block.splitlines()
        if section := re.fullmatch(r"\[(\S+): (\w+) (\w+)\]", lines[0]):
            file, tier, check = section.groups()
            continue
        title, _, says = lines[0].removeprefix("# ").partition(" | ")
        old, new = ([line[1:].strip() for line in lines[2:] if line[0] == sign] for sign in "-+")
        assert lines[0].startswith("# ") and old and len(old) + len(new) == len(lines) - 2, block
        mark = SAYS.get(says or "wrong", re.escape(says))
        found.append(Mutant(f"{file} {title}", file, lines[1], tuple(old), tuple(new), tier, check, mark))
    return found


def by_rule(machine: str) -> list[Mutant]:
    """For every entry of the assembly of one CPU: a changed register; for each return, a missing vzeroupper; for each
    rest of a length (and ..., 7), one element less."""
    kept = list(KEPT[machine].items())
    found: list[Mutant] = []
    entered: set[str] = set()
    for path in sorted((SOURCE_FOLDER / "src" / machine).glob("*.S")):
        for entry, after, line, following in _with_next(path):
            file = f"{machine}/{path.name}"
            check = NOTICED_BY.get(entry, entry)
            name = f"{file} {entry}, {after}: "
            tier = TIERS[machine]
            if ENTRY.fullmatch(after) and after not in entered:
                entered.add(after)
                register, change = kept[len(found) % len(kept)]
                new = (change, line)
                says = rf"changed {register}\n|did not end"  # the caller may have counted in it
                found.append(Mutant(f"{name}changes {register}", file, after, (line,), new, tier, check, says))
            if line == "vzeroupper":
                new = ("nop",)
                found.append(Mutant(f"{name}{line}", file, after, (line,), new, tier, check, SAYS["vzeroupper"]))
            if (mask := MASK.fullmatch(line)) and JUMP.match(following):
                new = (f"{mask[1]}{int(mask[2]) - 1}",)
                if machine == "aarch64":
                    new = (f"mov x15, #{int(mask[2]) - 1}", f"{line.rpartition(',')[0]}, x15")
                found.append(Mutant(f"{name}{line}", file, after, (line,), new, tier, check, SAYS["any"]))
    return found


def _with_next(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Entry, the label (or the line ENTRY) before it, an instruction, and the one after it."""
    lines = [line for line in map(_plain, path.read_text(encoding="utf-8").splitlines()) if line]
    entry = label = ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if found := ENTRY.fullmatch(line):
            entry, label = found[1], line
        elif line.endswith(":"):
            label = line
        elif line.startswith("END("):
            entry = ""
        elif entry:
            yield entry, label, line, following


@dataclass(frozen=True)
class Outcome:
    """What came of one mutant."""

    survived: bool
    said: str


class Workshop:
    """The check program in pieces, and a folder for each mutant."""

    def __init__(self, compiler: build.Compiler, folder: Path, *extra: str, runner: Sequence[str] = ()) -> None:
        self.folder = folder
        self.runner = runner
        (folder / "whole").mkdir()
        sources = [*build.sources(), *building.check_sources()]
        self.objects = building.compile_objects(compiler, sources, folder / "whole", *extra)
        self.healthy = folder / "healthy"
        self.objects.link(self.healthy, {})

    def under(self, runner: Sequence[str]) -> "Workshop":
        """The same pieces, run by another emulator."""
        other = copy.copy(self)
        other.runner = runner
        return other

    def run(self, program: Path, tier: str, check: str) -> subprocess.CompletedProcess[str]:
        return building.run_check(program, "1", tier, check, runner=self.runner, limit_s=TIME_LIMIT_S)

    def complaint(self, mutants: Iterable[Mutant]) -> str:
        """Runs their checks without any bug; what the first that failed said, "" if there is none."""
        for tier, check in sorted({(mutant.tier, mutant.check) for mutant in mutants}):
            done = self.run(self.healthy, tier, check)
            if done.returncode:
                return done.stderr
        return ""

    def sees_upper_halves(self) -> bool:
        """Whether a missing vzeroupper can be noticed on this CPU."""
        return "is seen" in self.run(self.healthy, "all", "tiers").stdout

    def outcome(self, mutant: Mutant) -> Outcome:
        """Builds the check program with that bug and runs the check that has to notice."""
        folder = self.folder / re.sub(r"\W", "-", mutant.name)
        for part in ("src", "include"):
            shutil.copytree(SOURCE_FOLDER / part, folder / part)
        changed = folder / "src" / mutant.file
        changed.write_text(mutant.apply(changed.read_text(encoding="utf-8")), encoding="utf-8")
        objects = {}
        for source in _compiled_from(changed, folder):
            objects[SOURCE_FOLDER / source.relative_to(folder)] = target = folder / f"{len(objects)}.o"
            self.objects.compile(source, target)
        program = folder / "check"
        self.objects.link(program, objects)
        try:
            done = self.run(program, mutant.tier, mutant.check)
        except subprocess.TimeoutExpired:
            return Outcome(survived=False, said="did not end")
        finally:
            shutil.rmtree(folder)
        return Outcome(survived=done.returncode == 0, said=done.stderr)

    def outcomes(self, mutants: Sequence[Mutant]) -> dict[str, Outcome | Exception]:
        """All of them, as many at once as there are CPUs."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return dict(zip((mutant.name for mutant in mutants), pool.map(self._outcome, mutants), strict=True))

    def _outcome(self, mutant: Mutant) -> Outcome | Exception:
        try:
            return self.outcome(mutant)
        except (AssertionError, build.KernelError) as error:
            return error


def _compiled_from(changed: Path, folder: Path) -> list[Path]:
    """The sources that must be compiled again: the file itself, or those that include it."""
    if changed.suffix != ".h":
        return [changed]
    line = re.compile(rf'#include ".*\b{re.escape(changed.name)}"')
    return [path for path in build.sources(folder) if line.search(path.read_text(encoding="utf-8"))]
