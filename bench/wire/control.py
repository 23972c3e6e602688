"""An operator without a console: starts a run at the master's control port and hears of each closed round.

One thread, one socket; rounds are timed by the master's own clock, as its events say.
"""

import json
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import zmq
from zmq.utils import z85

from services.common.protocol.codec import decode_to_console, encode
from services.common.protocol.control import Command, CreateRun, StopRun, Subscribe
from services.common.protocol.join_string import PURPOSE_CONSOLE, derive_key
from services.common.protocol.spec import RunSpec

SUBSCRIBE_S = 2.0
POLL_MS = 50


class Operator:
    """Connects when it is made: in the thread's namespace of that moment. `check` raises when waiting is useless."""

    def __init__(self, master_data: Path, check: Callable[[], None]) -> None:
        facts = json.loads((master_data / "control" / "control.json").read_text())
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        secret = z85.encode(derive_key(bytes.fromhex(facts["secret"]), PURPOSE_CONSOLE))
        self._socket.curve_secretkey, self._socket.curve_publickey = secret, zmq.curve_public(secret)
        self._socket.curve_serverkey = facts["server_key"].encode()
        self._socket.connect(facts["endpoint"])
        self._check = check
        self._term = self._seq = 0
        self._subscribe_at = 0.0
        self.state: dict[str, Any] = {}
        self.answers: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._context.destroy(linger=0)

    def linked(self) -> int:
        """How many workers are joined, as far as we were told."""
        return sum(worker["link"] == "LINKED" for worker in self.state.get("workers", {}).values())

    def until_linked(self, count: int, limit_s: float = 60.0) -> None:
        """Wait for so many workers."""
        deadline = time.monotonic() + limit_s
        while self.linked() < count:
            assert time.monotonic() < deadline, f"{self.linked()} of {count} workers joined in {limit_s:.0f} s"
            list(self._turn())

    def start(self, spec: RunSpec) -> str:
        """Start a run; its id."""
        return str(self._ask(CreateRun(spec=spec))["run"])

    def stop(self, run: str) -> None:
        """End it."""
        self._ask(StopRun(run=run))

    def until_started(self, run: str, limit_s: float = 30.0) -> None:
        """Wait until this run, and no earlier one, is what the master shows."""
        deadline = time.monotonic() + limit_s
        while (self.state.get("run") or {}).get("id") != run:
            assert time.monotonic() < deadline, f"run {run} is not shown after {limit_s:.0f} s"
            list(self._turn())

    def until_finished(self, limit_s: float) -> dict[str, Any]:
        """Wait until the run has closed its last round; the run then. AssertionError: it failed, or takes too long."""
        deadline = time.monotonic() + limit_s
        while not (run := self.state.get("run") or {}).get("finished"):
            assert run.get("phase") != "FAILED", run["reason"]
            assert time.monotonic() < deadline, f"the run is not finished after {limit_s:.0f} s"
            list(self._turn())
        return dict(run)

    def closings(self, limit_s: float) -> Iterator[tuple[int, int]]:
        """(round, time in ms by the master's clock) of each round that closes; TimeoutError after a silence."""
        last = 0
        for event in self.rounds(limit_s):
            if event.data["round"] > last and not event.text:
                last = event.data["round"]
                yield last, event.time_ms

    def rounds(self, limit_s: float) -> Iterator[Any]:
        """The events of rounds: one without a text when it closes, one when it is evaluated, or is not after all.

        TimeoutError after a silence, AssertionError when the run has failed.
        """
        deadline = time.monotonic() + limit_s
        last = 0
        while True:
            for event in self._turn():
                if event.kind == "ROUND":
                    last = event.data["round"]
                    deadline = time.monotonic() + limit_s
                    yield event
                if event.kind == "RUN" and event.data.get("phase") == "FAILED":
                    raise AssertionError(event.data["reason"])
            if time.monotonic() > deadline:
                raise TimeoutError(f"no round has closed for {limit_s:.0f} s after round {last}")

    def _ask(self, command: CreateRun | StopRun) -> dict[str, Any]:
        cmd_id = secrets.token_hex(8)
        self._socket.send_multipart(encode(Command(cmd_id=cmd_id, command=command)))
        deadline = time.monotonic() + 30
        while cmd_id not in self.answers:
            assert time.monotonic() < deadline, f"no answer to {command.name}"
            list(self._turn())
        return self.answers.pop(cmd_id)

    def _turn(self) -> Iterator[Any]:
        """New events."""
        self._check()
        if time.monotonic() >= self._subscribe_at:
            self._subscribe_at = time.monotonic() + SUBSCRIBE_S
            self._socket.send_multipart(encode(Subscribe(term=self._term, after_seq=self._seq)))
        self._socket.poll(POLL_MS)
        while self._socket.poll(0):
            message, payload = decode_to_console(self._socket.recv_multipart())
            if message.t == "REPLY":
                assert message.ok, f"{message.code}: {message.text}"
                self.answers[message.cmd_id] = json.loads(bytes(payload or b"{}"))
            elif message.t == "SNAPSHOT":
                self._term, self._seq = message.term, message.seq
                found = json.loads(bytes(payload or b"{}"))
                self.state = {"run": found["run"], "workers": {one["id"]: one for one in found["workers"]}}
            elif message.t == "EVENT":
                self._seq = message.seq
                if message.kind == "WORKER":
                    self.state["workers"][message.data["id"]] = message.data
                if message.kind == "RUN":
                    self.state["run"] = message.data
                yield message
