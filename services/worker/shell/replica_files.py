"""The files of a worker's replica: the anchor, a note which version it is, and the updates that were fetched.

Nothing here is synced: what a power cut leaves is found out by its digest, and costs a download.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import xxhash
from pydantic import TypeAdapter

from services.common.host.failpoints import failpoint
from services.common.host.files import remove
from services.common.protocol.messages import What
from services.worker.core.events import Anchor
from services.worker.core.state import NO_ANCHOR

ANCHOR, NOTE, UPDATE_PREFIX = "anchor.f32", "anchor.json", "update-"
READ_BYTES = 1 << 20
_NOTE = TypeAdapter(Anchor)


class ReplicaFiles:
    """In the slot's folder. OSError means that the disk is full or gone."""

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        self._folder, self._warn = folder, warn

    @property
    def anchor(self) -> Path:
        """The anchor, raw little-endian float32."""
        return self._folder / ANCHOR

    def update(self, version: int) -> Path:
        """The encoded update that leads to this version."""
        return self._folder / f"{UPDATE_PREFIX}{version}.bin"

    def prepare(self, what: What, version: int, total_bytes: int) -> None:
        """Make a file this long."""
        failpoint("anchor.before-prepare")
        with self._path(what, version).open("ab") as file:
            file.truncate(total_bytes)

    def store(self, what: What, version: int, offset: int, payload: bytes | bytearray | memoryview) -> None:
        """One chunk to its place. Written, not mapped: a full disk is an error here and not the end of the process."""
        failpoint("anchor.before-store")
        with self._path(what, version).open("r+b") as file:
            file.seek(offset)
            file.write(payload)

    def digest(self) -> str:
        """xxh3-128 of the anchor file; empty without one."""
        return file_digest(self.anchor)

    def note(self, anchor: Anchor) -> None:
        """Which version the anchor file is."""
        try:
            (self._folder / NOTE).write_text(json.dumps(asdict(anchor)), encoding="utf-8")
        except OSError as error:
            self._warn(f"{NOTE} cannot be written ({error.strerror or error}); after a restart the anchor comes whole")

    def known(self) -> Anchor:
        """The anchor as an earlier agent left it; one that cannot be read, or has changed since, is none."""
        self.forget_updates()
        found = ""
        try:
            found = self.digest()
            noted = _NOTE.validate_json((self._folder / NOTE).read_bytes())
        except FileNotFoundError:
            return Anchor("", -1, found)
        except OSError as error:
            self._warn(f"{self.anchor} cannot be read ({error.strerror or error}); it is downloaded again")
            return NO_ANCHOR
        except ValueError:
            return Anchor("", -1, found)
        return noted if noted.digest == found else Anchor("", -1, found)

    def forget_updates(self, up_to: int | None = None) -> None:
        """Remove the updates up to this version; all without one."""
        for path in self._folder.glob(f"{UPDATE_PREFIX}*.bin"):
            version = path.stem.removeprefix(UPDATE_PREFIX)
            if up_to is None or not version.isdecimal() or int(version) <= up_to:
                remove(path)

    def _path(self, what: What, version: int) -> Path:
        return self.anchor if what == "snapshot" else self.update(version)


def file_digest(path: Path) -> str:
    """xxh3-128 of a file's bytes in hex; empty when there is no such file."""
    digest = xxhash.xxh3_128()
    try:
        with path.open("rb") as file:
            while block := file.read(READ_BYTES):
                digest.update(block)
    except FileNotFoundError:
        return ""
    return digest.hexdigest()
