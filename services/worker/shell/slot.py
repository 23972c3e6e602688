"""A worker's slot: the folder that one agent owns by kernel lock. Own key pair, parked marker, anchor, held deltas.

What is here survives a restart. Scaled workers share a data folder and take one slot each, the first that is free.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import xxhash
import zmq

from services.common.errors import SettingsError
from services.common.host.files import FolderLock, make_folder, sync_folder, write_durably
from services.common.protocol.join_string import JoinString
from services.common.protocol.messages import TaskRef
from services.worker.core.events import Delta

SLOTS_MAX = 256
READ_BYTES = 1 << 20
IDENTITY, PARKED, ANCHOR = "identity.json", "parked.json", "anchor.f32"
DELTA_PREFIX = "delta-"


@dataclass(frozen=True)
class Identity:
    """Who this slot is. Not enrolled without `worker`; `joined_with` is a fingerprint, no secret."""

    public_key: str
    secret_key: str
    worker: str = ""
    name: str = ""
    endpoints: tuple[str, ...] = ()
    server_key: str = ""
    beacon_key: str = ""
    joined_with: str = ""


@dataclass(frozen=True)
class Parked:
    """Why this slot stays away, and the fingerprint of the join string that does not lead out."""

    reason: str
    joined_with: str


def fingerprint(join: JoinString) -> str:
    """Names a join string without telling its secret."""
    return hashlib.sha256(b"mahe/join-fingerprint" + join.server_key + join.secret).hexdigest()[:32]


def new_identity() -> Identity:
    """A fresh CURVE key pair (Z85)."""
    public, secret = zmq.curve_keypair()
    return Identity(public.decode(), secret.decode())


class Slot:
    """One locked folder `slot-<n>/`. OSError from any method means that the disk is full or gone."""

    def __init__(self, folder: Path, lock: FolderLock) -> None:
        self.folder = folder
        self._lock = lock

    @property
    def anchor_path(self) -> Path:
        """The anchor, raw little-endian float32."""
        return self.folder / ANCHOR

    def release(self) -> None:
        """Let another agent take this slot."""
        self._lock.release()

    def identity(self) -> Identity | None:
        """Who this slot is; None in a new one. Raises SettingsError when the file is damaged."""
        found = self._read(IDENTITY)
        return None if found is None else Identity(**(found | {"endpoints": tuple(found["endpoints"])}))

    def save_identity(self, identity: Identity) -> None:
        """Durable and private (0600)."""
        write_durably(self.folder / IDENTITY, json.dumps(asdict(identity), indent=1).encode(), private=True)

    def parked(self) -> Parked | None:
        """The marker, if there is one."""
        found = self._read(PARKED)
        return None if found is None else Parked(**found)

    def park(self, parked: Parked) -> None:
        """Write the marker."""
        write_durably(self.folder / PARKED, json.dumps(asdict(parked), indent=1).encode())

    def unpark(self) -> None:
        """Remove the marker."""
        (self.folder / PARKED).unlink(missing_ok=True)

    def delta_path(self, lease: str) -> Path:
        """Where the trainer writes the delta of a lease. A lease may hold what Windows refuses in a file name."""
        return self.folder / f"{DELTA_PREFIX}{hashlib.sha256(lease.encode()).hexdigest()[:24]}.f32"

    def keep(self, delta: Delta) -> None:
        """Note durably what the delta file holds; the trainer has synced the file itself."""
        fields = asdict(delta) | {"ref": delta.ref.model_dump()}
        write_durably(self._meta_path(delta.ref.lease), json.dumps(fields).encode())

    def forget(self, lease: str) -> None:
        """Remove a delta, the note first: a file without a note is swept at the next start."""
        self._meta_path(lease).unlink(missing_ok=True)
        self.delta_path(lease).unlink(missing_ok=True)

    def held(self) -> Iterator[Delta]:
        """The deltas that an earlier agent held, and sweeps what is no whole delta."""
        for path in sorted(self.folder.glob(f"{DELTA_PREFIX}*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                fields = json.loads(path.read_text())
                ref = TaskRef.model_validate(fields.pop("ref"))
                delta = Delta(ref=ref, **(fields | {"accepted_session": 0}))
                if file_digest(self.delta_path(ref.lease)) == delta.digest:
                    yield delta
                    continue
            path.unlink(missing_ok=True)
        noted = {path.stem for path in self.folder.glob(f"{DELTA_PREFIX}*.json")}
        for path in sorted(self.folder.glob(f"{DELTA_PREFIX}*.f32")):
            if path.stem not in noted:
                path.unlink(missing_ok=True)

    def prepare_anchor(self, total_bytes: int) -> None:
        """Make the anchor file this long."""
        with self.anchor_path.open("ab") as file:
            file.truncate(total_bytes)

    def store(self, offset: int, payload: bytes | bytearray | memoryview) -> None:
        """One chunk to its place. Written, not mapped: a full disk is an error here and not the end of the process."""
        with self.anchor_path.open("r+b") as file:
            file.seek(offset)
            file.write(payload)

    def anchor_digest(self) -> str:
        """xxh3-128 of the anchor file; empty without one."""
        return file_digest(self.anchor_path)

    def _meta_path(self, lease: str) -> Path:
        return self.delta_path(lease).with_suffix(".json")

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.folder / name
        try:
            found = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise SettingsError(f"{path} cannot be read ({error}); remove it and join this PC again") from None
        if not isinstance(found, dict):
            raise SettingsError(f"{path} does not hold an object; remove it and join this PC again")
        return found


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


def read_chunk(path: Path, index: int, chunk_bytes: int) -> bytes:
    """Chunk `index` of a file; OSError when there is none."""
    with path.open("rb") as file:
        file.seek(index * chunk_bytes)
        payload = file.read(chunk_bytes)
    if not payload:
        raise OSError(f"{path.name} has no chunk {index} of {chunk_bytes} bytes")
    return payload


def take_slot(data: Path) -> Slot:
    """The first free slot of the data folder, locked for this process; SettingsError when there is none."""
    make_folder(data)
    for number in range(SLOTS_MAX):
        folder = make_folder(data / f"slot-{number}")
        lock = FolderLock(folder)
        if lock.acquire():
            sync_folder(data)
            return Slot(folder, lock)
    raise SettingsError(f"all {SLOTS_MAX} slots of {data} are in use; stop a worker, or give another MAHE_WORKER_DATA")
