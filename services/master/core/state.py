"""All that the coordinator knows. Mutable, changed only inside `Coordinator.step`; holds no bytes of any tensor."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from services.common.protocol.messages import Encoding, Reason, RunSpec, TaskRef
from services.master.core.watch import Watch

Range = tuple[int, int]  # stream positions [start, stop)


class RunPhase(StrEnum):
    """Where the run stands. IDLE: there is none."""

    IDLE = "IDLE"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"


ACTIVE = (RunPhase.RUNNING, RunPhase.WAITING, RunPhase.PAUSED)
QUEUED = "QUEUED"  # what is shown for a run that has not begun; never the phase of the current one
QUEUE_MAX = 20  # runs that wait


class RoundPhase(StrEnum):
    """OPEN: leases decided; COLLECTING: deltas are taken; CLOSED only when its checkpoint is durable.

    A round stays OPEN, with its leases out, while the one before is not closed.
    """

    OPEN = "OPEN"
    COLLECTING = "COLLECTING"
    AGGREGATING = "AGGREGATING"
    COMMITTING = "COMMITTING"
    CLOSED = "CLOSED"


class LeaseState(StrEnum):
    """FREE: a unit that nobody has. OUT: with the worker. LOST: handed back or gone, but its delta is still welcome."""

    FREE = "FREE"
    OUT = "OUT"
    UPLOADING = "UPLOADING"
    ACCEPTED = "ACCEPTED"
    LOST = "LOST"


class Link(StrEnum):
    """What is known of the way to a worker. SUSPECT gets no new work; LOST gives its lease up."""

    LINKED = "LINKED"
    SUSPECT = "SUSPECT"
    DETACHED = "DETACHED"
    LOST = "LOST"


NOT_REJOINED = "0" * 32  # the boot id of a worker that is known from before the master's restart only

REACHABLE = (Link.LINKED, Link.SUSPECT)


@dataclass
class Lease:
    """One shard with one worker, in one attempt at a round."""

    id: str
    shard: int
    worker: str
    ranges: list[Range]
    samples: int
    k_steps: int
    batch: int
    delta_scale: float
    state: LeaseState = LeaseState.OUT
    reason: Reason | None = None
    refused: bool = False  # handed back, or its delta was bad: the work itself may be at fault
    bad: bool = False  # its delta was bad
    diverged: bool = False  # because its values are not finite, or beyond the bound
    moved_ms: int = 0  # the last sign that its worker works on it
    offered_ms: int = 0  # its delta began to come
    accepted_ms: int = 0
    absmax: float = 0.0  # of what was added, so after the clip
    norm: float = 0.0
    clip: float = 1.0
    loss: float | None = None
    step_ms: float | None = None  # one local step took
    sync_ms: float | None = None  # the exchange before these steps took
    delta_bytes: int = 0
    given: list[str] = field(default_factory=list)  # who had it; a unit may have had several
    failed_on: list[str] = field(default_factory=list)  # who could not do it, one entry for each time

    @property
    def is_out(self) -> bool:
        """With its worker, or on the way back: an answer is still awaited."""
        return self.state in (LeaseState.OUT, LeaseState.UPLOADING)

    def lose(self, reason: Reason, *, refused: bool = False, bad: bool = False, diverged: bool = False) -> None:
        """Its worker does not do it, for this reason; what it still brings of it is welcome."""
        self.state, self.reason, self.refused, self.bad = LeaseState.LOST, reason, refused, bad
        self.diverged = diverged


@dataclass
class Round:
    """One round from its assignment to its durable checkpoint."""

    number: int
    attempt: int
    bound: float  # B of the fixed-point fold, a power of two
    leases: list[Lease]  # by shard
    opened_ms: int  # since when it collects; till then, since when it is open
    encoding: Encoding
    phase: RoundPhase = RoundPhase.OPEN
    saved: bool = False  # its table is durable, its leases are out
    ahead: bool = False  # opened while the one before was not closed
    reason: Reason | None = None
    digest: str = ""
    meta: dict[str, Any] = field(default_factory=dict)  # what its checkpoint says, fixed when COMMITTING begins
    clip_limit: float | None = None  # of a delta's norm: see `clipping`
    units: bool = False  # leases are given out one after the other, to whoever is free
    hold_until_ms: int = 0  # units are not given out before: workers that rejoin may hold them
    bad_workers: list[str] = field(default_factory=list)  # whose unit was bad, and was given to another since
    waits_for: Lease | None = None  # in a large round: while this one is out, only time can close it
    by_worker: dict[str, list[Lease]] = field(init=False, repr=False)
    samples: int = field(init=False)  # assigned in the round: what a delta's weight is a fraction of

    @property
    def base_version(self) -> int:
        """The version that its deltas are made against; the round before makes it."""
        return self.number - 1

    def __post_init__(self) -> None:
        self.by_worker = {}
        for lease in self.leases:
            if lease.worker:
                self.give(lease, lease.worker)
        self.samples = sum(lease.samples for lease in self.leases)

    @property
    def ranges(self) -> list[Range]:
        """The stream positions of all its leases."""
        return [one for lease in self.leases for one in lease.ranges]

    def give(self, lease: Lease, worker: str) -> None:
        """From now on this worker has the lease."""
        lease.worker = worker
        self.welcome(lease, worker)

    def welcome(self, lease: Lease, worker: str) -> None:
        """This worker's delta for the lease counts, too, if it comes first."""
        if worker not in lease.given:
            lease.given.append(worker)
            self.by_worker.setdefault(worker, []).append(lease)

    def of(self, worker: str) -> list[Lease]:
        """The leases that a worker has."""
        return [lease for lease in self.by_worker.get(worker, ()) if lease.worker == worker]

    def lease(self, lease_id: str) -> Lease | None:
        """The lease with this id, if it belongs to this attempt."""
        return next((lease for lease in self.leases if lease.id == lease_id), None)

    def accepted(self) -> list[Lease]:
        """Accepted leases, by shard."""
        return self.sorted_out()[0]

    def sorted_out(self) -> tuple[list[Lease], list[Lease]]:
        """Accepted leases and those that are out, each by shard. Asked for each delta: one walk, nothing more."""
        accepted, out, is_accepted, is_lost = [], [], LeaseState.ACCEPTED, LeaseState.LOST
        for lease in self.leases:
            state = lease.state
            if state is is_accepted:
                accepted.append(lease)
            elif state is not is_lost and state is not LeaseState.FREE:
                out.append(lease)
        return accepted, out


