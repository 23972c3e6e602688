"""What a worker's session knows. Two halves that do not wait for each other: `link` (the master) and `work` (the task).

They are apart because a lost link never stops training. Only the handlers of `link`, `work` and `upload` change it.
"""

from dataclasses import dataclass, field
from enum import Enum

from services.common.protocol.messages import Chunk, Message, Reason, Task, TaskRef, What
from services.worker.core import limits
from services.worker.core.commands import Command, Say
from services.worker.core.events import Anchor, Delta, Fault

BYTES_PER_PARAMETER = 4
NO_ANCHOR = Anchor("", -1, "")


class Link(Enum):
    """How the worker stands with its master."""

    CONNECTING = "connecting"
    ENROLLING = "enrolling"
    JOINING = "joining"
    JOINED = "joined"
    PARKED = "parked"
    STOPPED = "stopped"


class Work(Enum):
    """What the worker does; the values are those of HEARTBEAT's `agent`."""

    IDLE = "idle"
    PULLING = "pulling"
    TRAINING = "training"
    UPLOADING = "uploading"
    HOLDING = "holding"


class Timer(Enum):
    """The waits. Each has one deadline; those that are due run in this order."""

    RETRY = "open the next socket"
    CONNECT = "no handshake"
    ANSWER = "no answer to ENROL or HELLO"
    HEARTBEAT = "say that this worker lives"
    SUSPECT = "the master is silent"
    LOST = "the master is silent for too long"
    CHUNK = "an anchor chunk is late"
    OFFER = "CREDIT or ACK is late"
    TRAINER_START = "start the trainer again"
    TRAINER_READY = "the trainer starts, and does not say that it is ready"
    TRAINER_FREE = "a task waits for the trainer"
    STEP = "the trainer makes no progress"
    STORAGE = "see whether the disk works again"
    PARKED = "say why this worker is parked"


@dataclass(frozen=True)
class Facts:
    """What the shell knows when it starts: this PC, the keys it has, and what lies in the slot."""

    name: str
    app_version: str
    boot_id: str
    platform: str
    cores: int
    threads: int
    memory_mib: int
    protocol_version: int
    public_key: str
    endpoints: tuple[str, ...]
    enrolled: bool
    """The master gave this key pair a worker id."""
    can_enrol: bool
    """There is a join string that this key pair was not enrolled with."""
    parked: str = ""
    """Why the worker is parked; empty if it is not."""
    held: tuple[Delta, ...] = ()
    anchor: Anchor = NO_ANCHOR


@dataclass
class Download:
    """A version or an update on its way into its file. No digest: that of the first chunk counts."""

    what: What
    run: str
    version: int
    digest: str
    total_bytes: int
    chunk_bytes: int
    received: list[bool]
    next_index: int = 0
    attempts: int = 1
    silences: int = 0

    def fits(self, message: Chunk, payload_bytes: int) -> bool:
        """Whether a chunk is a part of it."""
        expected = min(self.chunk_bytes, self.total_bytes - message.index * self.chunk_bytes)
        return (
            (message.run, message.version, message.digest) == (self.run, self.version, self.digest)
            and (message.count, message.total_bytes) == (len(self.received), self.total_bytes)
            and message.index < message.count
            and payload_bytes == expected
        )

    def want(self, n: int) -> list[int]:
        """Up to `n` missing chunks that were not asked for since the last `again`."""
        wanted: list[int] = []
        while len(wanted) < n and self.next_index < len(self.received):
            if not self.received[self.next_index]:
                wanted.append(self.next_index)
            self.next_index += 1
        return wanted

    def again(self) -> None:
        """Ask for everything that is missing once more."""
        self.next_index = 0

    def complete(self) -> bool:
        """Whether every chunk is stored."""
        return all(self.received)


@dataclass
class Offer:
    """The delta that is being offered to the master, and how far its chunks have gone."""

    lease: str
    chunks: int
    window: int
    begun: bool = False
    highest: int = -1
    committed: bool = False

    def all_given(self, want: list[int]) -> bool:
        """Whether the master must have everything once the wanted chunks (rising) have arrived."""
        nothing_more = not self.begun and len(want) < self.window
        self.begun = True
        self.highest = max([self.highest, *want])
        return nothing_more or not want or self.highest == self.chunks - 1


