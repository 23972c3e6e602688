"""What can happen to a worker: the inputs of `Session.step`. Plain data; the shell makes them, the core reads them."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from services.common.protocol.messages import Encoding, Reason, TaskRef


class Fault(Enum):
    """Why a connection could not be made, as far as the socket's monitor tells."""

    AUTH = "the master refused our key"
    KEY = "the handshake broke off: the master has another key"
    ALIEN = "what answers does not speak MAHE"
    SILENT = "what answers says nothing"
    NO_ANSWER = "nothing answers"


@dataclass(frozen=True)
class Start:
    """The agent runs: connect."""


@dataclass(frozen=True)
class Stop:
    """A person or the system asks this worker to end."""

    reason: Reason


@dataclass(frozen=True)
class Tick:
    """Time passed. `jitter` in [0, 1) is the shell's random number for the next wait."""

    jitter: float = 0.5


@dataclass(frozen=True)
class LinkUp:
    """The handshake succeeded: frames can be sent."""


@dataclass(frozen=True)
class LinkDown:
    """The connection that was up is gone; the socket tries again by itself."""


@dataclass(frozen=True)
class LinkFailed:
    """One attempt to connect failed."""

    fault: Fault


@dataclass(frozen=True)
class Received:
    """A checked message of the master; of its payload only the length."""

    message: Any
    payload_bytes: int = 0


@dataclass(frozen=True)
class BadMessage:
    """Frames of the master that the codec refused."""

    code: str
    text: str


@dataclass(frozen=True)
class Anchor:
    """A version of a run's parameters: the one in the anchor file. Version -1: it is not known which."""

    run: str
    version: int
    digest: str


@dataclass(frozen=True)
class AnchorChecked:
    """The digest of the anchor file after the last chunk was stored."""

    digest: str


@dataclass(frozen=True)
class StorageFailed:
    """The slot could not be written or read: full, or gone. With a lease: for that task; without: the anchor."""

    text: str
    lease: str = ""


@dataclass(frozen=True)
class StorageWorks:
    """The slot was checked and can be written."""


@dataclass(frozen=True)
class DeltaUnreadable:
    """The file of a held delta cannot be read; `passing`: perhaps only for now."""

    lease: str
    text: str
    passing: bool = False


@dataclass(frozen=True)
class TrainerReady:
    """The trainer process runs and measured itself: `score` in samples/s of the micro-benchmark."""

    score: float
    pid: int = 0


@dataclass(frozen=True)
class TrainerProgress:
    """So many local steps are done."""

    lease: str
    step: int
    steps_total: int
    loss: float | None
    samples: int


@dataclass(frozen=True)
class Anchored:
    """The trainer has the version of this task, or now its base: the anchor file is that, and its digest is right."""

    lease: str


@dataclass(frozen=True)
class AnchorWrong:
    """With its updates the anchor would not be the one of this task; it is as it was, and the task is not begun."""

    lease: str
    reason: str


@dataclass(frozen=True)
class TrainerWaits:
    """All steps of this task are done; without its base there is no delta."""

    lease: str


@dataclass(frozen=True)
class TrainerDone:
    """The delta is in its file, encoded and durable."""

    lease: str
    delta_bytes: int
    digest: str
    samples: int
    steps: int
    correct: int
    loss: float | None
    compute_ms: float
    sync_ms: int | None = None
    late_ms: float | None = None


@dataclass(frozen=True)
class TrainerStopped:
    """The trainer heeded a cancel: this task is over, without a delta."""

    lease: str


@dataclass(frozen=True)
class TrainerFailed:
    """The trainer could not do this task and says why; it lives."""

    lease: str
    reason: str


@dataclass(frozen=True)
class TrainerExited:
    """The trainer process is gone."""

    reason: Reason


@dataclass
class Delta:
    """A finished delta in the slot, held until the master says that it may be forgotten."""

    ref: TaskRef
    encoding: Encoding
    delta_bytes: int
    digest: str
    samples: int
    steps: int
    correct: int
    loss: float | None
    compute_ms: float
    sync_ms: int | None = None
    late_ms: float | None = None
    eager: bool = False
    """Its first chunks go with the offer. Not over a restart, nor a second time."""
    accepted_session: int = 0
    """The session (WELCOMEs since the start) in which the master accepted it; 0 for none."""


Event = (
    Start
    | Stop
    | Tick
    | LinkUp
    | LinkDown
    | LinkFailed
    | Received
    | BadMessage
    | AnchorChecked
    | StorageFailed
    | StorageWorks
    | DeltaUnreadable
    | TrainerReady
    | TrainerProgress
    | Anchored
    | AnchorWrong
    | TrainerWaits
    | TrainerDone
    | TrainerStopped
    | TrainerFailed
    | TrainerExited
)
