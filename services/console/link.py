"""The link to the master: one thread that owns the sockets, and the way from and to the event loop.

`command` and `download` are called in the loop; everything the master says reaches the Hub in the loop.
"""

import asyncio
import hashlib
import itertools
import queue
import secrets
import socket
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import zmq

from services.common.errors import ProtocolError
from services.common.host.logs import Log
from services.common.protocol import codec
from services.common.protocol.control import Command, Event, FilePull, RunCommand, ShellCommand
from services.common.protocol.reasons import Reason
from services.console.commands import COMMAND_S, CommandDesk, Outcome, Pending
from services.console.control_file import MasterPlace, NoPlaceError, read_place
from services.console.files import TRANSFERS_MAX, Arrival, FileDesk, Transfer, pull
from services.console.hub import Hub, LinkState, LinkWord
from services.console.problems import Problem
from services.console.talk import Cursor, Desks, Talk

LOOK_S = 0.5  # how often control.json is looked for
LOOK_LATE_S = 5.0  # the same, once it is overdue


def now_ms() -> int:
    """Wall clock in ms since the Unix epoch; for display only."""
    return int(time.time() * 1000)


class Link:
    """Owns the thread and the sockets. `start` and all that is awaited belong to one event loop."""

    def __init__(self, hub: Hub, control_dir: Path, endpoint: str, control_wait_s: float, log: Log) -> None:
        self._hub = hub
        self._control_dir = control_dir
        self._endpoint = endpoint
        self._control_wait_s = control_wait_s
        self._log = log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inbox: queue.SimpleQueue[Callable[[Talk | None], None]] = queue.SimpleQueue()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._stopping = threading.Event()
        self._desks = Desks(CommandDesk(), FileDesk())
        self._numbers = itertools.count()
        self._transfers = 0
        self._reported = hub.link  # the thread's own memory of what it has told
        self._thread = threading.Thread(target=self._run, name="console-link", daemon=True)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin; from now on the hub is told in `loop`."""
        self._loop = loop
        self._thread.start()

    async def stop(self) -> None:
        """End the thread; commands that still wait are given up."""
        self._stopping.set()
        self._wake()
        await asyncio.to_thread(self._thread.join)
        self._wake_in.close()
        self._wake_out.close()

    async def command(self, command: RunCommand | ShellCommand, key: str | None = None) -> dict[str, Any]:
        """The master's answer. Raises Problem: its refusal, MASTER_UNREACHABLE after COMMAND_S, why it is not sent.

        With a `key` the id is made from it, also after a restart of the console: the master carries it out once.
        """
        message = Command(cmd_id=secrets.token_hex(12) if key is None else _id_of(key), command=command)
        _check(message)
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        pending = Pending(
            message,
            time.monotonic() + COMMAND_S,
            lambda outcome: self._to_loop(_settle, future, outcome),
        )
        self._to_thread(lambda _: self._desks.commands.add(pending))
        outcome = await future
        if isinstance(outcome, Problem):
            raise outcome
        return outcome

    async def download(self, sha256: str) -> AsyncGenerator[bytes, None]:
        """The bytes of a file of the master, in order; at most TRANSFERS_MAX at a time. Raises Problem."""
        if self._transfers >= TRANSFERS_MAX:
            raise Problem(f"{TRANSFERS_MAX} downloads run already; try again when one is done", code="DOWNLOADS_FULL")
        number = next(self._numbers)
        arrivals: asyncio.Queue[Arrival] = asyncio.Queue()
        transfer = Transfer(sha256, lambda arrival: self._to_loop(arrivals.put_nowait, arrival))
        self._transfers += 1
        self._to_thread(lambda _: self._desks.files.open(number, transfer))
        try:
            async with aclosing(pull(sha256, arrivals, self._ask)) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            self._transfers -= 1
            self._to_thread(lambda _: self._desks.files.close(number))

    def _ask(self, message: FilePull) -> None:
        self._to_thread(lambda talk: None if talk is None else void(talk.send_bulk(message)))

    def _to_thread(self, act: Callable[[Talk | None], None]) -> None:
        self._inbox.put(act)
        self._wake()

    def _to_loop(self, act: Callable[..., object], *values: object) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(act, *values)

    def _wake(self) -> None:
        with suppress(OSError):  # it has enough to wake up on, or has ended
            self._wake_in.send(b"!")

    # Below: the link's thread.

    def _run(self) -> None:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        cursor = Cursor()
        try:
            while not self._stopping.is_set():
                place = self._find_place()
                if place is not None:
                    Talk(context, place, cursor, self._desks, self).run(self._wake_out.fileno(), self._on_wake)
        finally:
            self._on_wake(None)
            self._desks.commands.close()
            context.term()

    def _on_wake(self, talk: Talk | None) -> bool:
        """Do what the loop asked for; False when the link must stop."""
        try:
            while self._wake_out.recv(4096):
                pass
        except BlockingIOError:
            pass
        while True:
            try:
                self._inbox.get_nowait()(talk)
            except queue.Empty:
                return not self._stopping.is_set()

    def _find_place(self) -> MasterPlace | None:
        """Look for control.json until it can be used; None when the link stops."""
        overdue_at = time.monotonic() + self._control_wait_s
        overdue = False
        while not self._stopping.is_set():
            try:
                return read_place(self._control_dir, self._endpoint)
            except NoPlaceError as error:
                reason = error.reason
            self.silent(reason)
            self._on_wake(None)
            self._desks.commands.tick(time.monotonic(), None, reason.text)
            if not overdue and time.monotonic() >= overdue_at:
                overdue = True
                self._log("WARN", f"after {self._control_wait_s:.0f} s still {reason}")
            self._stopping.wait(LOOK_LATE_S if overdue else LOOK_S)
        return None

    def heard(self) -> None:
        """The master answers."""
        self._report("live", None)

    def silent(self, reason: Reason) -> None:
        """The master does not answer, because of this."""
        self._report("connecting" if self._reported.state == "connecting" else "stale", reason)

    def snapshot(self, term: int, seq: int, state: dict[str, Any]) -> None:
        """A whole state."""
        self._to_loop(self._hub.on_snapshot, term, seq, state)

    def event(self, event: Event) -> None:
        """The next event."""
        self._to_loop(self._hub.on_event, event)

    def warn(self, sentence: str) -> None:
        """Something came that was refused."""
        self._log("WARN", sentence)

    def _report(self, state: LinkWord, reason: Reason | None) -> None:
        before = self._reported
        if (before.state, before.reason) == (state, reason):
            return
        since_ms = before.since_ms if before.state == state else now_ms()
        self._reported = LinkState(state, since_ms, reason)
        self._to_loop(self._hub.on_link, self._reported)
        if before.state != state or state != "live":
            self._log("LINK", f"{state}: {reason}" if reason is not None else f"{state}: the master answers")


def _id_of(key: str) -> str:
    return f"key-{hashlib.sha256(key.encode()).hexdigest()[:48]}"


def _check(message: Command) -> None:
    """Whether it can be sent: what cannot must be refused here and never come to the thread. Raises Problem."""
    try:
        codec.encode(message)
    except ProtocolError as error:
        raise Problem(error.sentence, code=error.code) from None
    except ValueError as error:  # of pydantic
        text = f"the request holds a text that is no Unicode ({str(error)[:100]}); use whole characters"
        raise Problem(text, code="BAD_SPEC") from None


def _settle(future: "asyncio.Future[Outcome]", outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)


def void(_: object) -> None:
    """Drop a value: a send that found no connection is made good by the reader's next request."""
