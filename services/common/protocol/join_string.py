"""The join string: all that a worker needs to find, trust and enter a cluster, in one pasted line.

`mahe1.` + Base32 (RFC 4648, lower case, no padding) of: version byte, master's CURVE public key (32 bytes), join secret
(32 bytes), number of endpoints, each endpoint as length byte + UTF-8, CRC-32 of all before it (little-endian).
The worker's CURVE key under which it may only ENROL is HKDF-SHA256(join secret) (RFC 5869), so nothing secret travels.
"""

import base64
import codecs
import hashlib
import hmac
import ipaddress
import re
import zlib
from dataclasses import dataclass

from services.common.errors import ProtocolError, quoted
from services.common.protocol.limits import ENDPOINT_BYTES_MAX, ENDPOINTS_MAX

PREFIX = "mahe1."
_VERSION = 1
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"  # RFC 1123 section 2.1
_IPV6 = r"\[(?P<ipv6>[0-9A-Fa-f:.]+)(?:%[A-Za-z0-9._-]+)?\]"
_ENDPOINT = re.compile(rf"tcp://(?:{_IPV6}|{_LABEL}(?:\.{_LABEL})*):(?P<port>[0-9]{{1,5}})")


@dataclass(frozen=True)
class JoinString:
    """What a join string carries. `endpoints` are tried in order; `server_key` pins the master (CURVE's word)."""

    endpoints: tuple[str, ...]
    server_key: bytes  # [32]
    secret: bytes  # [32]


def check_endpoint(endpoint: str) -> str:
    """The endpoint itself, if it is `tcp://host:port`; raises ProtocolError naming it otherwise."""
    if len(endpoint) > ENDPOINT_BYTES_MAX:
        raise ProtocolError(
            f"endpoint {quoted(endpoint)} is {len(endpoint)} bytes long, allowed are {ENDPOINT_BYTES_MAX}; "
            "use a shorter name, or an address",
            code="ENDPOINT",
        )
    if not _is_endpoint(endpoint):
        raise ProtocolError(
            f"endpoint {quoted(endpoint)} is not tcp://host:port with a port of 1 to 65535; correct it", code="ENDPOINT"
        )
    return endpoint


def format_join_string(join: JoinString) -> str:
    """One line to paste; raises ProtocolError when an endpoint is not one or there are none or too many."""
    if not 1 <= len(join.endpoints) <= ENDPOINTS_MAX:
        raise ProtocolError(f"{len(join.endpoints)} endpoints, allowed are 1 to {ENDPOINTS_MAX}", code="ENDPOINT")
    body = bytes([_VERSION]) + join.server_key + join.secret + bytes([len(join.endpoints)])
    for endpoint in join.endpoints:
        raw = check_endpoint(endpoint).encode()
        body += bytes([len(raw)]) + raw
    body += zlib.crc32(body).to_bytes(4, "little")
    return PREFIX + base64.b32encode(body).decode().rstrip("=").lower()


def parse_join_string(text: str) -> JoinString:
    """Read a pasted join string (blanks around it and line breaks in it are forgiven); raises ProtocolError."""
    compact = "".join(text.split()).lower()
    if not compact.startswith(PREFIX):
        raise ProtocolError(
            f"a join string begins with {PREFIX!r}, this begins with {compact[:8]!r}; copy it again", code="JOIN_STRING"
        )
    encoded = compact[len(PREFIX) :].upper()
    try:
        body = base64.b32decode(encoded + "=" * (-len(encoded) % 8))
    except ValueError:  # also letters that are not ASCII
        raise _damaged() from None
    if len(body) < 70 or zlib.crc32(body[:-4]).to_bytes(4, "little") != body[-4:]:
        raise _damaged()
    if body[0] != _VERSION:
        raise ProtocolError(
            f"join string of version {body[0]}, this MAHE reads {_VERSION}; install the same MAHE", code="JOIN_STRING"
        )
    endpoints, at = [], 66
    try:
        for _ in range(body[65]):
            length = body[at]
            endpoints.append(check_endpoint(body[at + 1 : at + 1 + length].decode()))
            at += 1 + length
    except (IndexError, UnicodeDecodeError):
        raise _damaged() from None
    return JoinString(tuple(endpoints), body[1:33], body[33:65])


def decode_join_string(raw: bytes) -> str:
    """The text of a file that holds a join string, without blanks around it; raises ProtocolError when it is no text.

    UTF-8, or what Windows makes of it: with a byte order mark, or UTF-16 (PowerShell's `>`).
    """
    utf_16 = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return raw.decode("utf-16" if utf_16 else "utf-8-sig").strip()
    except UnicodeDecodeError:
        raise _damaged() from None


def derive_key(secret: bytes, purpose: str) -> bytes:
    """32 bytes: HKDF-SHA256 (RFC 5869) of a secret with an empty salt and `purpose` as info."""
    prk = hmac.new(b"\x00" * 32, secret, hashlib.sha256).digest()
    return hmac.new(prk, purpose.encode() + b"\x01", hashlib.sha256).digest()


PURPOSE_JOIN = "mahe/worker-curve/v1"
PURPOSE_CONSOLE = "mahe/console-curve/v1"


def _is_endpoint(text: str) -> bool:
    match = _ENDPOINT.fullmatch(text)
    if match is None or not 1 <= int(match["port"]) <= 65535:
        return False
    try:
        ipaddress.IPv6Address(match["ipv6"] or "::")
    except ValueError:
        return False
    return True


def _damaged() -> ProtocolError:
    return ProtocolError("the join string is damaged or cut short; copy the whole line again", code="JOIN_STRING")
