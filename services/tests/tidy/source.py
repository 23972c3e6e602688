"""What the tidy rules read (the files of the tree) and what they say (violations).

Not for rules: those are in the modules beside this one, and `services/tests/test_tidy.py` runs them.
"""

import ast
import subprocess
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
PYTHON_MIN = (3, 11)
SKIPPED_FOLDERS = {".git", ".venv", "build", "dist", "node_modules", "__pycache__"}  # only where there is no git
TEXT = {
    ".py",
    ".S",
    ".c",
    ".h",
    ".js",
    ".css",
    ".html",
    ".md",
    ".toml",
    ".txt",
    ".yaml",
    ".yml",
    ".json",
    ".env",
    ".sh",
}


class Violation(NamedTuple):
    """One broken rule at one place; printed as `file:line: rule: sentence`."""

    path: str
    line: int
    sentence: str


class Source:
    """One file of the tree. `path` is relative to the root, with slashes."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.parts = PurePosixPath(path).parts
        self.suffix = PurePosixPath(path).suffix
        self.stem = PurePosixPath(path).stem

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree; an empty one where there is none, which the rule `syntax` reports."""
        try:
            return ast.parse(self.text, self.path, feature_version=PYTHON_MIN)
        except SyntaxError:
            return ast.Module([], [])

    @property
    def is_python(self) -> bool:
        return self.suffix == ".py"

    @property
    def is_test(self) -> bool:
        return "tests" in self.parts

    @property
    def module(self) -> str:
        """The import path: `services/master/core/__init__.py` is `services.master.core`."""
        parts = self.parts[:-1] if self.stem == "__init__" else (*self.parts[:-1], self.stem)
        return ".".join(parts)

    def at(self, place: int | ast.AST, sentence: str) -> Violation:
        """A violation in this file, at a line or at a node of its tree."""
        line = place if isinstance(place, int) else getattr(place, "lineno", 1)
        return Violation(self.path, line, sentence)


class Imported(NamedTuple):
    """One name that a module imports: the module it comes from, and where."""

    module: str
    place: ast.AST


def python(sources: Iterable[Source]) -> Iterator[Source]:
    """The Python files, in order."""
    return (source for source in sources if source.is_python)


def imports(source: Source, modules: set[str]) -> Iterator[Imported]:
    """Every module that `source` imports, wherever it does so; `from a import b` is `a.b` if that is in `modules`."""
    for item in ast.walk(source.tree):
        if isinstance(item, ast.Import):
            for alias in item.names:
                yield Imported(alias.name, item)
        elif isinstance(item, ast.ImportFrom):
            origin = "." * item.level + (item.module or "")
            for alias in item.names:
                inner = f"{origin}.{alias.name}"
                yield Imported(inner if inner in modules else origin, item)


def load() -> list[Source]:
    """The text files of the tree: those git knows or would add; without git, all but what is built."""
    try:
        command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        files = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        listing = [path.as_posix() for path in files if not SKIPPED_FOLDERS.intersection(path.parts)]
    named = {"Makefile", "Dockerfile", "run", ".gitignore"}
    wanted = [path for path in sorted(set(listing)) if Path(path).suffix in TEXT or Path(path).name in named]
    return [Source(path, (ROOT / path).read_text("utf-8")) for path in wanted if (ROOT / path).is_file()]
