"""Runs a transcript: lines of events through the real coordinator, everything it does written below each as text.

An event line begins with `@<ms>`; what follows it, indented, is what the coordinator did. The shell's answers (data
read, table durable, outer step made, checkpoint durable) come by themselves, unless the transcript says
`shell by hand`. `restart` kills the master: only what was durable by then is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from services.common.protocol.messages import (
    Bye,
    DeltaBegin,
    Drain,
    Heartbeat,
    Held,
    Hello,
    Mismatch,
    RunSpec,
    TaskRef,
    TaskRefuse,
)
from services.common.protocol.reasons import Reason, because
from services.master.core import commands as c
from services.master.core import events as e
from services.master.core.coordinator import Coordinator
from services.master.core.invariants import violations
from services.master.core.queueing import PREPARING
from services.master.core.recovery import Saved
from services.master.core.state import QUEUE_MAX, Queued, RunPhase

RUN = "digits-1"
N_PARAMETERS = 1000
DIGEST = "{:032x}"


@dataclass
class Disk:
    """What is durable."""

    run: str = ""
    spec: RunSpec | None = None
    queue: list[Queued] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    tables: dict[int, dict[str, Any]] = field(default_factory=dict)  # by round
    phase: str = "WAITING"
    reason: Reason = PREPARING


class Story:
    """One transcript being played."""

    def __init__(self) -> None:
        self.term = 1
        self.coordinator = Coordinator(self.term)
        self.disk = Disk()
        self.by_hand = False
        self.diverges = False  # the next outer step
        self.now = 0
        self.leases: dict[str, TaskRef] = {}
        self.queued: dict[str, TaskRef] = {}  # of the round after that
        self.owed: list[tuple[e.Event, c.Command]] = []  # what the shell has yet to answer

    def play(self, text: str) -> str:
        """The transcript with everything below its event lines written anew."""
        out: list[str] = []
        for line in text.splitlines():
            if line.startswith("  "):
                continue
            out.append(line)
            if line == "shell by hand":
                self.by_hand = True
            elif line.startswith("@"):
                now, verb, *words = line[1:].split()
                out += ["  " + done for done in self._event(int(now), verb, words)]
        return "\n".join(out) + "\n"

    def _event(self, now: int, verb: str, words: list[str]) -> list[str]:
        if verb == "restart":
            return self._restart(now)
        if verb == "done":
            event, command = self.owed.pop(0)
            self._durable(command)
            return self._step(event, now)
        plain = [word for word in words if "=" not in word]
        facts = dict(word.split("=", 1) for word in words if "=" in word)
        if verb == "meanwhile":
            return self._meanwhile(now, facts)
        self.now = now
        events = getattr(self, f"_{verb}")(plain, facts)
        return [line for event in events for line in self._step(event, now)]

    def _step(self, event: e.Event, now: int) -> list[str]:
        lines: list[str] = []
        waiting = [event]
        while waiting:
            for command in self.coordinator.step(waiting.pop(0), now):
                lines += _tell(command)
                answer = self._answer(command)
                if answer is None:
                    self._durable(command)
                elif self.by_hand and not isinstance(command, c.CopyModel):
                    self.owed.append((answer, command))
                else:
                    self._durable(command)
                    waiting.append(answer)
            self._remember_leases()
            broken = violations(self.coordinator.state)
            assert not broken, broken
        return lines

    def _answer(self, command: c.Command) -> e.Event | None:
        if isinstance(command, c.PrepareRun):
            return e.RunPrepared(command.run, 10_000, N_PARAMETERS, DIGEST.format(0), {"name": "digits"})
        if isinstance(command, c.SaveAssignment):
            return e.AssignmentSaved(command.run, command.round, command.attempt)
        if isinstance(command, c.Aggregate) and self.diverges:
            self.diverges = False
            return e.Diverged(command.run, command.round)
        if isinstance(command, c.Revert):
            return e.Reverted(command.run, command.round, DIGEST.format(command.to_version))
        if isinstance(command, c.Aggregate):
            return e.AggregationDone(command.run, command.round, DIGEST.format(command.round), 500, DIGEST.format(9))
        if isinstance(command, c.WriteCheckpoint):
            return e.CheckpointDone(command.run, command.round)
        if isinstance(command, c.CopyModel):
            return e.ModelCopied(command.run, command.version, f"/data/{command.path}")
        return None

    def _durable(self, command: c.Command) -> None:
        if isinstance(command, c.PrepareRun):
            self.disk.run, self.disk.spec, self.disk.phase = command.run, command.spec, "WAITING"
            self.disk.queue = [one for one in self.disk.queue if one.id != command.run]
            self.disk.tables = {}
            self.disk.meta = {
                "version": 0,
                "digest": DIGEST.format(0),
                "n_train": 10_000,
                "data": {"name": "digits"},
                "cursor": 0,
                "pending": [],
                "recent_absmax": [],
                "recent_norms": [],
                "accepted": [],
                "counted": [],
                "lr_scale": 1.0,
                "reverted": 0,
                "running_ms": 0,
                "row": None,
            }
        elif isinstance(command, c.SaveAssignment):
            before = {number: one for number, one in self.disk.tables.items() if number == command.round - 1}
            self.disk.tables = before | {command.round: command.table}
        elif isinstance(command, c.WriteCheckpoint):
            self.disk.meta = command.meta
        elif isinstance(command, c.Revert):
            self.disk.meta = {**command.meta, "digest": DIGEST.format(command.to_version)}
        elif isinstance(command, c.SaveRun) and command.run != self.disk.run:
            self.disk.queue = [one for one in self.disk.queue if one.id != command.run]
        elif isinstance(command, c.SaveRun):
            self.disk.phase, self.disk.reason = command.phase, command.reason

    def _restart(self, now: int) -> list[str]:
        self.term += 1
        self.owed.clear()
        self.coordinator = Coordinator(self.term)
        disk, queue = self.disk, list(self.disk.queue)
        assert disk.spec is not None
        names = {worker: worker.removeprefix("w-") for worker in {**self.leases, "w-ada": None, "w-bob": None}}
        phase = RunPhase(disk.phase)
        tables = [one for number, one in disk.tables.items() if number > disk.meta["version"]]
        saved = Saved(disk.run, disk.spec, phase, disk.reason, N_PARAMETERS, disk.meta, tables, names, queue=queue)
        self.coordinator.restore(saved, now)
        assert not violations(self.coordinator.state)
        run = self.coordinator.state.run
        assert run is not None
        open_rounds = [f"round {one.number} of attempt {one.attempt}" for one in run.rounds]
        return [f"term {self.term}, version {run.version}, {run.phase.value}, open: {', '.join(open_rounds) or 'none'}"]

    def _meanwhile(self, until: int, agents: dict[str, str]) -> list[str]:
        """Heartbeats and ticks every 2 s up to `until`; a `frozen` worker trains without progress since now."""
        lines, since = [], self.now
        while self.now + 2000 <= until:
            self.now += 2000
            for name, agent in agents.items():
                age = f"age={self.now - since}" if agent == "frozen" else "age=0"
                lines += self._event(self.now, "beat", [name, "agent=" + agent.replace("frozen", "training"), age])
            lines += [f"{line} (at {self.now})" for line in self._event(self.now, "tick", [])]
        return lines

    # one method for each verb

    def _join(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        holding = (
            [Held(ref=self._ref(plain[0]), bytes=4 * N_PARAMETERS, digest=DIGEST.format(7))] if "holds" in plain else []
        )
        hello = Hello(
            proto_min=1,
            proto_max=1,
            app_version="0.1.0",
            boot_id=DIGEST.format(int(facts.get("boot", "1"))),
            platform="linux",
            cores=2,
            threads=2,
            memory_mib=4096,
            score=float(facts.get("speed", "1000")),
            holding=holding,
            working=self._ref(plain[0]) if "works" in plain else None,
            queued=self.queued.get(f"w-{plain[0]}") if "works" in plain else None,
        )
        return [e.WorkerJoined(f"w-{plain[0]}", plain[0], hello)]

    def _left(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        return [e.WorkerLeft(f"w-{plain[0]}", because("CONNECTION_GONE"))]

    def _beat(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        agent: Any = facts.get("agent", "training")
        heartbeat = Heartbeat(term=self.term, agent=agent, progress_age_ms=int(facts.get("age", "0")))
        return [e.WorkerSaid(f"w-{name}", heartbeat) for name in plain]

    def _drain(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        return [e.WorkerSaid(f"w-{plain[0]}", Drain(term=self.term, reason="paused by its owner"))]

    def _bye(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        return [e.WorkerSaid(f"w-{plain[0]}", Bye(term=self.term, code="STOPPING", reason="stopped by its owner"))]

    def _refuse(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        busy = "busy" in plain
        reason = "paused by its owner" if busy else "not enough memory"
        refuse = TaskRefuse(term=self.term, ref=self._ref(plain[0]), reason=reason, busy=busy)
        return [e.WorkerSaid(f"w-{plain[0]}", refuse)]

    def _begin(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        ref = self._ref(facts.get("of", plain[0]))
        if "lease" in facts:
            round_number = int(facts["lease"].split(".")[1])
            ref = ref.model_copy(update={"lease": facts["lease"], "round": round_number, "shard": int(facts["shard"])})
        begin = DeltaBegin(
            term=self.term,
            ref=ref,
            encoding=self.disk.spec.encoding if self.disk.spec is not None else "fp32",
            bytes=int(facts.get("bytes", str(4 * N_PARAMETERS))),
            chunks=1,
            chunk_bytes=262_144,
            digest=DIGEST.format(int(facts.get("digest", "7"))),
            samples=int(facts.get("samples", "100")),
            steps=int(facts.get("steps", "10")),
            correct=50,
            loss=float(facts.get("loss", "1.5")),
            compute_ms=float(facts.get("compute", "0")),
            sync_ms=int(facts["sync"]) if "sync" in facts else None,
            late_ms=float(facts["late"]) if "late" in facts else None,
        )
        return [e.WorkerSaid(f"w-{plain[0]}", begin)]

    def _staged(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        nonfinite, absmax = int(facts.get("nonfinite", "0")), float(facts.get("absmax", "0.5"))
        code = facts.get("code", "")
        text = "as it says" if code else ""
        digest = DIGEST.format(int(facts.get("digest", "7")))
        norm = float(facts.get("norm", "1.0"))
        return [e.DeltaStaged(f"w-{plain[0]}", self._ref(plain[0]), digest, code, text, nonfinite, absmax, norm)]

    def _mismatch(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        message = Mismatch(
            term=self.term, ref=self._ref(plain[0]), reason="the anchor with 1 updates has another digest"
        )
        return [e.WorkerSaid(f"w-{plain[0]}", message)]

    def _stalled(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        return [e.UploadStalled(f"w-{plain[0]}", self._ref(plain[0]))]

    def _delta(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        return self._begin(plain, facts) + self._staged(plain, facts)

    def _tick(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        return [e.Tick()]

    def _create(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        values = {key: int(value) if value.isdigit() else value for key, value in {"encoding": "fp32", **facts}.items()}
        asked = Queued(plain[0] if plain else RUN, RunSpec.model_validate(values))
        self.disk.queue += [asked] if len(self.coordinator.state.queue) < QUEUE_MAX else []
        return [e.CreateRun("command-1", asked.id, asked.spec)]

    def _pause(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        return [e.PauseRun("command-2", self._named(plain))]

    def _resume(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        return [e.ResumeRun("command-3", self._named(plain))]

    def _stop(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        return [e.StopRun("command-4", self._named(plain))]

    def _named(self, plain: Sequence[str] = ()) -> str:
        """The run that is named, else the current one."""
        run = self.coordinator.state.run
        return plain[0] if plain else run.id if run is not None else RUN

    def _remove(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        return [e.RemoveWorker("command-5", f"w-{plain[0]}")]

    def _fail(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        self.owed.clear()
        return [e.WorkFailed(self._named(), "the disk is full; free it, then resume the run")]

    def _eval(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        return [e.EvalDone(self._named(), int(facts["version"]), float(facts["loss"]), float(facts["acc"]))]

    def _diverge(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        self.diverges = True
        return []

    def _nan(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        version = int(facts["version"])
        return [e.EvalSkipped(self._named(), version, "the evaluation loss is not finite", not_finite=True)]

    def _skip(self, plain: list[str], facts: dict[str, str]) -> list[e.Event]:
        return [e.EvalSkipped(self._named(), int(facts["version"]), "not evaluated: a newer version was ready")]

    def _ref(self, name: str) -> TaskRef:
        return self.leases[f"w-{name}"]

    def _remember_leases(self) -> None:
        run = self.coordinator.state.run
        given = [(lease, round_) for round_ in (run.rounds if run else []) for lease in round_.leases if lease.worker]
        self.queued.clear()
        for lease, round_ in sorted(given, key=lambda one: (one[0].is_out, -one[1].number)):  # out before done
            if lease.worker in self.leases and self.leases[lease.worker].round > round_.number and lease.is_out:
                self.queued[lease.worker] = self.leases[lease.worker]
            assert run is not None
            self.leases[lease.worker] = run.ref(round_, lease)


def _tell(command: c.Command) -> list[str]:
    """One line for a command; none for what would only be noise."""
    if isinstance(command, c.Send):
        line = _tell_message(command.message)
        return [f"-> {command.worker.removeprefix('w-')} {line}"] if line else []
    if isinstance(command, c.Report):
        return [f"[{command.kind}] {command.text}"] if command.text else []
    if isinstance(command, c.SaveRun):
        return [f"save: the run is {command.phase}"]
    if isinstance(command, c.SaveAssignment):
        return [f"save: table of round {command.round}, attempt {command.attempt}, cursor {command.table['cursor']}"]
    if isinstance(command, c.WriteCheckpoint):
        meta = command.meta
        data = f"cursor {meta['cursor']}, pending {meta['pending']}"
        return [f"save: checkpoint {command.round}, accepted {meta['accepted']}, {data}"]
    if isinstance(command, c.Fold):
        which = "" if int(command.digest, 16) == 7 else f" (digest {int(command.digest, 16)})"
        clip = "" if command.clip == 1.0 else ", kept" if command.clip is None else f", clipped to {command.clip:.3g}"
        weight = f"weight {command.weight:.4g}"
        return [f"fold shard {command.ref.shard}{which}, {weight}, bound {command.bound:g}{clip}"]
    if isinstance(command, c.Revert):
        return [f"save: version {command.round} with the parameters of {command.to_version}, {_state(command.meta)}"]
    if isinstance(command, c.RestoreRun):
        return [f"read version {command.version} again"]
    if isinstance(command, c.PrepareRun):
        return ["save: the run is WAITING", "read the data, write version 0"]
    if isinstance(command, c.CopyModel):
        return [f"copy the model: version {command.version}"]
    if isinstance(command, c.Answer):
        return [f"answer {command.code}: {command.text}"]
    known = {
        c.Stage: "take the delta in",
        c.DropStaged: "drop the staged delta",
        c.Aggregate: "outer step",
        c.Evaluate: "evaluate",
        c.RevokeWorker: "revoke its key",
        c.ForgetSession: "forget its session",
    }
    return [known[type(command)]] if type(command) in known else []


def _state(meta: dict[str, Any]) -> str:
    return f"cursor {meta['cursor']}, pending {meta['pending']}, learning rate x {meta['lr_scale']:g}"


def _tell_message(message: Any) -> str:
    if message.t == "HEARTBEAT":
        return ""
    if message.t == "TASK":
        ranges = ", ".join(f"{start}..{stop}" for start, stop in message.ranges)
        rate = f", learning rate {message.inner['lr']:g}" if message.reverted else ""
        scale = f", delta x {message.delta_scale:.3g}" if message.delta_scale != 1.0 else ""
        return (
            f"TASK round {message.ref.round} shard {message.ref.shard}: {message.samples} samples ({ranges}), "
            f"{message.k_steps} steps of {message.batch}{scale}{rate}"
        )
    if message.t == "ACK":
        return f"ACK {message.status}: {message.text}"
    if message.t == "ROUND_CLOSED":
        shards = [int(lease.split(".")[3]) for lease in message.counted]
        return f"ROUND_CLOSED {message.round}, counted of it: shards {shards}"
    if message.t == "UPDATE":
        return f"UPDATE to version {message.version}"
    if message.t == "CANCEL":
        return f"CANCEL round {message.ref.round} shard {message.ref.shard}: {message.reason}"
    return f"{message.t}: {message.reason}"
