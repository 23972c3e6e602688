"""What a folder goes through, as a list of operations: the writes, names and syncs of the shipped code, in order.

The calls of `os` that order things are hooked (fsync, replace, rename, unlink, mkdir); what was written between two of
them is seen by looking at the folder. So nothing is assumed of how the shipped code opens and writes its files.
Not for what a crash leaves of it: that is `survivors.py`.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = 0  # the id of the folder itself, which is there and durable from the beginning


@dataclass(frozen=True)
class Write:
    """The content of a file changed; nothing says that any of it has reached the disk."""

    file: int
    content: bytes


@dataclass(frozen=True)
class Names:
    """Entries of one folder changed at once: None for a name that is gone."""

    folder: int
    changed: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True)
class Sync:
    """A file's content, or a folder's names, are on the disk."""

    file: int


@dataclass(frozen=True)
class Said:
    """Somebody was told; from now on it must not be lost."""

    what: Any


Operation = Write | Names | Sync | Said


class Killed(BaseException):
    """The process ends here, in the middle of it."""


@dataclass
class Recorder:
    """Records what happens under `root`, which is empty at first. `die_before`: the number of a call, from 1."""

    root: Path
    operations: list[Operation] = field(default_factory=list)
    die_before: int = 0
    calls: int = 0
    folders: set[int] = field(default_factory=lambda: {ROOT})
    _names: dict[tuple[int, str], int] = field(default_factory=dict)
    _content: dict[int, bytes] = field(default_factory=dict)
    _by_inode: dict[int, int] = field(default_factory=dict)
    _made: int = ROOT

    def say(self, what: Any) -> None:
        """Note that somebody was told `what`."""
        self.look()
        self.operations.append(Said(what))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Hook the calls of `os`."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("replace", "rename", "unlink", "mkdir"):
                patch.setattr(os, name, self._hooked(getattr(os, name)))
            patch.setattr(os, "fsync", self._fsync(os.fsync))
            yield
        self.look()

    def _hooked(self, call: Any) -> Any:
        def hooked(*given: Any, **named: Any) -> Any:
            self._call()
            try:
                return call(*given, **named)
            finally:
                self.look(together=True)

        return hooked

    def _fsync(self, call: Any) -> Any:
        def fsync(descriptor: int) -> None:
            self._call()
            inode = os.fstat(descriptor).st_ino
            if inode == self.root.stat().st_ino:
                self.operations.append(Sync(ROOT))
            elif inode in self._by_inode:
                self.operations.append(Sync(self._by_inode[inode]))

        return fsync

    def _call(self) -> None:
        self.look()
        self.calls += 1
        if self.calls == self.die_before:
            raise Killed

    def look(self, *, together: bool = False) -> None:
        """What is different since the last look. `together`: one call did it, so names of a folder change at once."""
        names: dict[tuple[int, str], int] = {}
        inodes: dict[int, int] = {}
        contents: dict[int, bytes] = {}
        self._walk(self.root, ROOT, names, inodes, contents)
        changed: dict[int, list[tuple[str, int | None]]] = {}
        for key in sorted(names.keys() | self._names.keys()):
            if names.get(key) != self._names.get(key):
                changed.setdefault(key[0], []).append((key[1], names.get(key)))
        for folder, entries in changed.items():
            parts = [tuple(entries)] if together else [(entry,) for entry in entries]
            self.operations += [Names(folder, part) for part in parts]
        for one, content in contents.items():
            if self._content.get(one, b"") != content:
                self.operations.append(Write(one, content))
        self._names, self._by_inode, self._content = names, inodes, contents

    def _walk(
        self,
        folder: Path,
        of: int,
        names: dict[tuple[int, str], int],
        inodes: dict[int, int],
        contents: dict[int, bytes],
    ) -> None:
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            found = entry.stat(follow_symlinks=False)
            if found.st_ino not in self._by_inode:  # of a file that is gone it may be used again
                self._made += 1
            one = inodes[found.st_ino] = self._by_inode.get(found.st_ino, self._made)
            names[of, entry.name] = one
            if stat.S_ISDIR(found.st_mode):
                self.folders.add(one)
                self._walk(Path(entry.path), one, names, inodes, contents)
            else:
                contents[one] = Path(entry.path).read_bytes()
