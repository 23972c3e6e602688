"""The console's API as the command uses it: JSON requests and the stream of events, on this PC only.

Not for browsers or other PCs: the link is a file that only this user can read.
"""

import contextlib
import http.client
import json
import os
import queue
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from services.common.errors import MaheError

TIMEOUT_S = 15.0  # longer than the console waits for its master: the reason comes from there
STREAM_OPEN_S = 5.0
STREAM_SILENCE_S = 60.0
RETRY_S = 0.5
QUEUE_MAX = 10_000
PAGE_MAX = 500  # of a list, in one answer
RESYNC = "RESYNC"  # the kind of the event that says: some events were lost
TOKEN_HEADER = "X-MAHE-Token"  # noqa: S105 the name of a header


@dataclass(frozen=True)
class Event:
    """One thing that happened. `text` is what the log says after `[KIND]`."""

    kind: str
    text: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Link:
    """Where the console is, and the token that opens it; `folder` is where it says so."""

    url: str
    token: str
    folder: Path | None = None

    def fresh(self) -> "Link":
        """The same console as it is now: started again, it may be on another port."""
        return (read_link(self.folder) if self.folder is not None else None) or self

    def get(self, path: str) -> Any:
        """The answer to GET; raises MaheError NOT_REACHABLE, or the console's own code and sentence."""
        return self._ask("GET", path, None)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The answer to POST with a JSON body; errors as in `get`."""
        return self._ask("POST", path, body)

    def runs(self, limit: int) -> list[dict[str, Any]]:
        """The newest runs, newest first, at most `limit`."""
        return self._list("/api/v1/runs", limit)

    def run(self, run: str) -> dict[str, Any]:
        """One run, by its id; raises MaheError RUN_UNKNOWN."""
        answer: dict[str, Any] = self.get(run_path(run))
        return answer

    def rounds(self, run: str, after: int = 0) -> list[dict[str, Any]]:
        """The closed rounds of a run after this one, in order."""
        rows = self._list(f"{run_path(run)}/rounds", None)
        return sorted((row for row in rows if row["round"] > after), key=lambda row: int(row["round"]))

    def checkpoints(self, run: str) -> list[dict[str, Any]]:
        """The checkpoints kept of a run."""
        return self._list(f"{run_path(run)}/checkpoints", None)

    def snapshot(self) -> dict[str, Any]:
        """Run and workers as the console knows them; empty while the master has not answered it yet."""
        return self.get("/api/v1/state").get("snapshot") or {}

    def alive(self) -> bool:
        """Whether a console answers there."""
        try:
            self.get("/healthz")
        except MaheError:
            return False
        return True

    def connect(self, timeout_s: float) -> http.client.HTTPConnection:
        """A connection that no proxy setting can redirect."""
        parts = urlsplit(self.url)
        return http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout_s)

    def _list(self, path: str, limit: int | None) -> list[dict[str, Any]]:
        """The items of a list, page by page, at most `limit` of them."""
        items: list[dict[str, Any]] = []
        query: dict[str, Any] = {}
        while limit is None or len(items) < limit:
            size = PAGE_MAX if limit is None else min(PAGE_MAX, limit - len(items))
            answer = self.get(f"{path}?{urlencode({**query, 'limit': size})}")
            items += answer["items"]
            query = following(answer)
            if not query:
                break
        return items

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        connection = self.connect(TIMEOUT_S)
        headers = {TOKEN_HEADER: self.token, "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            raise MaheError(f"the console at {self.url} does not answer ({error})", code="NOT_REACHABLE") from None
        finally:
            connection.close()
        answer = _json(text)
        if response.status >= 400:
            problem = answer if isinstance(answer, dict) else {}
            sentence = problem.get("detail") or problem.get("title") or f"HTTP {response.status} for {method} {path}"
            raise MaheError(str(sentence), code=str(problem.get("code", "HTTP_ERROR")))
        return answer


class EventStream:
    """Events from now on (the stream is open when this returns), in order, over reconnects. Close it when done."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._events: queue.Queue[Event] = queue.Queue(QUEUE_MAX)
        self._connection: http.client.HTTPConnection | None = None
        self._closed = False
        self._last_id = ""
        self._open = threading.Event()
        self._reader = threading.Thread(target=self._read, name="events", daemon=True)
        self._reader.start()
        self._open.wait(STREAM_OPEN_S)

    def next(self, timeout_s: float) -> Event | None:
        """The next event; None when there is none for `timeout_s`."""
        try:
            return self._events.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Stop reading."""
        self._closed = True
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        self._reader.join(STREAM_OPEN_S)

    def _read(self) -> None:
        while not self._closed:
            self._link = self._link.fresh()
            self._connection = connection = self._link.connect(STREAM_SILENCE_S)
            # An error: the console restarts, or is ending; whoever owns it knows.
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError), contextlib.closing(connection):
                self._read_connection(connection)
            if not self._closed:
                time.sleep(RETRY_S)

    def _read_connection(self, connection: http.client.HTTPConnection) -> None:
        headers = {TOKEN_HEADER: self._link.token, "Accept": "text/event-stream"}
        if self._last_id:
            headers["Last-Event-ID"] = self._last_id
        connection.request("GET", "/api/v1/events", headers=headers)
        response = connection.getresponse()
        if response.status != 200:
            self._open.set()  # it is refused: waiting for it helps nobody
            return
        for number, event in parse_events(response):
            if event is not None or not self._last_id:  # `hello` is ahead of what comes again
                self._last_id = number or self._last_id
            self._open.set()
            if event is not None:
                self._events.put(event)


def parse_events(lines: Iterator[bytes] | http.client.HTTPResponse) -> Iterator[tuple[str, Event | None]]:
    """Server-sent events as (id, event); of the console's own only `resync` is an event, of the kind RESYNC."""
    name, number, data = "", "", ""
    for raw in lines:
        line = raw.decode(errors="replace").rstrip("\r\n")
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "id":
            number = value
        elif field == "data":
            data += value
        elif not line and data:
            body = _json(data)
            yield number or _hello_id(body), Event(RESYNC, "", {}) if name == "resync" else _event(body)
            name, number, data = "", "", ""


