"""What a loss of power may leave of a list of operations: every legal state of the folder, at every moment.

Rules (ALICE, OSDI'14): a file holds what was synced last, or any mixture by blocks of that and of what was written
since, also cut, also with zeros or rubbish for what did not arrive. Of the changes of a folder's names since its last
sync any subset may have arrived, each of them whole. A file that has no name is gone.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.tests.durability.disk import ROOT, Names, Operation, Said, Sync, Write

BLOCK_BYTES = 512
SUBSETS_MAX = 32  # of pending changes of names, and of the mixtures of one file: beyond it a seeded choice

Tree = dict[str, bytes | None]  # path -> content, None for a folder


@dataclass
class Pending:
    """What is durable, and what is pending, at one moment."""

    content: dict[int, bytes] = field(default_factory=dict)
    written: dict[int, bytes] = field(default_factory=dict)  # and not synced
    names: dict[int, dict[str, int]] = field(default_factory=dict)  # by folder
    changes: dict[int, list[Names]] = field(default_factory=dict)  # by folder, not synced

    def do(self, operation: Operation) -> None:
        """Take one operation."""
        if isinstance(operation, Write):
            self.written[operation.file] = operation.content
        elif isinstance(operation, Names):
            self.changes.setdefault(operation.folder, []).append(operation)
        elif isinstance(operation, Sync):
            if operation.file in self.written:
                self.content[operation.file] = self.written.pop(operation.file)
            for change in self.changes.pop(operation.file, []):
                _rename(self.names.setdefault(operation.file, {}), change)

    def settle(self) -> None:
        """All of it is durable now."""
        for one in sorted(self.written.keys() | self.changes.keys()):
            self.do(Sync(one))

    def forget(self) -> None:
        """Drop the contents of files that have no name and can get none back."""
        named = {one for entries in self.names.values() for one in entries.values()}
        named |= {one for changes in self.changes.values() for change in changes for _, one in change.changed if one}
        for kept in (self.content, self.written):
            for one in [one for one in kept if one not in named]:
                del kept[one]


@dataclass(frozen=True)
class Survivor:
    """One state of the folder, and what had been said by then."""

    tree: Tree
    said: tuple[Any, ...]

    def lay_out(self, folder: Path) -> None:
        """Make the folder, which must be empty, look like this."""
        for path, content in self.tree.items():
            if content is None:
                (folder / path).mkdir()
            else:
                (folder / path).write_bytes(content)


def survivors(operations: list[Operation], folders: set[int], seed: int, seen: set[Any]) -> Iterator[Survivor]:
    """Each state that is not in `seen` yet, where it is put."""
    chance = random.Random(seed)
    disk = Pending()
    said: list[Any] = []
    for number in range(len(operations) + 1):
        for tree in _trees(disk, folders, chance):
            key = (frozenset(tree.items()), tuple(said))
            if key not in seen:
                seen.add(key)
                yield Survivor(tree, tuple(said))
        if number < len(operations):
            operation = operations[number]
            if isinstance(operation, Said):
                said.append(operation.what)
            disk.do(operation)


def drawn(disk: Pending, folders: set[int], chance: random.Random) -> Tree:
    """One such state for this moment: each change of names kept or lost, each file whole, cut, empty or as before."""
    names = {folder: dict(entries) for folder, entries in disk.names.items()}
    for folder in sorted(disk.changes):
        for change in disk.changes[folder]:
            if chance.random() < 0.5:
                _rename(names.setdefault(folder, {}), change)
    paths = dict(_paths(names, folders, ROOT, ""))
    contents = dict(disk.content)
    for one in sorted(one for one in paths.values() if one in disk.written):
        new = disk.written[one]
        contents[one] = chance.choice([new, new[: chance.randrange(len(new) + 1)], b"", disk.content.get(one, b"")])
    return {path: None if one in folders else contents.get(one, b"") for path, one in paths.items()}


def _trees(disk: Pending, folders: set[int], chance: random.Random) -> Iterator[Tree]:
    pending = sorted(folder for folder, changes in disk.changes.items() if changes)
    choices = [list(_subsets(disk.changes[folder], chance)) for folder in pending]
    for chosen in itertools.product(*choices):
        names = {folder: dict(entries) for folder, entries in disk.names.items()}
        for folder, changes in zip(pending, chosen, strict=True):
            for change in changes:
                _rename(names.setdefault(folder, {}), change)
        paths = dict(_paths(names, folders, ROOT, ""))
        torn = sorted({one for one in paths.values() if one in disk.written})
        mixtures = [_mixtures(disk.content.get(one, b""), disk.written[one], chance) for one in torn]
        for contents in itertools.islice(itertools.product(*mixtures), SUBSETS_MAX * 4):
            now = {**disk.content, **dict(zip(torn, contents, strict=True))}
            yield {path: None if one in folders else now.get(one, b"") for path, one in paths.items()}


def _rename(names: dict[str, int], change: Names) -> None:
    for name, one in change.changed:
        if one is None:
            names.pop(name, None)
        else:
            names[name] = one


def _paths(names: dict[int, dict[str, int]], folders: set[int], folder: int, before: str) -> Iterator[tuple[str, int]]:
    """(path, file) of all that has a name, folders before what is in them."""
    for name, one in names.get(folder, {}).items():
        yield f"{before}{name}", one
        if one in folders:
            yield from _paths(names, folders, one, f"{before}{name}/")


def _subsets(items: list[Any], chance: random.Random) -> Iterator[list[Any]]:
    """All subsets, each in order; of many only some, always none, all and the beginnings."""
    if 2 ** len(items) <= SUBSETS_MAX:
        for size in range(len(items) + 1):
            yield from map(list, itertools.combinations(items, size))
        return
    for size in range(len(items) + 1):
        yield items[:size]
    for _ in range(SUBSETS_MAX):
        yield [item for item in items if chance.random() < 0.5]


def _mixtures(old: bytes, new: bytes, chance: random.Random) -> list[bytes]:
    """What may be in a file that held `old`, was given `new` and was not synced."""
    blocks = -(-max(len(old), len(new)) // BLOCK_BYTES)
    found = {old, new, b"", bytes(len(new))}
    for cut in range(0, len(new), BLOCK_BYTES):
        found |= {new[:cut], new[:cut] + bytes(len(new) - cut), new[:cut] + b"\xa5" * (len(new) - cut)}
        found |= {new[: cut + 1], new[:cut] + old[cut:]}
    at = [slice(number * BLOCK_BYTES, (number + 1) * BLOCK_BYTES) for number in range(blocks)]
    before = old.ljust(len(new), b"\0")
    for arrived in _subsets(at, chance):
        found.add(b"".join((new if part in arrived else before)[part] for part in at))
    return sorted(found)
