"""Drives a session without a clock or a socket: events in, commands out, and shorthands for both."""

from typing import Any, TypeVar

from services.common.protocol import messages
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.core.session import Session
from services.worker.core.state import Facts

C = TypeVar("C", bound=c.Command)
M = TypeVar("M", bound=messages.Message)
ENDPOINTS = ("tcp://a:1", "tcp://b:2")
GOOD, BAD = "a" * 32, "b" * 32
ANCHOR = e.Anchor("run-1", 0, GOOD)
CHUNK_BYTES = 4096
PARAMETERS = 3 * CHUNK_BYTES // 4 - 10  # three chunks, the last one shorter
TICK_MS = 500


def facts(**changes: Any) -> Facts:
    """An enrolled worker with one endpoint, unless changed."""
    values: dict[str, Any] = {
        "name": "pc",
        "app_version": "1",
        "boot_id": "c" * 32,
        "platform": "test",
        "cores": 2,
        "threads": 2,
        "memory_mib": 1000,
        "protocol_version": 1,
        "public_key": "p" * 40,
        "endpoints": ENDPOINTS[:1],
        "enrolled": True,
        "can_enrol": False,
    }
    return Facts(**(values | changes))


def ref(round_number: int = 0, *, run: str = "run-1", lease: str = "", shard: int = 0) -> messages.TaskRef:
    """A piece of work; the lease is made of run, round and shard unless given."""
    lease = lease or f"{run}.{round_number}.{shard}"
    return messages.TaskRef(run=run, round=round_number, base_version=round_number, shard=shard, lease=lease)


def task(of: messages.TaskRef | None = None, *, term: int = 1, **changes: Any) -> messages.Task:
    """A task on the anchor GOOD."""
    values: dict[str, Any] = {
        "anchor_digest": GOOD,
        "n_parameters": PARAMETERS,
        "data": {},
        "data_seed": 0,
        "model": {},
        "inner": {},
        "ranges": [(0, 10)],
        "samples": 10,
        "k_steps": 7,
        "batch": 8,
        "delta_scale": 1.0,
        "encoding": "fp32",
        "rounds": 10,
    }
    return messages.Task(term=term, ref=of or ref(), **(values | changes))


def delta(of: messages.TaskRef | None = None) -> e.Delta:
    """What a slot may hold."""
    return e.Delta(of or ref(), "fp32", PARAMETERS * 4, BAD, 56, 7, 30, 0.5, 120)


def done(of: messages.TaskRef | None = None) -> e.TrainerDone:
    """The trainer's answer to `task`."""
    return e.TrainerDone((of or ref()).lease, PARAMETERS * 4, BAD, 56, 7, 30, 0.5, 120)


class Driver:
    """A session and the time."""

    def __init__(self, **changes: Any) -> None:
        self.now_ms = 1_000_000
        self.session = Session(facts(**changes))
        self.term = 1

    def __call__(self, event: e.Event | messages.Message, payload_bytes: int = 0) -> list[c.Command]:
        """One event, or one message of the master."""
        if isinstance(event, messages.Message):
            event = e.Received(event, payload_bytes)
        return self.session.step(event, self.now_ms)

    def wait(self, ms: int, jitter: float = 0.5, *, keep: bool = False) -> list[c.Command]:
        """Ticks for a while; `keep`: the master's heartbeats come meanwhile."""
        found: list[c.Command] = []
        end = self.now_ms + ms
        while self.now_ms < end:
            self.now_ms = min(end, self.now_ms + TICK_MS)
            if keep:
                found += self(messages.Heartbeat(term=self.term))
            found += self.session.step(e.Tick(jitter), self.now_ms)
        return found

    def welcome(self, term: int = 1, chunk_bytes: int = CHUNK_BYTES) -> list[c.Command]:
        """WELCOME."""
        self.term = term
        return self(
            messages.Welcome(
                term=term,
                proto=1,
                worker="w-1",
                name="pc",
                heartbeat_ms=2000,
                suspect_ms=6000,
                lost_ms=15000,
                chunk_bytes=chunk_bytes,
                window_chunks=2,
            )
        )

    def join(self, term: int = 1) -> list[c.Command]:
        """From the start to WELCOME; what WELCOME led to."""
        self(e.Start())
        self(e.TrainerReady(100.0))
        self(e.LinkUp())
        return self.welcome(term)

    def chunk(self, index: int, *, term: int = 1, digest: str = GOOD, version: int = 0) -> list[c.Command]:
        """One chunk of the anchor."""
        total = PARAMETERS * 4
        message = messages.Chunk(
            term=term,
            what="snapshot",
            run="run-1",
            version=version,
            index=index,
            count=3,
            total_bytes=total,
            digest=digest,
            crc32=0,
        )
        return self(message, min(CHUNK_BYTES, total - index * CHUNK_BYTES))

    def pull_all(self) -> list[c.Command]:
        """The three chunks; what the last led to."""
        self.chunk(0)
        self.chunk(1)
        return self.chunk(2)

    def train(self, of: messages.TaskRef | None = None) -> list[c.Command]:
        """A task and its anchor; what the digest check led to."""
        self(task(of))
        version = (of or ref()).base_version
        for index in range(3):
            self.chunk(index, version=version)
        return self(e.AnchorChecked(GOOD))

    def finish(self, of: messages.TaskRef | None = None) -> list[c.Command]:
        """A task up to the trainer's answer; what that led to."""
        self.train(of)
        return self(done(of))

    def credit(self, *want: int, of: messages.TaskRef | None = None, wait_ms: int = 0) -> list[c.Command]:
        """CREDIT."""
        return self(messages.Credit(term=self.term, ref=of or ref(), want=list(want), wait_ms=wait_ms))

    def ack(self, status: messages.AckStatus, of: messages.TaskRef | None = None) -> list[c.Command]:
        """ACK."""
        return self(messages.Ack(term=self.term, ref=of or ref(), status=status, code="OK", text="why"))

    def closed(self, round_number: int = 0, *counted: messages.TaskRef, run: str = "run-1") -> list[c.Command]:
        """ROUND_CLOSED; `counted` is this worker's work in it."""
        version = round_number + 1
        return self(
            messages.RoundClosed(
                term=self.term,
                run=run,
                round=round_number,
                version=version,
                digest=GOOD,
                counted=[one.lease for one in counted],
            )
        )


def sent(commands: list[c.Command]) -> list[str]:
    """The kinds of messages among the commands, heartbeats left out."""
    all_sent = [one.message for one in commands if isinstance(one, c.Send)]
    return [type(one).__name__ for one in all_sent if not isinstance(one, messages.Heartbeat)]


def message(commands: list[c.Command], kind: type[M]) -> M:
    """The one message of this kind among the commands."""
    found = [one.message for one in commands if isinstance(one, c.Send) and isinstance(one.message, kind)]
    assert len(found) == 1, f"one {kind.__name__} is due: {commands}"
    return found[0]


def only(commands: list[c.Command], kind: type[C]) -> C:
    """The one command of this kind."""
    found = [one for one in commands if isinstance(one, kind)]
    assert len(found) == 1, f"one {kind.__name__} is due: {commands}"
    return found[0]


def has(commands: list[c.Command], kind: type[Any]) -> bool:
    """Whether there is a command of this kind."""
    return any(isinstance(one, kind) for one in commands)


def said(commands: list[c.Command]) -> str:
    """All sentences, one a line."""
    return "\n".join(one.text for one in commands if isinstance(one, c.Say))
