"""A worker's slot: the folder that one agent owns by kernel lock. Own key pair, parked marker, anchor, held deltas.

What is here survives a restart. Scaled workers share a data folder and take one slot each, the first that is free.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import zmq
from pydantic import AfterValidator, TypeAdapter, ValidationError

from services.common.errors import SettingsError
from services.common.host.failpoints import failpoint
from services.common.host.files import FolderLock, make_folder, remove, sweep, sync_folder, write_durably
from services.common.protocol.join_string import JoinString
from services.common.protocol.limits import CHUNK_BYTES
from services.worker.core.events import Delta
from services.worker.core.upload import begin_of
from services.worker.shell.disk import allocated_bytes, check_disk, disk_text
from services.worker.shell.replica_files import ReplicaFiles, file_digest

SLOTS_MAX = 256
IDENTITY, PARKED, RESIDUAL = "identity.json", "parked.json", "residual.bin"
DELTA_PREFIX = "delta-"
DAMAGED_SUFFIX = ".damaged"
Z85_KEY_LENGTH = 40


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


def check_identity(identity: Identity) -> Identity:
    """The identity; ValueError when its keys are no pair, or when it is enrolled with nobody."""
    try:
        public = zmq.curve_public(identity.secret_key.encode()).decode()
    except zmq.ZMQError:
        public = ""
    if public != identity.public_key:
        raise ValueError("the keys are no pair")
    if identity.worker and not (identity.endpoints and len(identity.server_key) == Z85_KEY_LENGTH):
        raise ValueError("it is enrolled, but names no master")
    return identity


def check_delta(delta: Delta) -> Delta:
    """The delta; ValueError when it could not be offered to a master."""
    begin_of(delta, term=0, chunks=1, chunk_bytes=CHUNK_BYTES)
    return delta


_IDENTITY = TypeAdapter(Annotated[Identity, AfterValidator(check_identity)])
_PARKED = TypeAdapter(Parked)
_DELTA = TypeAdapter(Annotated[Delta, AfterValidator(check_delta)])


class Slot:
    """One locked folder `slot-<n>/`. What is damaged in it is set aside or dropped, with a word to `warn`.

    OSError means that the disk is full or gone, for now at least; where nothing works without it, SettingsError.
    """

    def __init__(self, folder: Path, lock: FolderLock, warn: Callable[[str], None]) -> None:
        self.folder = folder
        self._lock = lock
        self._warn = warn
        self.replica = ReplicaFiles(folder, warn)

    @property
    def residual_path(self) -> Path:
        """What the encoding of this slot's counted deltas has left over so far."""
        return self.folder / RESIDUAL

    def release(self) -> None:
        """Let another agent take this slot."""
        self._lock.release()

    def identity(self) -> Identity | None:
        """Who this slot is; None in a new one. SettingsError when the file cannot be read."""
        data = self._read(IDENTITY)
        try:
            return None if data is None else _IDENTITY.validate_json(data)
        except ValueError as error:
            self._set_aside(IDENTITY, error, "this PC joins anew, with a join string")
            return None

    def save_identity(self, identity: Identity) -> None:
        """Durable and private (0600); SettingsError when it cannot be: a key that is lost is a worker that is lost."""
        path = self.folder / IDENTITY
        try:
            write_durably(path, json.dumps(asdict(identity), indent=1).encode(), private=True, what="identity")
        except OSError as error:
            raise unusable(path, error) from None

    def parked(self) -> Parked | None:
        """The marker, if there is one. SettingsError when the file cannot be read."""
        data = self._read(PARKED)
        try:
            return None if data is None else _PARKED.validate_json(data)
        except ValueError as error:
            self._set_aside(PARKED, error, "the master will say again whether this PC is wanted")
            return None

    def park(self, parked: Parked) -> None:
        """Write the marker."""
        write_durably(self.folder / PARKED, json.dumps(asdict(parked), indent=1).encode(), what="parked")

    def unpark(self) -> None:
        """Remove the marker; SettingsError when it stays."""
        path = self.folder / PARKED
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise unusable(path, error) from None

    def delta_path(self, lease: str) -> Path:
        """Where the trainer writes the delta of a lease. A lease may hold what Windows refuses in a file name."""
        return self.folder / f"{DELTA_PREFIX}{hashlib.sha256(lease.encode()).hexdigest()[:24]}.bin"

    def next_residual_path(self, lease: str) -> Path:
        """What the encoding of this lease's delta leaves over, should it be counted."""
        return self.delta_path(lease).with_suffix(".residual")

    def keep(self, delta: Delta) -> None:
        """Note durably what the delta file holds; the trainer has synced the file itself."""
        fields = asdict(delta) | {"ref": delta.ref.model_dump()}
        write_durably(self._meta_path(delta.ref.lease), json.dumps(fields).encode(), what="note")

    def forget(self, lease: str, *, counted: bool) -> None:
        """Remove a delta, the note first: a file without a note is swept at the next start. What stays does no harm.

        Before that what its encoding left over takes the old residual's place if it is `counted`, or goes.
        """
        self._settle_residual(lease, counted=counted)
        for path, name in ((self._meta_path(lease), "note"), (self.delta_path(lease), "delta")):
            failpoint(f"forget.before-{name}")
            if not remove(path):
                self._warn(f"{path} cannot be removed; it stays for the next start")

    def held(self) -> list[Delta]:
        """The deltas that an earlier agent held; what is surely damaged is dropped, what cannot be read now stays."""
        found: list[Delta] = []
        for note in sorted(self.folder.glob(f"{DELTA_PREFIX}*.json")):
            try:
                found.append(self._held(note))
            except OSError as error:
                name = error.filename or note
                self._warn(f"{name} cannot be read ({error.strerror or error}); it stays for the next start")
            except ValueError as error:
                self._warn(f"{note} is damaged ({first_words(error)}) and dropped; its shard comes again")
                remove(note)
        noted = {note.stem for note in self.folder.glob(f"{DELTA_PREFIX}*.json")}
        for suffix in (".bin", ".residual"):
            for path in sorted(self.folder.glob(f"{DELTA_PREFIX}*{suffix}")):
                if path.stem not in noted:
                    remove(path)
        return found

    def check(self, free_bytes: int) -> None:
        """OSError unless the slot can be written, with this much space; the anchor, which is written over, counts."""
        anchor = self.replica.anchor
        if anchor.exists():
            with anchor.open("r+b"):
                pass
        check_disk(self.folder, free_bytes - allocated_bytes(anchor))

    def _settle_residual(self, lease: str, *, counted: bool) -> None:
        left_over = self.next_residual_path(lease)
        if not counted:
            remove(left_over)
            return
        failpoint("forget.before-residual")
        try:
            left_over.replace(self.residual_path)
        except FileNotFoundError:  # fp32, a unit, or done before a crash
            return
        except OSError as error:
            self._warn(f"{left_over} cannot be moved ({error.strerror or error}); what was left over is dropped")
            remove(self.residual_path)

    def _meta_path(self, lease: str) -> Path:
        return self.delta_path(lease).with_suffix(".json")

    def _held(self, note: Path) -> Delta:
        """The delta of a note; ValueError when note or delta is damaged, OSError when either cannot be read."""
        delta = _DELTA.validate_json(note.read_bytes())
        delta.accepted_session, delta.eager = 0, False
        if file_digest(self.delta_path(delta.ref.lease)) != delta.digest:
            raise ValueError("the delta has another digest")
        return delta

    def _read(self, name: str) -> bytes | None:
        path = self.folder / name
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unusable(path, error) from None

    def _set_aside(self, name: str, error: ValueError, then: str) -> None:
        """A damaged file must not be in the way, and a person may want to look at it."""
        path = self.folder / name
        aside = path.with_name(f"{name}{DAMAGED_SUFFIX}")
        with contextlib.suppress(OSError):
            path.replace(aside)
        self._warn(f"{path} is damaged ({first_words(error)}) and set aside as {aside.name}; {then}")