@dataclass
class Evaluation:
    """What the evaluator measured on held-out examples at one version."""

    version: int
    loss: float
    accuracy: float


@dataclass
class Pace:
    """How the rounds are cut, as it was measured: see `pace`. JSON values only: it is in tables and checkpoints."""

    overlaps: bool = False
    k_steps: int | None = None  # as k_auto chose it
    encoding: Encoding | None = None  # as k_auto chose it
    told: bool = False  # that the link is busy and no more can be done here
    sync_ms: list[float] = field(default_factory=list)  # of the last rounds: the exchange
    step_ms: list[float] = field(default_factory=list)  # of the last rounds: one local step


@dataclass
class Reverting:
    """The run shall go back to its best version. `meta`: of the checkpoint that the desk writes; empty before that."""

    reason: Reason
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass
class ModelFile:
    """The copy of the model that people take away: see `model_file`."""

    round: int = 0  # the version of the run when a copy was last due
    asked: int | None = None  # the version whose copy was asked for last
    version: int | None = None  # the version that is in the file
    file: str = ""  # where that is, in full; empty while there is none
    reason: Reason | None = None  # why the last copy failed


@dataclass(frozen=True)
class Queued:
    """A run that was asked for while another went on. It has no version yet, and no id is used twice."""

    id: str
    spec: RunSpec


