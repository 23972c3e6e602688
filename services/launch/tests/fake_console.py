"""A console for the tests of commands: it answers over HTTP what a test has put there, and keeps what it was asked."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from services.launch import places
from services.launch.console_client import Link

UNKNOWN = (404, {"code": "RUN_UNKNOWN", "detail": "there is no such run"})


class FakeConsole:
    """`answers`: the body, or (status, body), by path or by path with query; `asked`: method, path and body."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"/healthz": {"status": "alive"}}
        self.asked: list[tuple[str, str, Any]] = []
        self.url = ""

    @property
    def link(self) -> Link:
        return Link(self.url, "t")

    def write_link(self, home: Path) -> None:
        """Be found as the console of `mahe up` is found."""
        file = places.console_file(home / "console")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"url": self.url, "token": "t"}))

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and body."""
        self.asked.append((method, path, body))
        found = self.answers.get(path, self.answers.get(path.partition("?")[0], UNKNOWN))
        return found if isinstance(found, tuple) else (200, found)


@contextmanager
def serving() -> Iterator[FakeConsole]:
    """One that serves on a free port."""
    told = FakeConsole()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send(*told.answer("GET", self.path, None))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send(*told.answer("POST", self.path, body))

        def send(self, status: int, body: Any) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 its name upstream
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        told.url = f"http://127.0.0.1:{server.server_port}"
        yield told
        server.shutdown()
        thread.join()