def first_words(error: ValueError) -> str:
    """What is wrong, in one line and without what the file holds, which may be secret."""
    return str(error.errors()[0]["msg"]) if isinstance(error, ValidationError) else str(error)


def unusable(path: Path, error: OSError) -> SettingsError:
    """A file of the slot without which nothing works."""
    return SettingsError(disk_text(path, error), code="DATA_DIR_UNUSABLE")


def read_chunk(path: Path, index: int, chunk_bytes: int) -> bytes:
    """Chunk `index` of a file; EOFError when there is none."""
    with path.open("rb") as file:
        file.seek(index * chunk_bytes)
        payload = file.read(chunk_bytes)
    if not payload:
        raise EOFError(f"{path.name} has no chunk {index} of {chunk_bytes} bytes")
    return payload


def take_slot(data: Path, warn: Callable[[str], None]) -> Slot:
    """The first free slot of the data folder, locked for this process; SettingsError when there is none."""
    make_folder(data)
    for number in range(SLOTS_MAX):
        folder = make_folder(data / f"slot-{number}")
        lock = FolderLock(folder, "MAHE_WORKER_DATA")
        if lock.acquire():
            sync_folder(data)
            sweep(folder)
            return Slot(folder, lock, warn)
    raise SettingsError(f"all {SLOTS_MAX} slots of {data} are in use; stop a worker, or give another MAHE_WORKER_DATA")
