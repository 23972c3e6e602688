"""What computes and writes: checks and folds deltas, makes the outer step, writes checkpoints and rows.

One method for each job; `aggregation` has the thread that calls them. Results go back as events. Bytes come in as
arrays that nobody else touches any more, and go out as read-only snapshots.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from services.common.errors import CheckpointError, MaheError
from services.common.host.failpoints import failpoint
from services.common.kernels import Threads, stats
from services.common.learning import (
    OuterOptimizer,
    apply_update,
    build_model,
    build_outer,
    bytes_digest,
    describe,
    digest,
    load,
)
from services.common.learning.encodings import Bytes, check, decode, encode, examine
from services.common.protocol.messages import DeltaBegin, Reason, RunSpec, down_encoding
from services.master.core.commands import (
    Aggregate,
    DropRound,
    DropStaged,
    Fold,
    PrepareRun,
    RestoreRun,
    Revert,
    SaveAssignment,
    SaveRound,
    SaveRun,
    WriteCheckpoint,
)
from services.master.core.events import (
    AggregationDone,
    AssignmentSaved,
    CheckpointDone,
    DeltaStaged,
    Diverged,
    Event,
    Reverted,
    RunPrepared,
    RunUnusable,
    WorkFailed,
)
from services.master.core.queueing import PREPARING
from services.master.core.recovery import version_meta
from services.master.core.state import Run, RunPhase
from services.master.shell.checkpoints import Checkpoint
from services.master.shell.gathering import Gathering, gather

Floats = npt.NDArray[np.float32]
Job = Callable[["Desk"], None]


@dataclass(frozen=True)
class Snapshot:
    """One version as workers pull it: read-only float32[n]. `alone`: no update leads to it or past it."""

    run: str
    version: int
    parameters: Floats
    digest: str
    alone: bool = False


@dataclass(frozen=True)
class EncodedUpdate:
    """What makes `version` out of the version before it: read-only bytes and their digest."""

    run: str
    version: int
    encoded: Bytes
    digest: str


@dataclass
class _Current:
    """The run in work: its newest durable version and what is being made of it."""

    run: str
    spec: RunSpec
    parameters: Floats
    outer: OuterOptimizer
    residual: Floats | None  # what encoded updates owe so far; None where nothing is ever left over
    gathered: dict[int, Gathering] = field(default_factory=dict)  # by round
    next_parameters: dict[int, Floats] = field(default_factory=dict)  # by round
    best: int | None = None


class Rows(Protocol):
    """Where rows are kept: the shipped `Store`, or the simulator's with faults. Writes raise CheckpointError."""

    def save_assignment(self, run: str, table: dict[str, Any]) -> None:
        """The open round's table."""

    def begin_run(self, run: str, phase: str, reason: Reason) -> None:
        """A run is the current one from now on."""

    def save_run(self, run: str, phase: str, reason: Reason, finished: bool) -> None:
        """A run's phase."""

    def save_round(self, run: str, row: dict[str, Any]) -> None:
        """A closed round's row."""

    def add_events(self, events: list[tuple[int, str, str]]) -> None:
        """Log lines."""

    def close(self) -> None:
        """The end."""


class Versions(Protocol):
    """Where versions are kept: the shipped `Vault`, or the simulator's with faults."""

    def write(self, checkpoint: Checkpoint) -> None:
        """Durable when it returns; raises CheckpointError."""

    def read(self, run: str, version: int) -> Checkpoint:
        """Read and verify; raises CheckpointError."""

    def prune(self, run: str, keep: set[int]) -> None:
        """Delete old ones."""