def following(answer: dict[str, Any]) -> dict[str, Any]:
    """The query of the page after this answer to a list; empty after the last. The one place that knows."""
    return {"cursor": answer["next_cursor"]} if answer.get("next_cursor") else {}


def run_path(run: str) -> str:
    """The path of a run, whose id a person may have typed."""
    return f"/api/v1/runs/{quote(run, safe='')}"


def read_link(folder: Path) -> Link | None:
    """The link that the console wrote into its data folder after it had bound its port."""
    try:
        answer = _json((folder / "console.json").read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    if not isinstance(answer, dict) or not {"url", "token"} <= answer.keys():
        return None
    return Link(str(answer["url"]), str(answer["token"]), folder)


def find_console(home: Path) -> Link:
    """The console that runs on this PC: of `mahe up`, else of the demo. Raises MaheError NOT_REACHABLE."""
    named = os.environ.get("MAHE_CONSOLE_DATA")
    folders = [Path(named).expanduser()] if named else [home / "console", home / "demo" / "console"]
    for link in map(read_link, folders):
        if link is not None and link.alive():
            return link
    raise MaheError("no MAHE console runs on this PC; start one with: mahe up (or: mahe demo)", code="NOT_REACHABLE")


def _hello_id(body: Any) -> str:
    """`hello` tells where the stream begins."""
    return str(body.get("id") or "") if isinstance(body, dict) else ""


def _event(body: Any) -> Event | None:
    if not isinstance(body, dict) or "kind" not in body:
        return None
    return Event(str(body["kind"]), str(body.get("text", "")), body.get("data") or {})


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
