"""The page and its files, read once at start and served from memory; the token is put into `index.html` as it is sent.

Names and types come from a table: no path of a request ever reaches the file system, and no registry of the platform
decides what a script is.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from services.console.vendor import NOTE, VENDOR

FOLDER = Path(__file__).parent / "static"
INDEX = "index.html"
DOCS = "docs.html"
TOKEN_MARK = "{{token}}"  # noqa: S105 - where the token goes
UNREADY = """<!doctype html><title>MAHE</title>
<p>The page's packages are not installed here. Run <code>make setup</code>, then reload. The API works without them.</p>
"""
IMPORT_MAP = re.compile(r'<script type="importmap">(.*?)</script>', re.DOTALL)
TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".json": "application/json",
    ".html": "text/html; charset=utf-8",
}


@dataclass(frozen=True)
class Asset:
    """One file of the page."""

    body: bytes
    media_type: str
    etag: str


def load_assets(folder: Path = FOLDER) -> dict[str, Asset]:
    """The files of the page by their path below `folder`, with slashes; other kinds of file are left out."""
    assets: dict[str, Asset] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in TYPES:
            assets[path.relative_to(folder).as_posix()] = asset(path.read_bytes(), path.suffix)
    del assets[INDEX]  # it is never served without a token in it
    return assets


def asset(body: bytes, suffix: str) -> Asset:
    """A file of this kind."""
    return Asset(body, TYPES[suffix], f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def index(token: str) -> Response:
    """The page itself, with the token for its requests; never stored."""
    headers = {"cache-control": "no-store"}
    if not (VENDOR / NOTE).is_file():
        return HTMLResponse(UNREADY, 503, headers)
    text = (FOLDER / INDEX).read_text("utf-8").replace(TOKEN_MARK, token)
    return HTMLResponse(text, headers=headers)


def import_map_source() -> str:
    """How the content security policy names the one inline script, the import map: by its SHA-256 (CSP 3, 2.3.1)."""
    found = IMPORT_MAP.search((FOLDER / INDEX).read_text("utf-8"))
    assert found is not None, f"{INDEX} has no import map"
    return f"'sha256-{base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()}'"


def asset_response(asset: Asset, request: Request) -> Response:
    """One file; a browser that has these very bytes is told so."""
    headers = {"etag": asset.etag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=headers)
    return Response(asset.body, media_type=asset.media_type, headers=headers)
