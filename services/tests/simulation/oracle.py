"""What must hold whatever happens: looked at after every step of the coordinator, against what the trainers made.

Safety: no round that was announced is lost or changes; no delta counts twice, or in another round, or unjudged; no
stream position is used twice; each version is the one before minus the weighted mean of the deltas that it names, but
for what the update's encoding left over, which is kept, or, once in a run, an earlier version again; what a delta left
over is owed only when the delta counts, and not any more when the run has gone back.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from services.common.learning import digest
from services.common.protocol.messages import RoundClosed
from services.master.core import commands as c
from services.master.core.events import CheckpointDone, Event, Reverted
from services.master.core.invariants import violations
from services.master.core.state import Run
from services.tests.simulation.master import Master
from services.tests.simulation.trainer import Made

Floats = np.ndarray[Any, np.dtype[np.float32]]
Accepted = dict[int, tuple[Made, float]]  # by shard, with the clip factor
TOLERANCE = 2.0**-20
MANY = 50  # workers; then not every step is looked at


class Violated(AssertionError):
    """An invariant is broken."""


@dataclass
class Oracle:
    """One for a whole simulation; it outlives masters and workers."""

    made: dict[tuple[str, str], Made] = field(default_factory=dict)  # by lease and digest
    left_over: dict[str, set[str]] = field(default_factory=dict)  # digest of what was left over -> leases
    counted: set[str] = field(default_factory=set)  # leases in a durable version
    announced: dict[tuple[str, int], str] = field(default_factory=dict)  # (run, version) -> digest
    written: dict[tuple[str, int, str], Accepted] = field(default_factory=dict)  # (run, version, digest) -> its deltas
    settled: dict[str, int] = field(default_factory=dict)  # run -> version up to which all was checked
    used: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # run -> positions in durable versions
    went_back: dict[tuple[str, int], int] = field(default_factory=dict)  # (run, version) -> whose parameters it has
    since: dict[str, int] = field(default_factory=dict)  # lease -> version with which its run had gone back
    reverted: int = 0  # versions of that kind that became durable
    folded: dict[tuple[int, str, int], Accepted] = field(default_factory=dict)  # by term, run, round
    closed: int = 0
    _steps: int = 0

    def trained(self, made: Made) -> None:
        """A trainer made this delta. What it owed before is what a delta left over that counts."""
        lease = made.task.ref.lease
        self.made[lease, made.digest] = made
        while len(self.made) > 20_000:
            self.made.pop(next(iter(self.made)))
        self.since[lease] = made.task.reverted
        if made.owed is not None and made.owed.any():
            leases = self.left_over.get(digest(made.owed), set())
            if not leases & self.counted:
                raise Violated(f"{lease} owes what {sorted(leases)} left over, and none of them counts")
            if made.task.reverted not in {self.since[one] for one in leases & self.counted}:
                raise Violated(f"{lease} owes what {sorted(leases)} left over, and the run has gone back since")
        if made.left_over is not None:
            self.left_over.setdefault(digest(made.left_over), set()).add(lease)

    def watch(self, master: Master) -> None:
        """Look at all that this master does, and at what it resumed from."""
        master.reactor.seen = lambda _, event, commands: self._see(master, event, commands)

    def resumed(self, master: Master) -> None:
        """After a start: nothing that was announced may be gone."""
        self._look_for_newest(master)
        run = master.coordinator.state.run
        if run is None:
            return
        newest = max((version for name, version in self.announced if name == run.id), default=0)
        if run.version < newest:
            raise Violated(f"version {newest} of {run.id} was announced, the master resumed at {run.version}")
        known = self.announced.get((run.id, run.version))
        if known is not None and known != run.digest:
            raise Violated(f"version {run.version} of {run.id} was {known}, is {run.digest} after the restart")
        if run.version > self.settled.get(run.id, 0):  # it died between the rename and the news of it
            self._settle(master, run.id, run.version, run.digest)

    def _look_for_newest(self, master: Master) -> None:
        """Of each run, also of those that ended."""
        newest: dict[str, int] = {}
        for run, version in self.announced:
            newest[run] = max(version, newest.get(run, 0))
        for run, version in newest.items():
            found, known = digest(master.parameters(run, version)), self.announced[run, version]
            if found != known:
                raise Violated(f"version {version} of {run} was announced as {known}, on the disk is {found}")

    def _see(self, master: Master, event: Event, commands: list[c.Command]) -> None:
        self._steps += 1
        many = len(master.coordinator.state.workers) > MANY
        due = self._steps % MANY == 0 if many else bool(commands)
        broken = violations(master.coordinator.state) if due else []
        if broken:
            raise Violated("; ".join(broken))
        if isinstance(event, Reverted) and any(isinstance(one, c.Evaluate) for one in commands):  # else it is too late
            self._settle(master, event.run, event.round, event.digest)
        if isinstance(event, CheckpointDone):
            run = master.coordinator.state.run
            assert run is not None
            self._settle(master, event.run, event.round, run.digest)
            self._check_positions(run)
        for command in commands:
            if isinstance(command, c.Fold):
                self._fold(master, command)
            elif isinstance(command, c.Aggregate):
                shards = self.folded.get((master.term, command.run, command.round), {})
                for shard, clip in command.clips.items():  # of a round that had no limit before
                    shards[shard] = (shards[shard][0], clip)
            elif isinstance(command, c.DropRound):
                self.folded.pop((master.term, command.run, command.round), None)
            elif isinstance(command, c.RestoreRun):
                for key in [key for key in self.folded if key[:2] == (master.term, command.run)]:
                    del self.folded[key]
            elif isinstance(command, c.Revert):
                self.went_back[command.run, command.round] = command.to_version
            elif isinstance(command, c.WriteCheckpoint):
                self._write(master, command)
            elif isinstance(command, c.Send) and isinstance(command.message, RoundClosed):
                self._announce(master, command.message)

    def _fold(self, master: Master, command: c.Fold) -> None:
        ref = command.ref
        made = self.made.get((ref.lease, command.digest))
        if made is None:
            raise Violated(f"a delta is folded for {ref.lease} that no trainer made for it")
        task = made.task
        if (task.ref.round, task.ref.shard, task.ref.base_version) != (ref.round, ref.shard, ref.base_version):
            raise Violated(f"the delta of {task.ref} is folded for {ref}")
        if not np.isfinite(made.sent).all():
            raise Violated(f"a delta of {ref.lease} that is not finite is folded")
        shards = self.folded.setdefault((master.term, ref.run, ref.round), {})
        if ref.shard in shards:
            raise Violated(f"shard {ref.shard} of round {ref.round} is folded twice")
        shards[ref.shard] = (made, 1.0 if command.clip is None else command.clip)

    def _announce(self, master: Master, message: RoundClosed) -> None:
        known = self.announced.setdefault((message.run, message.version), message.digest)
        if known != message.digest:
            raise Violated(f"version {message.version} of {message.run} was announced as {known} and {message.digest}")
        if not master.vault.path_of(message.run, message.version).exists():
            raise Violated(f"version {message.version} of {message.run} is announced and not on the disk")

    def _write(self, master: Master, command: c.WriteCheckpoint) -> None:
        """What the checkpoint says was accepted is what was folded."""
        accepted = dict(self.folded.get((master.term, command.run, command.round), {}))
        if sorted(command.meta["accepted"]) != sorted(accepted):
            raise Violated(f"round {command.round} lists {command.meta['accepted']}, folded were {sorted(accepted)}")
        self.written[command.run, command.round, command.meta["digest"]] = accepted

    def _settle(self, master: Master, run: str, version: int, digest: str) -> None:
        """A version is durable: the arithmetic, and that no stream position is in two versions."""
        self.settled[run] = version
        if (run, version, digest) not in self.written:
            self._settle_back(master, run, version)
            return
        self.closed += 1
        accepted = self.written[run, version, digest]
        self.counted.update(made.task.ref.lease for made, _ in accepted.values())
        before, after = (master.owed(run, one) for one in (version - 1, version))
        weights = np.array([made.task.samples for made, _ in accepted.values()], dtype=np.float64)
        deltas = np.stack([clip * made.sent.astype(np.float64) for made, clip in accepted.values()])
        worst = float(np.abs(before - weights @ deltas / weights.sum() - after).max())
        if not worst <= TOLERANCE * max(1.0, float(np.abs(before).max())):
            raise Violated(f"version {version} differs by {worst:.3g} from what its deltas make")
        used = self.used.get(run, [])
        ranges = sorted((start, stop) for made, _ in accepted.values() for start, stop in made.task.ranges)
        for start, stop in ranges:
            if any(start < other_stop and other_start < stop for other_start, other_stop in used):
                raise Violated(f"stream positions {start} to {stop} are in a second version, {version}")
        self.used[run] = _merge(used + ranges)

    def _settle_back(self, master: Master, run: str, version: int) -> None:
        """The run went back, once: to the bit, and it owes nothing."""
        to_version = self.went_back.get((run, version))
        if to_version is None:
            raise Violated(f"version {version} of {run} is durable, and nobody asked for it")
        self.reverted += 1
        found, wanted = (master.parameters(run, one) for one in (version, to_version))
        if found.tobytes() != wanted.tobytes() or master.owed(run, version).tobytes() != wanted.astype("f8").tobytes():
            raise Violated(f"version {version} of {run} is not what version {to_version} is")

    def _check_positions(self, run: Run) -> None:
        """No stream position is lost: each is used, pending, or with a worker."""
        used = self.used.get(run.id, [])
        out = [one for round_ in run.rounds for one in round_.ranges]
        if _merge(used + run.pending + out) != [(0, run.cursor)]:
            raise Violated(f"positions were lost: used {used}, pending {run.pending}, out {out} of {run.cursor}")


def _merge(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if merged and merged[-1][1] >= start:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged
