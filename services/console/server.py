"""One console process: token, socket, console.json, and a server that ends its open streams when it is told to stop.

uvicorn does not tell a stream that it stops: `handle_exit` does it here, and the process still ends with code 0.
"""

import asyncio
import json
import logging
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import uvicorn

from services.common.errors import SettingsError
from services.common.host.files import FolderLock, make_folder, write_durably
from services.common.host.logs import Log
from services.common.protocol.reasons import because
from services.console.app import build
from services.console.context import Console
from services.console.dialog import FolderDialog
from services.console.hub import Hub, LinkState
from services.console.init import Initiator
from services.console.link import Link, now_ms
from services.console.listener import open_socket, page_url
from services.console.settings import PREFIX, ConsoleSettings
from services.console.slow_senders import close_slow_senders

TOKEN_FILE = "token"  # noqa: S105 - its name
PLACE_FILE = "console.json"
TOKEN_BYTES = 32
STOP_S = 3  # a backstop for a reader that takes nothing any more
CONNECTIONS_MAX = 512


class ConsoleProcess:
    """Everything of one console. `run` blocks until `stop` or a signal."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self._settings = settings
        self._log = Log("console", settings.log)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hub = Hub(LinkState("connecting", now_ms(), because("LINK_LOOKING")))
        self._dialog = FolderDialog()
        self._server: uvicorn.Server | None = None

    def run(self, on_ready: Callable[[str, str], None] | None = None) -> None:
        """Serve the page. `on_ready(url, token)` is called once it can be opened. Raises SettingsError."""
        settings = self._settings
        folder = make_folder(settings.data)
        lock = FolderLock(folder)
        if not lock.acquire():
            raise SettingsError(
                f"another console uses the folder {folder}{_its_url(folder)}; open that one, "
                f"or give this one its own with {PREFIX}DATA",
                code="CONSOLE_RUNNING",
            )
        try:
            token = read_token(folder)
            with open_socket(settings.bind, settings.port) as listener:
                asyncio.run(self._serve(listener, folder, token, on_ready))
        finally:
            (folder / PLACE_FILE).unlink(missing_ok=True)
            lock.release()

    def stop(self) -> None:
        """End `run`, from any thread."""
        server = self._server
        if server is not None and not server.should_exit:
            server.should_exit = True
            self._say_goodbye()

    def _on_signal(self, sig: int, frame: FrameType | None) -> None:
        """Instead of uvicorn's own: nothing is recorded, so that the signal is not raised again and the code is 0."""
        self.stop()

    async def _serve(
        self, listener: socket.socket, folder: Path, token: str, on_ready: Callable[[str, str], None] | None
    ) -> None:
        settings = self._settings
        self._loop = asyncio.get_running_loop()
        port = int(listener.getsockname()[1])
        url = page_url(settings, port)
        link = Link(self._hub, settings.control_dir, settings.master, settings.control_wait_s, self._log)
        init = Initiator(self._hub, link.command, settings.ui_wait_s, self._log)
        console = Console(self._hub, link, token, init, settings, self._dialog)
        app = build(console, settings.hosts_allowed(port), self._log)
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=STOP_S,
        )
        self._server = uvicorn.Server(config)
        self._server.handle_exit = self._on_signal  # type: ignore[method-assign]
        place = json.dumps({"url": url, "token": token}).encode()
        write_durably(folder / PLACE_FILE, place, private=True)
        self._log("CONSOLE", f"the page is at {url}")
        if on_ready is not None:
            on_ready(url, token)
        closing = asyncio.create_task(close_slow_senders(self._server.server_state.connections))
        with _server_lines(self._log):
            await self._server.serve(sockets=[listener])
        closing.cancel()
        self._log("CONSOLE", "stopped")

    def _say_goodbye(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._hub.close)
        self._loop.call_soon_threadsafe(self._dialog.close)


def read_token(folder: Path) -> str:
    """The token of this console: made at first start, kept since, readable by this user only."""
    path = folder / TOKEN_FILE
    try:
        token = path.read_text("ascii").strip()
    except FileNotFoundError:
        token = ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read ({error}); let this user read it, or remove it") from None
    if len(token) < TOKEN_BYTES:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        write_durably(path, token.encode() + b"\n", private=True)
    return token


def _its_url(folder: Path) -> str:
    try:
        return f" at {json.loads((folder / PLACE_FILE).read_bytes())['url']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


@contextmanager
def _server_lines(log: Log) -> Iterator[None]:
    """uvicorn's warnings and errors in our form: one line each, an exception as its last words."""

    def take(record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING:
            message = record.getMessage().partition("\n")[0]
            error = record.exc_info[1] if record.exc_info else None
            words = message if error is None else f"{message}: {type(error).__name__}: {error}"
            log("ERROR" if record.levelno >= logging.ERROR else "WARN", words)
        return False  # and nobody else writes it

    logger = logging.getLogger("uvicorn.error")
    logger.addFilter(take)
    try:
        yield
    finally:
        logger.removeFilter(take)
