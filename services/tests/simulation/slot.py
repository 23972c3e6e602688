"""What outlives a simulated agent: what is durable in its slot, and how its PC does at present."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from services.common.learning import digest
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.core.state import NO_ANCHOR

Floats = np.ndarray[Any, np.dtype[np.float32]]
Storage = (
    c.PrepareAnchor
    | c.PrepareUpdate
    | c.StoreChunk
    | c.CheckAnchor
    | c.NoteAnchor
    | c.ForgetUpdates
    | c.KeepDelta
    | c.ForgetDelta
    | c.CheckStorage
    | c.Park
)
FULL = "no space left on device (simulated)"


@dataclass
class Slot:
    """What is durable at a worker."""

    name: str
    key: str
    anchor: bytearray = field(default_factory=bytearray)
    noted: e.Anchor = NO_ANCHOR
    updates: dict[int, bytearray] = field(default_factory=dict)  # by version
    residual: bytes = b""
    left_over: dict[str, bytes] = field(default_factory=dict)  # by lease: the residual, should its delta be counted
    files: dict[str, bytes] = field(default_factory=dict)  # deltas by lease
    kept: dict[str, e.Delta] = field(default_factory=dict)
    parked: str = ""
    full: bool = False

    def do(self, command: Storage, payload: bytes) -> e.Event | None:
        """What the session wants of its disk; `payload` came with the last message."""
        match command:
            case c.PrepareAnchor() | c.PrepareUpdate() | c.StoreChunk() | c.KeepDelta() if self.full:
                return e.StorageFailed(FULL, command.delta.ref.lease if isinstance(command, c.KeepDelta) else "")
            case c.PrepareAnchor():
                self.anchor = bytearray(command.total_bytes)
            case c.PrepareUpdate():
                self.updates[command.version] = bytearray(command.total_bytes)
            case c.StoreChunk():
                file = self.anchor if command.what == "snapshot" else self.updates[command.version]
                file[command.offset : command.offset + len(payload)] = payload
            case c.NoteAnchor():
                self.noted = command.anchor
            case c.ForgetUpdates():
                self.updates = {one: raw for one, raw in self.updates.items() if one > command.version}
            case c.CheckAnchor():
                return e.AnchorChecked(self.anchor_digest())
            case c.KeepDelta():
                self.kept[command.delta.ref.lease] = command.delta
            case c.ForgetDelta():
                left = self.left_over.pop(command.lease, None)
                if command.counted and left is not None:
                    self.residual = left
                self.kept.pop(command.lease, None)
                self.files.pop(command.lease, None)
            case c.CheckStorage():
                return e.StorageFailed(FULL) if self.full else e.StorageWorks()
            case c.Park():
                self.parked = command.reason
        return None

    def parameters(self) -> Floats:
        """The version that lies here, as it is by now; nobody writes into this copy."""
        return np.frombuffer(bytes(self.anchor), dtype=np.float32)

    def anchor_digest(self) -> str:
        """Of the version that lies here; empty when there is none."""
        return digest(self.parameters()) if self.anchor else ""

    def known(self) -> e.Anchor:
        """What an agent that starts knows of the anchor."""
        self.updates.clear()
        found = self.anchor_digest()
        return self.noted if self.noted.digest == found else e.Anchor("", -1, found)

    def copied(self) -> "Slot":
        """As a copy of the folder on a second PC."""
        return replace(
            self,
            anchor=bytearray(self.anchor),
            updates={version: bytearray(raw) for version, raw in self.updates.items()},
            left_over=dict(self.left_over),
            files=dict(self.files),
            kept=dict(self.kept),
            parked="",
            full=False,
        )


@dataclass
class Pace:
    """How this PC does at present."""

    usual_per_s: float  # samples/s of this PC when it does nothing else
    slowness: float = 1.0  # a factor
    frozen: bool = False  # the trainer
    asleep: bool = False  # the whole PC, or the agent by SIGSTOP
    nan: float = 0.0  # probability that a delta is not finite
    lie: float = 0.0  # probability that a DELTA_BEGIN has a wrong field
    faults: int = 0  # deltas that were not finite, and lies

    @property
    def samples_per_s(self) -> float:
        """At present."""
        return self.usual_per_s * self.slowness