class Desk:
    """Belongs to one thread. `pinned`: versions that must stay for the evaluator; `threads`: for what is large."""

    def __init__(
        self,
        rows: Rows,
        vault: Versions,
        post: Callable[[Event], None],
        publish: Callable[[Snapshot | EncodedUpdate], None],
        pinned: Callable[[], set[int]],
        threads: Threads | None = None,
    ) -> None:
        self._rows, self._vault = rows, vault
        self._post, self._publish, self._pinned, self._threads = post, publish, pinned, threads
        self._run, self._restored = "", 0  # the run in work, or that should be; how often it was resumed
        self._current: _Current | None = None
        self._unpruned = False
        self._staged: dict[tuple[str, str], Bytes] = {}  # checked deltas by lease and digest, until folded or dropped

    def close(self) -> None:
        """Close the store, end the threads."""
        self._rows.close()
        if self._threads is not None:
            self._threads.close()

    def run_job(self, job: "Job") -> None:
        """An operating error fails the run with its sentence; anything else is a bug and ends the master loudly."""
        try:
            job(self)
        except MaheError as error:
            self._post(WorkFailed(self._run, error.sentence, self._restored))

    def prepare(self, command: PrepareRun) -> None:
        """The run begins: keep that, read the data, build the model, write version 0."""
        self._run, self._restored = command.run, 0
        try:
            self._rows.begin_run(command.run, RunPhase.WAITING.value, PREPARING)
            data = describe(command.spec.dataset)
            dataset = load(data)
            model = build_model(command.spec.model, dataset.x_train.shape[1], dataset.classes)
            outer = build_outer(command.spec.outer, model.n_parameters, self._threads)
            parameters = model.initial_parameters(command.spec.seed)
            self._staged.clear()
            residual = None if command.spec.encoding == "fp32" else np.zeros_like(parameters)
            self._current = _Current(command.run, command.spec, parameters, outer, residual)
            version_digest = digest(parameters)
            run = Run(command.run, command.spec, RunPhase.WAITING, PREPARING, data=data, n_train=len(dataset.y_train))
            meta = {**version_meta(run, 0), "digest": version_digest}
            self._vault.write(Checkpoint(parameters, outer.state(), meta, residual))
        except MaheError as error:
            self._post(RunUnusable(command.run, error.sentence, disk=isinstance(error, CheckpointError)))
            return
        self._publish_version(0, version_digest)
        self._post(RunPrepared(command.run, len(dataset.y_train), len(parameters), version_digest, data))

    def restore(self, spec: RunSpec, checkpoint: Checkpoint, best: int | None) -> None:
        """Take up a run from its checkpoint."""
        run = self._run = checkpoint.meta["run"]
        outer = build_outer(spec.outer, len(checkpoint.parameters), self._threads)
        outer.load(checkpoint.outer)
        self._current = _Current(run, spec, checkpoint.parameters, outer, checkpoint.residual, best=best)
        self._publish_version(checkpoint.meta["version"], checkpoint.meta["digest"])

    def read_again(self, command: RestoreRun) -> None:
        """Go back to a durable version: what was computed or checked since is void."""
        self._run, self._restored = command.run, command.restored
        self._staged.clear()
        best = self._current.best if self._current is not None and self._current.run == command.run else None
        self._current = None
        self.restore(command.spec, self._vault.read(command.run, command.version), best)

    def check(self, worker: str, begin: DeltaBegin, delta: Bytes) -> None:
        """Digest of the whole, well formed and finite, largest entry, norm."""
        ref, found = begin.ref, bytes_digest(delta)
        if found != begin.digest:
            text = f"digest of the delta is {found}, announced was {begin.digest}"
            self._post(DeltaStaged(worker, ref, begin.digest, "DELTA_DIGEST", text))
            return
        current = self._current
        if current is None or current.run != ref.run:
            text = f"run {ref.run} is not in work"
            self._post(DeltaStaged(worker, ref, begin.digest, "DELTA_STALE", text))
            return
        encoding, n = begin.encoding, len(current.parameters)
        if fault := check(encoding, delta, n):
            code = "DELTA_NOT_FINITE" if "not finite" in fault else "DELTA_MALFORMED"
            self._post(DeltaStaged(worker, ref, found, code, f"{fault}; lower the learning rate"))
            return
        self._staged[ref.lease, found] = delta
        facts = examine(encoding, delta, n)
        self._post(DeltaStaged(worker, ref, found, "", "", facts.nonfinite, facts.absmax, facts.sum_squares**0.5))

    def fold(self, command: Fold) -> None:
        """Add one accepted delta."""
        delta = self._staged.pop((command.ref.lease, command.digest))
        current = self._run_of(command.ref.run)
        gathered = current.gathered.get(command.ref.round)
        if gathered is None:
            gathered = gather(current.spec, len(current.parameters), command, self._threads)
            current.gathered[command.ref.round] = gathered
        gathered.add(command, delta)

    def aggregate(self, command: Aggregate) -> None:
        """The mean, the update as replicas get it, the outer step with just that; the old version stays as it is."""
        current = self._run_of(command.run)
        mean = current.gathered.pop(command.round).mean(command.weight, command.clips)
        encoding = down_encoding(command.encoding)
        if current.residual is None and encoding != "fp32":  # until now nothing was left over
            current.residual = np.zeros_like(current.parameters)
        encoded = encode(encoding, current.outer.update(mean), current.residual, self._threads)
        encoded.setflags(write=False)
        parameters = current.parameters.copy()
        apply_update(parameters, decode(encoding, encoded, len(parameters), threads=self._threads), self._threads)
        if stats(parameters).nonfinite:
            self._post(Diverged(command.run, command.round))
            return
        parameters.setflags(write=False)
        current.next_parameters[command.round] = parameters
        update = EncodedUpdate(command.run, command.round, encoded, bytes_digest(encoded))
        self._publish(update)
        made = digest(parameters)
        self._post(AggregationDone(command.run, command.round, made, encoded.nbytes, update.digest))

    def write_checkpoint(self, command: WriteCheckpoint) -> None:
        """Make the version durable, then let it be pulled."""
        current = self._run_of(command.run)
        parameters = current.next_parameters.pop(command.round)
        self._vault.write(Checkpoint(parameters, current.outer.state(), command.meta, current.residual))
        current.parameters = parameters
        failpoint("version.before-publish")
        self._publish_version(command.meta["version"], command.meta["digest"])
        failpoint("version.before-announce")
        self._post(CheckpointDone(command.run, command.round))
        self._unpruned = True

    def revert(self, command: Revert) -> None:
        """The next version is an earlier one's parameters: durable as any other, and nothing else is carried over."""
        current = self._run_of(command.run)
        parameters = self._vault.read(command.run, command.to_version).parameters
        outer = build_outer(current.spec.outer, len(parameters), self._threads)
        residual = None if current.residual is None else np.zeros_like(parameters)
        meta = {**command.meta, "digest": digest(parameters)}
        self._vault.write(Checkpoint(parameters, outer.state(), meta, residual))
        self._current = _Current(command.run, current.spec, parameters, outer, residual, best=current.best)
        failpoint("version.before-publish")
        self._publish_version(meta["version"], meta["digest"], alone=True)
        failpoint("version.before-announce")
        self._post(Reverted(command.run, command.round, meta["digest"]))
        self._unpruned = True

    def mark_best(self, run: str, version: int) -> None:
        """This version's checkpoint is not pruned."""
        if self._current is not None and self._current.run == run:
            self._current.best = version

    def drop_round(self, command: DropRound) -> None:
        """Forget a round's sum and its checked deltas."""
        if self._current is not None and self._current.run == command.run:
            self._current.gathered.pop(command.round, None)
            self._current.next_parameters.pop(command.round, None)
        prefix = f"{command.run}.{command.round}."
        for key in [key for key in self._staged if key[0].startswith(prefix)]:
            del self._staged[key]

    def drop_staged(self, command: DropStaged) -> None:
        """Forget one checked delta."""
        self._staged.pop((command.ref.lease, command.digest), None)

    def save_assignment(self, command: SaveAssignment) -> None:
        """The table, then the news that it is durable."""
        self._rows.save_assignment(command.run, command.table)
        self._post(AssignmentSaved(command.run, command.round, command.attempt))
        self._prune()  # now the workers have something to do

    def save_run(self, command: SaveRun) -> None:
        """A run's phase."""
        self._rows.save_run(command.run, command.phase, command.reason, command.finished)
        self._prune()

    def save_round(self, command: SaveRound) -> None:
        """A closed round's row."""
        self._rows.save_round(command.run, command.row)

    def save_events(self, events: list[tuple[int, str, str]]) -> None:
        """Log lines. Those that cannot be written are in the log all the same: no reason to fail a run."""
        with contextlib.suppress(CheckpointError):
            self._rows.add_events(events)

    def _prune(self) -> None:
        """Delete the versions that a new one has made old."""
        current = self._current
        if self._unpruned and current is not None:
            self._unpruned = False
            kept = 0 if current.best is None else current.best  # what a run that diverges goes back to
            self._vault.prune(current.run, self._pinned() | {kept})

    def _run_of(self, run: str) -> _Current:
        if self._current is None or self._current.run != run:
            raise CheckpointError(f"run {run} is not in work")
        return self._current

    def _publish_version(self, version: int, version_digest: str, *, alone: bool = False) -> None:
        assert self._current is not None
        self._current.parameters.setflags(write=False)
        self._publish(Snapshot(self._current.run, version, self._current.parameters, version_digest, alone))
