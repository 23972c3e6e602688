"""The join string: comes back as it was, forgives how people paste, and notices any damage."""

import base64
import hashlib
import hmac
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import ProtocolError
from services.common.protocol.join_string import (
    JoinString,
    check_endpoint,
    derive_key,
    format_join_string,
    parse_join_string,
)
from services.common.protocol.limits import ENDPOINTS_MAX

JOIN = JoinString(("tcp://192.0.2.7:47820", "tcp://lab.example:47820", "tcp://[2001:db8::1]:9"), b"k" * 32, b"s" * 32)


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32), st.integers(1, ENDPOINTS_MAX))
def test_it_comes_back_as_it_was(key: bytes, secret: bytes, count: int) -> None:
    join = JoinString(tuple(f"tcp://pc-{at}.example:{at + 1}" for at in range(count)), key, secret)
    assert parse_join_string(format_join_string(join)) == join


def test_blanks_line_breaks_and_capitals_are_forgiven() -> None:
    text = format_join_string(JOIN)
    assert parse_join_string(f"  {text[:50]}\n   {text[50:].upper()}\r\n") == JOIN


def test_every_changed_letter_and_every_cut_is_noticed() -> None:
    text = format_join_string(JOIN)
    for at in range(len(text)):
        other = "b" if text[at] != "b" else "c"
        with pytest.raises(ProtocolError):
            parse_join_string(text[:at] + other + text[at + 1 :])
        with pytest.raises(ProtocolError):
            parse_join_string(text[:at])


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    for candidate in (text, "mahe1." + text):
        with pytest.raises(ProtocolError):
            parse_join_string(candidate)


def test_a_forged_string_with_a_right_checksum_is_refused_as_damaged() -> None:
    for rest in (b"\x05", b"\x02\x09tcp://a:1", b"\x01\x02\xff\xfe"):
        body = bytes([1]) + b"k" * 32 + b"s" * 32 + rest
        body += zlib.crc32(body).to_bytes(4, "little")
        with pytest.raises(ProtocolError):
            parse_join_string("mahe1." + base64.b32encode(body).decode().rstrip("=").lower())


@pytest.mark.parametrize(
    "endpoint",
    ["", "tcp://", "tcp://a", "tcp://a:0", "tcp://a:65536", "http://a:1", "tcp://a b:1", "tcp://-a:1", "tcp://a;b:1"],
)
def test_what_is_no_endpoint_is_refused_by_name(endpoint: str) -> None:
    with pytest.raises(ProtocolError, match=r"is not tcp://host:port"):
        check_endpoint(endpoint)
    with pytest.raises(ProtocolError):
        format_join_string(JoinString((endpoint,), b"k" * 32, b"s" * 32))


def test_none_or_too_many_endpoints_are_refused() -> None:
    for count in (0, ENDPOINTS_MAX + 1):
        with pytest.raises(ProtocolError, match=f"{count} endpoints, allowed are 1 to {ENDPOINTS_MAX}"):
            format_join_string(JoinString(("tcp://a:1",) * count, b"k" * 32, b"s" * 32))


def test_the_derived_key_is_hkdf_sha256() -> None:
    """RFC 5869 with an empty salt, 32 bytes: extract, then one block of expand."""
    extracted = hmac.new(bytes(32), b"secret", hashlib.sha256).digest()
    assert derive_key(b"secret", "purpose") == hmac.new(extracted, b"purpose\x01", hashlib.sha256).digest()
    assert derive_key(b"secret", "purpose") != derive_key(b"secret", "another purpose")
    # RFC 5869 appendix A.3 (salt and info empty), first 32 bytes of its output.
    expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
    assert derive_key(b"\x0b" * 22, "").hex() == expected
