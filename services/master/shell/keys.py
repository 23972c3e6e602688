"""The master's long-lived secrets, made at first start: its CURVE key pair and the console's secret. Files are 0600."""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

import zmq
from zmq.utils import z85

from services.common.host.files import keep_private
from services.common.protocol.join_string import PURPOSE_CONSOLE, derive_key


@dataclass(frozen=True)
class MasterKeys:
    """Z85 text, as ZeroMQ takes it; the console's secret as hex."""

    public: bytes
    secret: bytes
    console_secret: str

    @property
    def public_raw(self) -> bytes:
        """The public key as the 32 bytes that a join string carries."""
        return bytes(z85.decode(self.public))

    @property
    def beacon_key(self) -> str:
        """What enrolled workers check beacons with (Z85)."""
        return z85.encode(derive_key(z85.decode(self.secret), "mahe/beacon/v1")).decode()

    @property
    def console_public(self) -> str:
        """The only key that the control port admits (Z85)."""
        return public_of(derive_key(bytes.fromhex(self.console_secret), PURPOSE_CONSOLE))


def public_of(secret: bytes) -> str:
    """Z85 public key of 32 secret bytes."""
    return zmq.curve_public(z85.encode(secret)).decode()


def load_keys(folder: Path) -> MasterKeys:
    """Read the keys, or make and keep them at the first start."""
    path = folder / "master-keys.json"
    if not path.exists():
        public, secret = zmq.curve_keypair()
        kept = {"public": public.decode(), "secret": secret.decode(), "console_secret": secrets.token_hex(32)}
        keep_private(path, json.dumps(kept).encode(), "keys")
    kept = json.loads(path.read_text())
    return MasterKeys(kept["public"].encode(), kept["secret"].encode(), kept["console_secret"])
