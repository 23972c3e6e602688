"""Rules that read files as text: their size, their names, the page's JavaScript, the C of libkernel, the pins.

Not for Python's syntax: that is code.py and floors.py.
"""

import re
from collections.abc import Iterator, Sequence

from services.tests.tidy.source import Source, Violation

FILE_LINES_MAX = 400
LINE_CHARACTERS_MAX = 120
CODE = {".py", ".S", ".c", ".h", ".js", ".css", ".html", ".sh", ".toml", ".yaml", ".yml"}
GROWING = {"CHANGELOG.md"}  # one entry a change, for ever
BANNED_STEMS = {"utils", "util", "helpers", "helper", "misc", "base"}
# Each in two pieces, so that this file passes its own rule. Package indexes belong to the machine's own settings.
HOSTS = ("pypi" + ".org", "python" + "hosted", "npm" + "js.", "deb." + "debian", "security." + "debian")
INDEX_OPTION = re.compile("(?<!emit-)index-" + "url", re.IGNORECASE)
SCRIPTS = re.compile(r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|new Function|eval\()")
C_HEADERS = {"assert", "float", "limits", "math", "stdatomic", "stdbool", "stddef", "stdint", "string"}
# How each system tells which CPU it runs on: no C standard header can.
C_HEADERS_CPU = {"cpuid", "immintrin", "intrin", "sys/auxv", "sys/sysctl", "windows"}
C_CALLS = re.compile(r"\b(malloc|calloc|realloc|free|alloca|errno|pthread_\w+|thrd_\w+|_Thread_local)\b")
C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
C_GLOBAL = re.compile(
    r"^(?:static )?(?!const |extern |typedef |static |return |struct \w+ \{|enum |union )"
    r"\w[\w *]*?\w+(?:\[\w*\])*(?: = .*)?[;{]$"
)
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)")


def file_sizes(sources: Sequence[Source]) -> Iterator[Violation]:
    """A file has at most 400 lines."""
    for source in sources:
        wanted = source.suffix in CODE | {".md"} and source.path not in GROWING
        if wanted and len(source.lines) > FILE_LINES_MAX:
            yield source.at(FILE_LINES_MAX + 1, f"{len(source.lines)} lines; at most {FILE_LINES_MAX}")


def line_sizes(sources: Sequence[Source]) -> Iterator[Violation]:
    """A line of code has at most 120 characters."""
    for source in sources:
        if source.suffix not in CODE and source.parts[-1] not in {"Makefile", "Dockerfile", "run"}:
            continue
        for number, line in enumerate(source.lines, 1):
            if len(line) > LINE_CHARACTERS_MAX:
                yield source.at(number, f"{len(line)} characters; at most {LINE_CHARACTERS_MAX}")


def module_names(sources: Sequence[Source]) -> Iterator[Violation]:
    """No module or folder is named after nothing: utils, helpers, misc, base."""
    for source in sources:
        if source.suffix in CODE - {".toml"} and BANNED_STEMS.intersection((*source.parts[:-1], source.stem)):
            yield source.at(1, "a name that says nothing: name the module after what it holds")


def package_hosts(sources: Sequence[Source]) -> Iterator[Violation]:
    """No file names a package index: it comes from the settings of the machine."""
    for source in sources:
        for number, line in enumerate(source.lines, 1):
            if any(host in line.lower() for host in HOSTS) or INDEX_OPTION.search(line):
                yield source.at(number, "names a package index; that is the machine's own setting")


def page_scripts(sources: Sequence[Source]) -> Iterator[Violation]:
    """The page never turns text into markup or code."""
    for source in sources:
        if source.suffix not in {".js", ".html"}:
            continue
        for number, line in enumerate(source.lines, 1):
            if found := SCRIPTS.search(line):
                yield source.at(number, f"banned in the page: {found[0]}")


def without_comments(source: Source) -> list[str]:
    """The lines of a C file with comments blanked, so that line numbers stay."""
    return C_COMMENT.sub(lambda found: "\n" * found[0].count("\n"), source.text).splitlines()


def kernel_code(sources: Sequence[Source]) -> Iterator[Violation]:
    """Floor 0: libkernel includes C's own headers, holds no memory, threads or errno, and one table as its state."""
    for source in sources:
        if source.parts[:2] not in {("libkernel", "src"), ("libkernel", "include")} or source.suffix not in {
            ".c",
            ".h",
        }:
            continue
        for number, line in enumerate(without_comments(source), 1):
            header = re.match(r"\s*#\s*include\s*<(.+?)(?:\.h)?>", line)
            if header and header[1] not in (C_HEADERS | C_HEADERS_CPU if source.stem == "cpu" else C_HEADERS):
                yield source.at(number, f"includes <{header[1]}.h>: floor 0 has only C's own headers")
            if call := C_CALLS.search(line):
                yield source.at(number, f"{call[0]}: floor 0 allocates nothing and has no threads or errno")
            if source.stem != "dispatch" and C_GLOBAL.match(line):
                yield source.at(number, "a variable global: only the dispatch table may be one")


def pins(sources: Sequence[Source]) -> Iterator[Violation]:
    """Every pinned package has its hashes, no address, and the same version in each requirements file."""
    versions: dict[str, tuple[str, str]] = {}
    for source in sources:
        if source.parts[0] != "requirements" or source.stem == "torch":
            continue
        for number, line in enumerate(source.lines, 1):
            if "://" in line:
                yield source.at(number, "an address")
            if pin := PIN.match(line):
                first = versions.setdefault(pin[1], (pin[2], source.path))
                if first[0] != pin[2]:
                    yield source.at(
                        number, f"{pin[1]} is {pin[2]} here and {first[0]} in {first[1]}: make requirements"
                    )
                if number >= len(source.lines) or "--hash=sha256:" not in source.lines[number]:
                    yield source.at(number, f"{pin[1]} has no hash: make requirements")
