"""The join string: comes back as it was, forgives how people paste, and notices any damage."""

import base64
import codecs
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
    decode_join_string,
    derive_key,
    format_join_string,
    parse_join_string,
)
from services.common.protocol.limits import ENDPOINT_BYTES_MAX, ENDPOINTS_MAX

JOIN = JoinString(("tcp://192.0.2.7:47820", "tcp://lab.example:47820", "tcp://[2001:db8::1]:9"), b"k" * 32, b"s" * 32)
TEXT = format_join_string(JOIN)


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


NO_ENDPOINTS = [
    *("", "tcp://", "tcp://a", "http://a:1", "//a:1", "a:1", "tcp://:1", "tcp://a:", "tcp://a:x", "tcp://a:1:2"),
    *("tcp://a:0", "tcp://a:00000", "tcp://a:65536", "tcp://a:99999", "tcp://a:000001", "tcp://a:-1", "tcp://a:+1"),
    *("tcp://a b:1", " tcp://a:1", "tcp://a:1 ", "tcp://a:1\n", "tcp://a\n:1", "tcp://a\x00:1", "tcp://\x1b[1m:1"),
    *("tcp://-a:1", "tcp://a-:1", "tcp://a;b:1", "tcp://a_b:1", "tcp://a/b:1", "tcp://u@a:1", "tcp://*:1", "tcp://.:1"),
    *("tcp://.a:1", "tcp://a.:1", "tcp://a..b:1", "tcp://a.-b:1", "tcp://a-.b:1", f"tcp://{'a' * 64}.b:1"),
    *("tcp://\u00e4:1", "tcp://a:\u0661", "tcp://\udcff:1"),  # \u0661 is an Arabic 1, which int() would take
    *("tcp://[]:1", "tcp://[:]:1", "tcp://[zz]:1", "tcp://[1::2::3]:1", "tcp://[12345::]:1", "tcp://[192.0.2.7]:1"),
    *("tcp://2001:db8::1:9", "tcp://[::1:9", "tcp://::1]:9", "tcp://[fe80::1%]:1", "tcp://[fe80::1%a b]:1"),
]


@pytest.mark.parametrize("endpoint", NO_ENDPOINTS, ids=ascii)
def test_what_is_no_endpoint_is_refused_by_name(endpoint: str) -> None:
    with pytest.raises(ProtocolError, match=r"is not tcp://host:port"):
        check_endpoint(endpoint)
    with pytest.raises(ProtocolError):
        format_join_string(JoinString((endpoint,), b"k" * 32, b"s" * 32))


@pytest.mark.parametrize(
    "endpoint",
    [
        *("tcp://a:1", "tcp://A-1.b-2.C:65535", f"tcp://{'a' * 63}.b:1", "tcp://192.0.2.7:47820", "tcp://xn--4ca:1"),
        *("tcp://[::1]:1", "tcp://[::]:1", "tcp://[2001:DB8::1]:9", "tcp://[::ffff:192.0.2.7]:9"),
        "tcp://[fe80::1%en0]:9",
    ],
)
def test_what_is_an_endpoint_is_taken_as_it_is(endpoint: str) -> None:
    assert check_endpoint(endpoint) == endpoint
    join = JoinString((endpoint,), b"k" * 32, b"s" * 32)
    assert parse_join_string(format_join_string(join)) == join


def long_endpoint(length: int) -> str:
    """An endpoint of so many bytes, with good labels."""
    host = ".".join(["a" * 60] * 5)[: length - len("tcp://:47820")]
    return f"tcp://{host}:47820"


def test_an_endpoint_has_at_most_255_bytes() -> None:
    longest = long_endpoint(ENDPOINT_BYTES_MAX)
    join = JoinString((longest,) * ENDPOINTS_MAX, b"k" * 32, b"s" * 32)
    assert parse_join_string(format_join_string(join)) == join
    for endpoint in (long_endpoint(ENDPOINT_BYTES_MAX + 1), f"tcp://{'a' * 5000}:1"):
        with pytest.raises(ProtocolError) as refused:
            format_join_string(JoinString((endpoint,), b"k" * 32, b"s" * 32))
        sentence = refused.value.sentence
        assert sentence.endswith(f"is {len(endpoint)} bytes long, allowed are 255; use a shorter name, or an address")
        assert len(sentence) < 200


@pytest.mark.parametrize(
    "raw",
    [
        TEXT.encode(),
        TEXT.encode("utf-8-sig"),  # PowerShell: Out-File -Encoding utf8
        TEXT.encode("utf-16"),  # PowerShell: >
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
        f"\r\n{TEXT}\r\n".encode("utf-16"),
    ],
    ids=range(5),
)
def test_a_file_is_read_as_windows_writes_it(raw: bytes) -> None:
    assert parse_join_string(decode_join_string(raw)) == JOIN


def test_an_empty_file_holds_an_empty_text() -> None:
    for raw in (b"", b" \r\n", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, "\r\n".encode("utf-16")):
        assert decode_join_string(raw) == ""


@pytest.mark.parametrize(
    "raw", [b"\xff", b"mahe1.\xe4", codecs.BOM_UTF16_LE + b"m", codecs.BOM_UTF16_LE + b"\x00\xd8", bytes(range(256))]
)
def test_a_file_that_holds_no_text_is_a_damaged_join_string(raw: bytes) -> None:
    with pytest.raises(ProtocolError, match="damaged or cut short; copy the whole line again") as refused:
        decode_join_string(raw)
    assert refused.value.code == "JOIN_STRING"


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_join_string(decode_join_string(raw))


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