@dataclass
class State:
    """Everything the session decides from."""

    facts: Facts
    link: Link = Link.CONNECTING
    work: Work = Work.IDLE
    timers: dict[Timer, int] = field(default_factory=dict)
    last_tick_ms: int | None = None
    jitter: float = 0.5

    endpoints: tuple[str, ...] = ()
    endpoint: int = 0
    own_key: bool = False
    enrolled: bool = False
    can_enrol: bool = False
    waited_for: Fault | None = None
    waits: int = 0
    """In a row for the same fault; the next one is twice as long."""
    answer_tries: int = 0
    last_fault: Fault | None = None
    faults_in_row: int = 0
    connecting_since_ms: int = 0
    parked: str = ""
    suspect: bool = False

    term: int = 0
    session: int = 0
    """WELCOMEs since the start. What was accepted in an earlier one is offered again: the master may have restarted."""
    heartbeat_ms: int = 2_000
    suspect_ms: int = 6_000
    lost_ms: int = 15_000
    chunk_bytes: int = 0
    window_chunks: int = 1

    task: Task | None = None
    queued: Task | None = None
    """Overlapped: the task of the next round, for when the one in hand is done."""
    closed: Anchor = NO_ANCHOR
    """The newest version that a ROUND_CLOSED named."""
    trained: TaskRef | None = None
    """Whose local parameters, as its last step left them, the trainer still has."""
    rebasing: bool = False
    """The trainer's task is ahead, and its base is on its way here."""
    awaits_base: bool = False
    """The trainer has done all steps of a task that is ahead, and needs its base."""
    download: Download | None = None
    held: list[Delta] = field(default_factory=list)
    offer: Offer | None = None
    anchor: Anchor = NO_ANCHOR
    updates: list[int] = field(default_factory=list)
    """Versions, one after the other from the anchor's on, whose updates are in the slot."""
    moving: Anchor | None = None
    """Where the trainer takes the anchor at present."""
    step: int = 0
    steps_total: int = 0
    progress_at_ms: int = 0
    progress_said_ms: int = 0

    score: float | None = None
    trainer_ready: bool = False
    trainer_words: int = 0
    """How often people were told that it still starts."""
    trainer_deaths: int = 0
    """In a row, without a finished task between."""
    trainer_paused: Reason | None = None
    """Why the trainer takes no tasks for a while; None if it does."""
    given: Task | None = None
    """The one task that the trainer has and has not answered; a cancelled one too."""
    step_ms: int = 0
    """The duration of the last step known."""

    storage_paused: Reason | None = None
    """Why nothing can be written to the slot; None if it can."""
    storage_failures: int = 0
    """In a row, without a finished task between."""
    storage_needed_bytes: int = 0
    read_faults: int = 0
    """In a row, of held deltas."""
    said: dict[str, int] = field(default_factory=dict)

    def arm(self, timer: Timer, deadline_ms: int) -> None:
        """Set or move a deadline."""
        self.timers[timer] = deadline_ms

    def disarm(self, *timers: Timer) -> None:
        """Forget deadlines, if they are set."""
        for timer in timers:
            self.timers.pop(timer, None)

    @property
    def paused(self) -> Reason | None:
        """Why this worker takes no tasks; None if it does."""
        return self.trainer_paused or self.storage_paused

    def here(self) -> str:
        """The endpoint in use."""
        return self.endpoints[self.endpoint % len(self.endpoints)]

    def say_once(self, kind: str, text: str, now_ms: int) -> list[Command]:
        """The sentence, unless it was said in the last minute."""
        last = self.said.get(text)
        if last is not None and now_ms - last < limits.SENTENCE_EVERY_MS:
            return []
        if len(self.said) >= limits.SENTENCES_KEPT:
            self.said.clear()
        self.said[text] = now_ms
        return [Say(kind, text)]

    def held_by(self, lease: str) -> Delta | None:
        """The held delta of a lease."""
        return next((delta for delta in self.held if delta.ref.lease == lease), None)

    def joined(self) -> bool:
        """Whether messages can be sent in a term."""
        return self.link is Link.JOINED


def place(ref: TaskRef) -> str:
    """A piece of work in words."""
    return f"round {ref.round} shard {ref.shard} of run {ref.run}"


def sender_term(message: Message) -> int | None:
    """The term a message carries; None for those without."""
    term = getattr(message, "term", None)
    return term if isinstance(term, int) else None