@dataclass
class Run:
    """One training job. `cursor` and `pending` are stream positions not yet given out."""

    id: str
    spec: RunSpec
    phase: RunPhase
    reason: Reason
    untold: bool = False  # the reason changed since the page was told
    version: int = 0
    digest: str = ""
    prepared: bool = False
    n_parameters: int = 0
    n_train: int = 0
    data: dict[str, Any] = field(default_factory=dict)
    cursor: int = 0
    pending: list[Range] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)  # in flight, by number
    attempt: int = 0  # of the next round to open: how often rounds of this run were begun again
    failed_attempts: int = 0  # at the next round, one after the other
    failed_workers: list[str] = field(default_factory=list)  # those that could not do it
    trouble: Reason | None = None  # why the last attempt failed
    restored: int = 0  # how often it was resumed from FAILED
    closed_accepted: dict[int, list[str]] = field(default_factory=dict)  # leases of the last rounds
    recent_absmax: list[float] = field(default_factory=list)  # of the last closed rounds, newest last
    recent_norms: list[float] = field(default_factory=list)  # the median of each
    recent_ms: list[int] = field(default_factory=list)
    pace: Pace = field(default_factory=Pace)
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)  # of rounds whose line is still to be printed
    lines: dict[int, str] = field(default_factory=dict)  # lines that wait for the line of an earlier round
    last_eval: Evaluation | None = None
    best_eval: Evaluation | None = None
    finished: bool = False
    watch: Watch = field(default_factory=Watch)
    ending: bool = False  # it has had enough: no round opens any more
    reverting: Reverting | None = None
    reverted: int = 0  # the version with which it went back to an earlier one's parameters; 0: it never did
    lr_scale: float = 1.0  # of the inner learning rate
    holds_queue: bool = False  # FAILED by the master's disk, not by itself: the next run would fail as well
    model: ModelFile = field(default_factory=ModelFile)

    @property
    def goes_back(self) -> bool:
        """The desk writes the version with the best one's parameters."""
        return self.reverting is not None and bool(self.reverting.meta)

    @property
    def inner(self) -> dict[str, Any]:
        """The inner optimizer with the learning rate that holds now."""
        inner = self.spec.inner
        return inner if self.lr_scale == 1.0 else {**inner, "lr": inner["lr"] * self.lr_scale}

    @property
    def name(self) -> str:
        """What people call it in a log line."""
        return f"run {self.id}"

    @property
    def k_steps(self) -> int:
        """Local steps of a median worker in the next round."""
        return self.pace.k_steps or self.spec.k_steps

    @property
    def encoding(self) -> Encoding:
        """How deltas and updates of the next round travel."""
        return self.pace.encoding or self.spec.encoding

    @property
    def rounds_in_flight(self) -> int:
        """How many rounds may be open: 2 when workers train on while deltas and updates travel."""
        return 2 if self.spec.rounds_in_flight == 2 or self.pace.overlaps else 1

    def go_back(self, reason: Reason) -> None:
        """It shall go back to its best version: `reverting` does it when nothing is being written any more."""
        self.reverting = self.reverting or Reverting(reason)

    def round(self, number: int) -> Round | None:
        """The round in flight with this number."""
        return next((round_ for round_ in self.rounds if round_.number == number), None)

    def ref(self, round_: Round, lease: Lease) -> TaskRef:
        """The address of a piece of work on the wire."""
        return TaskRef(
            run=self.id, round=round_.number, base_version=round_.base_version, shard=lease.shard, lease=lease.id
        )


@dataclass
class Worker:
    """One enrolled worker as the master sees it since its HELLO."""

    id: str
    name: str
    platform: str
    cores: int
    threads: int
    memory_mib: int
    samples_per_s: float  # of the present run once it is measured, else the score
    boot_id: str
    last_heard_ms: int
    joined_ms: int
    link: Link = Link.LINKED
    agent: str = "idle"
    owner: str = ""
    reason: Reason | None = None
    step: int = 0
    steps_total: int = 0
    progress_age_ms: int = 0
    draining: bool = False
    bad_rounds: int = 0  # rounds, one after the other, that closed on other workers' deltas while its own was bad
    quarantined: bool = False
    mismatches: int = 0  # updates, one after the other, that gave it another version than the master has
    mismatch_version: int = -1  # the last such version
    mismatches_total: int = 0
    clipped_rounds: int = 0
    failures: int = 0  # pieces of work, one after the other; each doubles the wait for the next
    not_before_ms: int = 0
    score: float = field(init=False)  # samples/s of the micro-benchmark, or what earlier runs make of it
    measured: bool = False  # in the present run
    gathered_samples: int = 0  # of tasks too short to judge by: see `speeds`
    gathered_ms: float = 0.0
    link_bytes_per_s: float | None = None  # of its uploads
    accepted_rounds: int = 0
    samples_total: int = 0

    def __post_init__(self) -> None:
        self.score = self.samples_per_s


@dataclass
class State:
    """Everything."""

    term: int
    workers: dict[str, Worker] = field(default_factory=dict)
    run: Run | None = None
    queue: list[Queued] = field(default_factory=list)  # in the order in which they begin
    queue_told: Reason | None = None  # what the first one waits for, as it was told
    enrolled: list[str] = field(default_factory=list)  # ids, as they were when this master started
    last_tick_ms: int = 0
    last_heartbeat_ms: int = 0

    @property
    def phase(self) -> RunPhase:
        """The run's phase, IDLE without one."""
        return RunPhase.IDLE if self.run is None else self.run.phase

    @property
    def busy(self) -> bool:
        """Whether a run goes on, or one that was stopped still writes its last version."""
        run = self.run
        return run is not None and (run.phase in ACTIVE or bool(run.rounds) or run.goes_back)

    def task_of(self, worker: str, run_id: str) -> TaskRef | None:
        """The piece of work that a worker has out in this run."""
        if self.run is None or self.run.id != run_id:
            return None
        for round_ in self.run.rounds:
            for lease in round_.of(worker):
                if lease.state is LeaseState.OUT:
                    return self.run.ref(round_, lease)
        return None

    def by_id(self) -> list[Worker]:
        """Workers sorted by id: the only order in which decisions look at them."""
        return [self.workers[key] for key in sorted(self.workers)]
