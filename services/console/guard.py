"""The gate before everything else: Host, Origin, token, content type, body size; and the headers of every answer.

Loopback is no security boundary: any page in the same browser can reach 127.0.0.1 (DNS rebinding, cross-site POST).
Pure ASGI: BaseHTTPMiddleware would hide a closed stream from its handler.
"""

import hmac
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.common.errors import MaheError
from services.common.host.logs import Log
from services.console.codes import status_of
from services.console.page import import_map_source
from services.console.problems import MEDIA_TYPE, BrokenTransfer, problem_json

BODY_BYTES_MAX = 64 * 1024
TOKEN_HEADER = "x-mahe-token"  # noqa: S105 - the name of a header, not a token
PROTECTED = "/api"
PAGE = "/"
CSP = (
    f"default-src 'none'; script-src 'self' {import_map_source()}; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
NO_STORE = "no-store"
_OWN_SITES = frozenset({"", "none", "same-origin"})
_JSON = "application/json"


class Refusal(MaheError):
    """Why a request is not let in."""


class Guard:
    """Wraps the application. `hosts` are the exact Host values that are answered; `refused` is told each code."""

    def __init__(
        self, app: ASGIApp, hosts: frozenset[str], token: str, log: Log, refused: Callable[[str], None]
    ) -> None:
        self._app = app
        self._log = log
        self._hosts = hosts
        self._origins = frozenset(f"http://{host}" for host in hosts)
        self._token = token.encode()
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # the server is told to speak no WebSocket
        headed = _with_headers(send)
        try:
            headers = Headers(scope=scope)
            self._check(scope, headers)
            body = await _read_body(headers, receive)
        except Refusal as refusal:
            self._refused(refusal.code)
            await _answer(headed, scope["path"], refusal)
            return
        if body is None:
            return
        try:
            await self._app(scope, _replay(body, receive), headed)
        except BrokenTransfer as broken:
            self._log("WARN", f"a download ended early: {broken.sentence}")  # not ended properly: the server cuts it

    def _check(self, scope: Scope, headers: Headers) -> None:
        host = headers.get("host", "").lower()
        if host not in self._hosts:
            raise Refusal(
                f"Host is {host[:100]!r}, answered are {', '.join(sorted(self._hosts))}; "
                "open one of these, or name yours in MAHE_CONSOLE_HOSTS",
                code="HOST_REJECTED",
            )
        self._check_origin(scope, headers)
        path = scope["path"]
        if path == PROTECTED or path.startswith(PROTECTED + "/"):
            given = headers.get(TOKEN_HEADER, "").encode()
            if not hmac.compare_digest(given, self._token):
                raise Refusal(
                    "the header X-MAHE-Token is missing or wrong; reload the page, or run mahe open",
                    code="TOKEN_REJECTED",
                )
        _check_type(headers)

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "")
        if origin is not None and origin.lower() not in self._origins:
            raise Refusal(f"Origin is {origin[:100]!r}; only this console's own page may ask", code="ORIGIN_REJECTED")
        if site in _OWN_SITES:
            return
        # A link on another site may open the page (it cannot read it), and nothing else.
        link = (scope["method"], headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"), scope["path"])
        if link != ("GET", "navigate", "document", PAGE):
            raise Refusal(f"the request comes from another site (Sec-Fetch-Site: {site[:40]})", code="ORIGIN_REJECTED")


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _check_type(headers: Headers) -> None:
    given = headers.get("content-type")
    plain = (given or "").partition(";")[0].strip().lower()
    if plain != _JSON and (given is not None or _has_body(headers)):
        raise Refusal(f"Content-Type is {(given or '')[:100]!r}, allowed is {_JSON}", code="CONTENT_TYPE")


async def _read_body(headers: Headers, receive: Receive) -> bytes | None:
    """The whole body; it is small, or refused before it is held. None: it was cut, and half a request is none."""
    if not _has_body(headers):
        return b""
    length = headers.get("content-length", "")
    body = bytearray()
    while True:
        if (length.isdigit() and int(length) > BODY_BYTES_MAX) or len(body) > BODY_BYTES_MAX:
            raise Refusal(f"the body is over {BODY_BYTES_MAX} bytes, which is the limit here", code="BODY_TOO_LARGE")
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            if len(body) <= BODY_BYTES_MAX:
                return bytes(body)
            length = ""


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body once, then what comes from the connection (its end)."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return message

    return replayed


def _with_headers(send: Send) -> Send:
    """Every answer carries HEADERS, and is not stored unless it says how."""

    async def headed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", NO_STORE)
        await send(message)

    return headed


async def _answer(send: Send, path: str, refusal: Refusal) -> None:
    status = status_of(refusal.code)
    body = problem_json(status, refusal.code, refusal.sentence, path)
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
