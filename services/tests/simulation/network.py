"""The simulated network: a ROUTER's frames in and out, a wire for each worker's socket, and what goes wrong on them.

Delays, losses, duplicates and changes of order come per message, which is more than TCP does; a wire may also be
blocked one way or both (what was sent then is lost), or break, which both ends see.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import zmq

from services.common.protocol.codec import Buffer
from services.tests.simulation.world import World

LATENCY_MS = (1, 30)


class Frame:
    """As much of a zmq.Frame as the master's port looks at."""

    def __init__(self, raw: bytes, user: str) -> None:
        self.bytes = self.buffer = raw
        self._user = user

    def get(self, name: str) -> str:
        """The key of the sender."""
        assert name == "User-Id"
        return self._user


@dataclass
class Trouble:
    """What is wrong with a wire at present. Probabilities per message, a wait in ms."""

    drop: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    delay_ms: int = 0
    corrupt: float = 0.0
    up_blocked: bool = False  # worker to master
    down_blocked: bool = False


@dataclass
class Wire:
    """One socket of a worker. `arrive` gets the master's frames; `broke` is called when the other end is gone."""

    route: bytes
    key: str
    arrive: Callable[[list[bytes]], None]
    broke: Callable[[], None]
    trouble: Trouble
    up: bool = True
    up_free_ms: int = 0  # messages of one direction arrive in order unless there is trouble
    down_free_ms: int = 0


@dataclass
class Network:
    """The master's port and the wires to it. `hear` is called when something has come for the master."""

    world: World
    hear: Callable[[], None] | None = None  # None: no master listens
    wires: dict[bytes, Wire] = field(default_factory=dict)
    inbox: deque[list[Frame]] = field(default_factory=deque)
    faults: int = 0

    def connect(self, wire: Wire) -> bool:
        """Whether the handshake succeeds."""
        if self.hear is None or wire.trouble.up_blocked or wire.trouble.down_blocked:
            return False
        wire.up = True
        self.wires[wire.route] = wire
        return True

    def disconnect(self, wire: Wire) -> None:
        """The worker closes its socket."""
        wire.up = False
        if self.wires.get(wire.route) is wire:
            del self.wires[wire.route]

    def listen(self, hear: Callable[[], None]) -> None:
        """A master is there."""
        self.hear = hear

    def cut_all(self) -> None:
        """The master is gone: every wire breaks, what was under way is lost."""
        self.hear = None
        self.inbox.clear()
        wires, self.wires = self.wires, {}
        for route in sorted(wires):
            self.break_wire(wires[route])

    def break_wire(self, wire: Wire) -> None:
        """A reset connection; the worker notices soon."""
        if self.wires.get(wire.route) is wire:
            del self.wires[wire.route]
        if wire.up:
            wire.up = False
            self.world.after(self.world.chance.randint(1, 200), wire.broke)

    def to_master(self, wire: Wire, frames: Sequence[Buffer]) -> bool:
        """A worker sends; False when its wire is down."""
        if not wire.up:
            return False
        raw = [bytes(part) for part in frames]
        for at_ms in self._arrivals(wire, wire.trouble.up_blocked, "up_free_ms"):
            sent = self._maybe_corrupt(wire, raw)
            self.world.after(at_ms - self.world.now_ms, partial(self._reach_master, wire, sent))
        return True

    def _reach_master(self, wire: Wire, raw: list[bytes]) -> None:
        if self.hear is None or self.wires.get(wire.route) is not wire:
            return
        self.world.note(f"to master {wire.key}", raw[0])
        self.inbox.append([Frame(part, wire.key) for part in (wire.route, *raw)])
        self.hear()

    def _reach_worker(self, wire: Wire, raw: list[bytes]) -> None:
        if wire.up and self.wires.get(wire.route) is wire:
            self.world.note(f"to {wire.key}", raw[0])
            wire.arrive(raw)

    def _arrivals(self, wire: Wire, blocked: bool, free: str) -> list[int]:
        """When copies of one message arrive; none when it is lost."""
        chance, trouble, now_ms = self.world.chance, wire.trouble, self.world.now_ms
        if blocked or (trouble.drop and chance.random() < trouble.drop):
            self.faults += not blocked
            return []
        at_ms = now_ms + chance.randint(*LATENCY_MS) + (chance.randint(0, trouble.delay_ms) if trouble.delay_ms else 0)
        if trouble.reorder and chance.random() < trouble.reorder:
            self.faults += 1
            return [at_ms + chance.randint(0, 500)]
        at_ms = max(at_ms, getattr(wire, free))
        setattr(wire, free, at_ms)
        if trouble.duplicate and chance.random() < trouble.duplicate:
            self.faults += 1
            return [at_ms, at_ms + chance.randint(0, 500)]
        return [at_ms]

    def _maybe_corrupt(self, wire: Wire, raw: list[bytes]) -> list[bytes]:
        if len(raw) < 2 or not wire.trouble.corrupt or self.world.chance.random() >= wire.trouble.corrupt:
            return raw
        self.faults += 1
        at = self.world.chance.randrange(len(raw[1]))
        return [raw[0], raw[1][:at] + bytes([raw[1][at] ^ 1]) + raw[1][at + 1 :]]

    # as the master's port sees it

    def recv_multipart(self, flags: int, copy: bool = True) -> list[Frame]:
        """The next message, or zmq.Again."""
        del flags, copy
        if not self.inbox:
            raise zmq.Again
        return self.inbox.popleft()

    def send_multipart(self, frames: Sequence[bytes], flags: int, copy: bool = True) -> None:
        """To the wire with this route id; EHOSTUNREACH when there is none."""
        del flags, copy
        wire = self.wires.get(bytes(frames[0]))
        if wire is None:
            raise zmq.ZMQError(zmq.EHOSTUNREACH)
        raw = [bytes(part) for part in frames[1:]]
        for at_ms in self._arrivals(wire, wire.trouble.down_blocked, "down_free_ms"):
            self.world.after(at_ms - self.world.now_ms, partial(self._reach_worker, wire, raw))
