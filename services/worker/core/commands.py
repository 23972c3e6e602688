"""What the core asks of the shell: the outputs of `Session.step`, done in order. An effect is named as its command."""

from dataclasses import dataclass

from services.common.protocol.messages import FromWorker, Task, TaskRef, What
from services.worker.core.events import Anchor, Delta


@dataclass(frozen=True)
class Connect:
    """Close the socket if there is one and open a new one to this endpoint, under the own key or under the join key."""

    endpoint: str
    own_key: bool


@dataclass(frozen=True)
class Disconnect:
    """Close the socket; let what was sent leave for `linger_ms`."""

    linger_ms: int = 0


@dataclass(frozen=True)
class Send:
    """Send this message; without a link it is dropped, and a deadline or the next HELLO makes up for it."""

    message: FromWorker


@dataclass(frozen=True)
class SendChunks:
    """Send these chunks of a held delta."""

    term: int
    ref: TaskRef
    want: tuple[int, ...]
    chunk_bytes: int


@dataclass(frozen=True)
class PrepareAnchor:
    """Make the anchor file this long; what it held is void."""

    total_bytes: int


@dataclass(frozen=True)
class PrepareUpdate:
    """Make the file of the update to this version this long; what it held is void."""

    version: int
    total_bytes: int


@dataclass(frozen=True)
class StoreChunk:
    """Write the payload of the message in hand at this offset of the anchor file, or of the update to this version."""

    what: What
    version: int
    offset: int


@dataclass(frozen=True)
class NoteAnchor:
    """Write down which version the anchor file is. Lost, or wrong, it only costs a whole download."""

    anchor: Anchor


@dataclass(frozen=True)
class ForgetUpdates:
    """Remove the updates up to this version."""

    version: int


@dataclass(frozen=True)
class CheckAnchor:
    """Say the digest of the anchor file as AnchorChecked."""


@dataclass(frozen=True)
class Train:
    """Give this task to the trainer, with the updates that lead to its version, in order.

    `goes_on`: begin where the last delta's steps ended, not at a version.
    """

    task: Task
    updates: tuple[int, ...] = ()
    goes_on: bool = False


@dataclass(frozen=True)
class Rebase:
    """Tell the trainer, which is ahead with this task, its base: the anchor with these updates, in order."""

    task: Task
    updates: tuple[int, ...] = ()


@dataclass(frozen=True)
class StopTraining:
    """Tell the trainer to stop this task within one step and forget it."""

    lease: str


@dataclass(frozen=True)
class KeepDelta:
    """Write down what the delta file holds, so that it survives a restart."""

    delta: Delta


@dataclass(frozen=True)
class ForgetDelta:
    """Remove the delta of this lease, if there is one. What cannot be removed stays: nothing follows from that.

    `counted`: it is part of a version, so what its encoding left over is owed from now on; else as it was before.
    """

    lease: str
    counted: bool = False


@dataclass(frozen=True)
class CheckStorage:
    """Say as StorageWorks or StorageFailed whether the slot can be written and has this much space."""

    free_bytes: int


@dataclass(frozen=True)
class SaveIdentity:
    """Enrolled: write who this worker is and where its master answers. Without that the agent ends, with an error."""

    worker: str
    name: str
    endpoints: tuple[str, ...]
    beacon_key: str


@dataclass(frozen=True)
class Park:
    """Write the marker that keeps this worker away until it gets another join string."""

    reason: str


@dataclass(frozen=True)
class StartTrainer:
    """Start the trainer process."""


@dataclass(frozen=True)
class StopTrainer:
    """End the trainer process at once."""


@dataclass(frozen=True)
class Say:
    """One log line for people."""

    kind: str
    text: str


@dataclass(frozen=True)
class Exit:
    """End the agent."""


Command = (
    Connect
    | Disconnect
    | Send
    | SendChunks
    | PrepareAnchor
    | PrepareUpdate
    | StoreChunk
    | CheckAnchor
    | NoteAnchor
    | ForgetUpdates
    | Train
    | Rebase
    | StopTraining
    | KeepDelta
    | ForgetDelta
    | CheckStorage
    | SaveIdentity
    | Park
    | StartTrainer
    | StopTrainer
    | Say
    | Exit
)
