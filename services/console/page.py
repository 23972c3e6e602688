"""The page and its files, read once at start and served from memory; the token is put into `index.html` as it is sent.

Names and types come from a table: no path of a request ever reaches the file system, and no registry of the platform
decides what a script is.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

FOLDER = Path(__file__).parent / "static"
INDEX = "index.html"
TOKEN_MARK = "{{token}}"  # noqa: S105 - where the token goes
TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".json": "application/json",
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
            body = path.read_bytes()
            etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            assets[path.relative_to(folder).as_posix()] = Asset(body, TYPES[path.suffix], etag)
    return assets


def index(token: str) -> Response:
    """The page itself, with the token for its requests; never stored."""
    text = (FOLDER / INDEX).read_text("utf-8").replace(TOKEN_MARK, token)
    return HTMLResponse(text, headers={"cache-control": "no-store"})


def asset_response(asset: Asset, request: Request) -> Response:
    """One file; a browser that has these very bytes is told so."""
    headers = {"etag": asset.etag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=headers)
    return Response(asset.body, media_type=asset.media_type, headers=headers)
