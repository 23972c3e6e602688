"""Folders for people who look for a place for their model: those below the roots, and nothing of what is in files.

Not for checking where a model may be written: that is `model_copies`, which every path goes through in the end.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.common.errors import ProtocolError, quoted
from services.master.shell.disk_answer import ANSWER_S, answer_of
from services.master.shell.model_copies import SUFFIX, Places

SHOWN_MAX = 500  # folders, and as many files
LOOKED_AT_MAX = 10_000  # entries of one folder
MOUNTS = ("/Volumes", "/media", "/run/media", "/mnt")  # where systems show other disks
DRIVES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if sys.platform == "win32" else ""


@dataclass(frozen=True)
class Folders:
    """What may be looked at: below `places.within` if it is said, else home, data folder and what is mounted."""

    places: Places

    def roots(self) -> list[Path]:
        """Where looking may begin: folders that are there, each once, links followed."""
        if self.places.within is not None:
            return [self.places.within.resolve()]
        found = [self.places.data, Path("~").expanduser(), *(Path(f"{one}:\\") for one in DRIVES)]
        found += [Path(mount) for mount in MOUNTS]
        return list(dict.fromkeys(path.resolve() for path in found if path.is_dir()))

    def look(self, path: str) -> dict[str, Any]:
        """The folders and models in `path`; an empty path: the data folder. Raises ProtocolError.

        A disk that does not answer is waited for ANSWER_S, as the loop stands still meanwhile.
        """
        try:
            return answer_of(lambda: self._look(path))
        except TimeoutError:
            raise _unknown(path, f"is on a disk that does not answer in {ANSWER_S:g} s") from None

    def _look(self, path: str) -> dict[str, Any]:
        try:
            roots = self.roots()
            here = (self.places.data / Path(path).expanduser()).resolve()
            if not _within(here, roots):
                allowed = ", ".join(map(str, roots[:10]))
                text = f"field path is {quoted(path)}, allowed is what lies below {allowed}"
                raise ProtocolError(text, code="FOLDER_NOT_ALLOWED")
            folders, models, more = _entries(here, roots)
        except (OSError, ValueError, RuntimeError) as error:
            raise _unknown(path, f"cannot be opened ({getattr(error, 'strerror', None) or error})") from None
        parent = str(here.parent) if here.parent != here and _within(here.parent, roots) else None
        return {
            "path": str(here),
            "parent": parent,
            "folders": folders,
            "models": models,
            "more": more,
            "roots": [str(root) for root in roots],
        }


def _entries(here: Path, roots: list[Path]) -> tuple[list[str], list[str], bool]:
    """Names of folders and models, sorted, and whether there are more than are shown.

    Names that nobody can type (control characters, bytes that are no text) and hidden ones are left out, and so are
    links that lead elsewhere.
    """
    folders, models = list[str](), list[str]()
    with os.scandir(here) as entries:
        for count, entry in enumerate(entries):
            if count == LOOKED_AT_MAX:
                return sorted(folders)[:SHOWN_MAX], sorted(models)[:SHOWN_MAX], True
            if entry.name.startswith(".") or not entry.name.isprintable():
                continue
            if entry.is_symlink() and not _leads_within(entry, roots):
                continue
            if entry.is_dir():
                folders.append(entry.name)
            elif entry.name.endswith(SUFFIX):
                models.append(entry.name)
    more = max(len(folders), len(models)) > SHOWN_MAX
    return sorted(folders)[:SHOWN_MAX], sorted(models)[:SHOWN_MAX], more


def _leads_within(link: "os.DirEntry[str]", roots: list[Path]) -> bool:
    try:
        return _within(Path(link.path).resolve(), roots)
    except (OSError, RuntimeError):  # a link to itself
        return False


def _within(path: Path, roots: list[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def _unknown(path: str, text: str) -> ProtocolError:
    return ProtocolError(f"field path is {quoted(path)}: it {text}; choose another folder", code="FOLDER_UNKNOWN")
