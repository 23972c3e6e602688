"""Which master, and under which key: made of the join string, the identity in the slot and the parked marker.

Rules: an enrolled key stays in use while the master's key is the same, whatever join string comes with the next start
(rotation never touches enrolled workers); a parked slot, or one that has to go to another master, begins with a fresh
key pair under the new join string; the join string that led into the parked state never leads out.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import zmq
from zmq.utils import z85

from services.common.errors import ProtocolError, SettingsError
from services.common.host.logs import Log
from services.common.protocol.join_string import (
    PURPOSE_JOIN,
    JoinString,
    decode_join_string,
    derive_key,
    parse_join_string,
)
from services.worker.core.limits import ENDPOINTS_MAX
from services.worker.settings import WorkerSettings
from services.worker.shell.link import Keys
from services.worker.shell.slot import Identity, Parked, Slot, fingerprint, new_identity

LOOK_EVERY_S = 0.25


@dataclass(frozen=True)
class Way:
    """How this agent finds and enters its master."""

    identity: Identity
    endpoints: tuple[str, ...]
    server_key: bytes  # Z85
    join_keys: Keys | None
    joined_with: str
    can_enrol: bool
    parked: str

    @property
    def own_keys(self) -> Keys:
        """The key pair of the slot."""
        return Keys(self.identity.public_key.encode(), self.identity.secret_key.encode())


def find_way(slot: Slot, join: JoinString | None) -> Way:
    """Decide by the rules above; writes a fresh key pair into the slot where one is needed."""
    identity, parked = slot.identity(), slot.parked()
    mark = fingerprint(join) if join is not None else ""
    if parked is not None and (not mark or mark == parked.joined_with):
        return _parked(identity, parked)
    if parked is not None:
        identity = None
    if identity is not None and identity.worker and (join is None or master_key(join) == identity.server_key.encode()):
        return _enrolled(identity, join, mark)
    if join is None:
        raise SettingsError(
            "this PC has no join string: copy one from the master's page and give it as MAHE_JOIN, "
            "or in a file named by MAHE_WORKER_JOIN_FILE"
        )
    if identity is None or identity.worker:
        identity = new_identity()
        slot.save_identity(identity)
    slot.unpark()
    return Way(identity, join.endpoints, master_key(join), join_keys(join), mark, True, "")


def needs_join_string(slot: Slot) -> bool:
    """Whether there is no other way in."""
    identity = slot.identity()
    return slot.parked() is None and (identity is None or not identity.worker)


def master_key(join: JoinString) -> bytes:
    """The master's public key, Z85."""
    return z85.encode(join.server_key)


def join_keys(join: JoinString) -> Keys:
    """The key pair of a join string, under which only ENROL is heard."""
    secret = z85.encode(derive_key(join.secret, PURPOSE_JOIN))
    return Keys(zmq.curve_public(secret), secret)


def enrolled(way: Way, worker: str, name: str, endpoints: tuple[str, ...], beacon_key: str) -> Identity:
    """The identity to save after ENROLLED."""
    return replace(
        way.identity,
        worker=worker,
        name=name,
        endpoints=endpoints,
        server_key=way.server_key.decode(),
        beacon_key=beacon_key,
        joined_with=way.joined_with,
    )


def _enrolled(identity: Identity, join: JoinString | None, mark: str) -> Way:
    named = join.endpoints if join is not None else ()
    endpoints = tuple(dict.fromkeys([*named, *identity.endpoints]))[:ENDPOINTS_MAX]
    is_new = join is not None and mark != identity.joined_with
    keys = join_keys(join) if join is not None and is_new else None
    return Way(identity, endpoints, identity.server_key.encode(), keys, mark or identity.joined_with, is_new, "")


def _parked(identity: Identity | None, parked: Parked) -> Way:
    nobody = identity if identity is not None else new_identity()
    return Way(nobody, nobody.endpoints, nobody.server_key.encode(), None, parked.joined_with, False, parked.reason)


def wait_for_join_string(
    settings: WorkerSettings, log: Log, slot: Slot, should_stop: Callable[[], bool]
) -> JoinString | None:
    """The join string of the settings or of the file, waited for where there is no other way in.

    None when there is none and none is needed, or when told to stop. Raises SettingsError after the deadline and
    ProtocolError for a string that is none.
    """
    text = settings.join.get_secret_value().strip()
    if text or settings.join_file is None:
        return parse_join_string(text) if text else None
    deadline = time.monotonic() + settings.join_wait_s
    said = False
    while not (text := read_join_file(settings.join_file)):
        if should_stop() or not needs_join_string(slot):
            return None
        if time.monotonic() >= deadline:
            raise SettingsError(
                f"no join string came into {settings.join_file} in {settings.join_wait_s:.0f} s; "
                "is the master running, and does it write there?"
            )
        if not said:
            log("JOIN", f"waiting for the master to write {settings.join_file}, up to {settings.join_wait_s:.0f} s")
            said = True
        time.sleep(LOOK_EVERY_S)
    return parse_join_string(text)


def read_join_file(path: Path) -> str:
    """The join string in the file; empty while there is none. Raises ProtocolError, with the path, for another text."""
    try:
        text = decode_join_string(path.read_bytes())
        if text:
            parse_join_string(text)
    except OSError:
        return ""
    except ProtocolError as error:
        raise ProtocolError(f"{path}: {error.sentence}", code=error.code) from None
    return text
