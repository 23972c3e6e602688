"""What a handler works with: the state, the time, and the list of commands that it fills."""

from dataclasses import dataclass, field

from services.common.protocol.messages import Reason, RoundClosed, Task, ToWorker, because
from services.master.core.commands import Answer, Command, Report, SaveRun, Send
from services.master.core.policy import EAGER_LEASES_MAX, Limits, failure_wait_ms
from services.master.core.state import Lease, Link, Round, Run, RunPhase, State, Worker
from services.master.core.view import run_view, worker_view


@dataclass
class Context:
    """One step's working place."""

    state: State
    limits: Limits
    now_ms: int
    ticked: bool = False  # time itself is the event
    out: list[Command] = field(default_factory=list)

    def send(self, worker: str, message: ToWorker) -> None:
        """Queue a message to a worker."""
        self.out.append(Send(worker, message))

    def answer(self, cmd_id: str, code: str, text: str, **result: str) -> None:
        """Reply to the operator; code OK means done. An empty id: part of a command that is answered as a whole."""
        if cmd_id:
            self.out.append(Answer(cmd_id, code == "OK", code, text, dict(result)))

    def report_run(self, run: Run, text: str) -> None:
        """Show the run as it is now; an empty text is not logged."""
        run.untold = False
        self.out.append(Report("RUN", text, run_view(run)))

    def report_worker(self, worker: Worker, text: str) -> None:
        """Show a worker as it is now."""
        self.out.append(Report("WORKER", text, worker_view(worker, self.state.run, self.now_ms)))

    def warn(self, text: str) -> None:
        """One line that someone should read."""
        self.out.append(Report("WARN", text, {}))

    def set_phase(self, run: Run, phase: RunPhase, reason: Reason, *, log: bool = True) -> None:
        """Change phase or reason; durable when the phase changes, logged when `log`, silent when nothing changed."""
        if (run.phase, run.reason) == (phase, reason):
            return
        if run.phase is not phase or phase is RunPhase.STOPPED:
            self.out.append(SaveRun(run.id, phase.value, reason, run.finished))
        run.phase, run.reason = phase, reason
        self.report_run(run, f"{run.name} is {phase.value}: {reason}" if log else "")

    def send_task(self, run: Run, round_: Round, lease: Lease) -> None:
        """The lease goes out to its worker, from now on time counts. Its base may not be made yet."""
        lease.moved_ms = self.now_ms
        worker = self.state.workers.get(lease.worker)
        if worker is not None:
            worker.reason = None
        task = Task(
            term=self.state.term,
            ref=run.ref(round_, lease),
            anchor_digest=run.digest,
            start_version=run.version if run.version < round_.base_version else None,
            n_parameters=run.n_parameters,
            data=run.data,
            data_seed=run.spec.seed,
            model=run.spec.model,
            inner=run.inner,
            ranges=lease.ranges,
            samples=lease.samples,
            k_steps=lease.k_steps,
            batch=lease.batch,
            delta_scale=lease.delta_scale,
            encoding=round_.encoding,
            rounds=run.spec.rounds,
            eager=len(round_.leases) <= EAGER_LEASES_MAX,
            fresh=round_.units,
            reverted=run.reverted,
        )
        self.send(lease.worker, task)

    def tell_closed(self, worker: str, run: Run, counted: list[str]) -> None:
        """ROUND_CLOSED of the run's version, with the leases of it that count for this worker."""
        closed = RoundClosed(
            term=self.state.term,
            run=run.id,
            round=run.version,
            version=run.version,
            digest=run.digest,
            counted=counted,
        )
        self.send(worker, closed)

    def busy(self, worker: Worker, lease: Lease, reason: Reason) -> None:
        """A worker still does something else: the piece of work comes again, and it is asked again a little later."""
        lease.lose(reason)
        worker.not_before_ms = self.now_ms + failure_wait_ms(1)

    def failed(
        self, worker: Worker, lease: Lease, reason: Reason, *, refused: bool, bad: bool = False, diverged: bool = False
    ) -> None:
        """A worker could not do this piece of work: it comes again, and this worker waits, each time longer."""
        lease.lose(reason, refused=refused, bad=bad, diverged=diverged)
        worker.failures += 1
        wait_ms = failure_wait_ms(worker.failures)
        worker.not_before_ms = self.now_ms + wait_ms
        worker.reason = because("WAITS_AFTER", why=reason, seconds=wait_ms // 1000)

    def quarantine(self, worker: Worker, reason: Reason) -> None:
        """This worker gets no more work until someone has looked at its PC; what to do follows the reason."""
        worker.quarantined = True
        worker.reason = because("QUARANTINED", why=reason)
        self.warn(f"{worker.name} gets no more work: {worker.reason}")

    def ready(self, *, ahead: bool = False) -> list[Worker]:
        """Workers that may get a new shard, by id. `ahead`: also those that still do one of the round before."""
        run = self.state.run if not ahead else None
        busy = [lease.worker for round_ in (run.rounds if run else []) for lease in round_.leases if lease.is_out]
        return [
            worker
            for worker in self.state.by_id()
            if worker.link is Link.LINKED
            and not worker.draining
            and not worker.quarantined
            and worker.agent != "paused"
            and worker.not_before_ms <= self.now_ms
            and self.now_ms - worker.last_heard_ms <= 2 * self.limits.heartbeat_ms
            and worker.id not in busy
        ]
