"""Who may connect: enrolled workers' own keys, and one derived key for each join secret (which may only ENROL).

The ZAP callback runs in ZeroMQ's authenticator thread for every handshake: a dictionary lookup and a counter.
Everything else here belongs to the loop.
"""

import secrets
from dataclasses import dataclass
from pathlib import Path

from services.common.errors import ProtocolError
from services.common.host.files import keep_private
from services.common.host.logs import clean_text
from services.common.protocol.join_string import PURPOSE_JOIN, JoinString, derive_key, format_join_string
from services.common.protocol.messages import Enrol
from services.master.shell.keys import MasterKeys, public_of
from services.master.shell.store import Store, wall_ms

LOCAL_LABEL = "this PC"
ENROLS_FAILED_MAX = 10  # per join key and minute; then AUTH_RATE_LIMITED
RATE_MS = 60_000
NAME_MAX = 64  # characters


@dataclass(frozen=True)
class Guest:
    """A connection under a join key."""

    join: int


@dataclass(frozen=True)
class Member:
    """A connection under an enrolled worker's key."""

    worker: str
    name: str


class Admission:
    """Also the ZAP credentials provider for both domains."""

    def __init__(self, store: Store, keys: MasterKeys) -> None:
        self._store, self._keys = store, keys
        self._admitted: dict[str, Guest | Member] = {}
        self._failures: dict[int, list[int]] = {}
        self.refused_keys = 0  # written by the authenticator thread only
        for worker, name, public_key in store.workers():
            self._admitted[public_key] = Member(worker, name)
        for join, _, secret, *_ in store.joins():
            self._admitted[public_of(derive_key(secret, PURPOSE_JOIN))] = Guest(join)

    def callback(self, domain: str, key: bytes) -> bool:
        """ZAP: may this Z85 key connect to this domain?"""
        text = key.decode()
        allowed = text == self._keys.console_public if domain == "mahe-console" else text in self._admitted
        if not allowed:
            self.refused_keys += 1
        return allowed

    def who(self, key: str) -> Guest | Member | None:
        """Whose connection it is; None when the key was revoked since."""
        return self._admitted.get(key)

    def names(self) -> dict[str, str]:
        """Name of each enrolled worker by id."""
        return {one.worker: one.name for one in self._admitted.values() if isinstance(one, Member)}

    def enrol(self, guest: Guest, message: Enrol, now_ms: int) -> Member:
        """Admit a worker's own key, once; the same key again gets the same answer. Raises ProtocolError(AUTH_...)."""
        known = self._admitted.get(message.public_key)
        if isinstance(known, Member):
            return known
        join = next((one for one in self._store.joins() if one[0] == guest.join), None)
        expires_ms, uses_left = (join[4], join[5]) if join is not None else (None, 0)
        if expires_ms is not None and wall_ms() > expires_ms:
            raise ProtocolError("this join string has expired; get a new one from the page", code="AUTH_EXPIRED")
        if uses_left is not None and uses_left <= 0:
            raise ProtocolError("this join string is used up; get a new one from the page", code="AUTH_USED_UP")
        if len(self._recent_failures(guest.join, now_ms)) >= ENROLS_FAILED_MAX:
            raise ProtocolError("too many failed joins with this join string; wait a minute", code="AUTH_RATE_LIMITED")
        if known is not None or len(set(message.public_key)) < 8:
            self._failures.setdefault(guest.join, []).append(now_ms)
            raise ProtocolError("field public_key is not an own key; make a new key pair", code="AUTH_KEY")
        worker = f"w-{secrets.token_hex(4)}"
        name = self._free_name(clean_text(message.name, length_max=NAME_MAX).strip() or worker)
        self._store.enrol(worker, name, message.public_key, guest.join)
        member = Member(worker, name)
        self._admitted[message.public_key] = member
        return member

    def _free_name(self, wanted: str) -> str:
        """Scaled workers and PCs set up alike say the same name; people tell them apart by a number."""
        taken = set(self.names().values())
        name, number = wanted, 1
        while name in taken:
            number += 1
            name = f"{wanted[: NAME_MAX - 5]}-{number}"
        return name

    def revoke_worker(self, worker: str) -> None:
        """Its key opens nothing any more."""
        self._store.revoke(worker)
        self._forget(lambda one: isinstance(one, Member) and one.worker == worker)

    def add_join(self, label: str, endpoints: list[str], expires_s: int | None, uses: int | None) -> tuple[int, str]:
        """A new join secret; returns its id and the join string. Raises ProtocolError for a bad endpoint."""
        secret = secrets.token_bytes(32)
        text = format_join_string(JoinString(tuple(endpoints), self._keys.public_raw, secret))
        expires_ms = None if expires_s is None else wall_ms() + 1000 * expires_s
        join = self._store.add_join(clean_text(label, length_max=64), secret, expires_ms, uses)
        self._admitted[public_of(derive_key(secret, PURPOSE_JOIN))] = Guest(join)
        return join, text

    def revoke_join(self, join: int) -> bool:
        """The secret opens nothing any more; enrolled workers stay. False when there is none."""
        self._forget(lambda one: isinstance(one, Guest) and one.join == join)
        return self._store.revoke_join(join)

    def write_local_join(self, path: Path, endpoints: list[str]) -> None:
        """The join string for workers on this PC, in a private file; its secret stays the same over restarts."""
        kept = next((one[2] for one in self._store.joins() if one[1] == LOCAL_LABEL), None)
        if kept is None:
            _, text = self.add_join(LOCAL_LABEL, endpoints, None, None)
        else:
            text = format_join_string(JoinString(tuple(endpoints), self._keys.public_raw, kept))
        keep_private(path, text.encode() + b"\n", "join-file")

    def _forget(self, gone: object) -> None:
        assert callable(gone)
        # A new dictionary in one assignment: the authenticator thread never sees one that is being changed.
        self._admitted = {key: one for key, one in self._admitted.items() if not gone(one)}

    def _recent_failures(self, join: int, now_ms: int) -> list[int]:
        recent = [at for at in self._failures.get(join, []) if now_ms - at < RATE_MS]
        self._failures[join] = recent
        return recent
