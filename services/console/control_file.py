"""Where the master is and how to prove that we may talk to it: the file `control.json` that it leaves for us.

Not for sockets: `sockets.py` uses what is read here.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from zmq.utils import z85

from services.common.errors import MaheError, SettingsError
from services.common.protocol.join_string import PURPOSE_CONSOLE, check_endpoint, derive_key
from services.common.protocol.reasons import Reason, because

FILE_NAME = "control.json"
FILE_BYTES_MAX = 64 * 1024
_SECRET = re.compile(r"^[0-9a-f]{64}$")


class NoPlaceError(SettingsError):
    """Where the master is cannot be read."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.text, code=reason.code)
        self.reason = reason


@dataclass(frozen=True)
class MasterPlace:
    """The master's control endpoint, its public key (Z85) and our secret key (Z85). Never logged whole."""

    endpoint: str
    server_key: bytes
    secret_key: bytes


def read_place(folder: Path, endpoint: str = "") -> MasterPlace:
    """What `folder/control.json` says, with `endpoint` in place of its own if given.

    Raises NoPlaceError with the reason: not there yet, not readable, or not what a master writes.
    """
    path = folder / FILE_NAME
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX)
    except FileNotFoundError:
        raise NoPlaceError(because("CONTROL_MISSING", path=str(path))) from None
    except OSError as error:
        why = error.strerror or str(error)
        raise NoPlaceError(because("CONTROL_UNREADABLE", path=str(path), why=why)) from None
    try:
        fields = json.loads(raw)
        server_key, secret = str(fields["server_key"]), str(fields["secret"])
        place = check_endpoint(endpoint or str(fields["endpoint"]))
        if len(server_key) != 40 or not _SECRET.match(secret):
            raise ValueError("a key has the wrong length")
        z85.decode(server_key.encode())
    except (MaheError, ValueError, KeyError, TypeError) as error:
        raise NoPlaceError(because("CONTROL_BAD", path=str(path), why=str(error))) from None
    return MasterPlace(place, server_key.encode(), z85.encode(derive_key(bytes.fromhex(secret), PURPOSE_CONSOLE)))
