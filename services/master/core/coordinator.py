"""The one mutator of the master's state: `Coordinator.step(event, now_ms) -> list[Command]`.

Deterministic: the same events at the same times give the same commands. Time is an argument; randomness is not needed.
"""

from services.master.core import model_file, queueing, reverting, stopping
from services.master.core.commands import Command
from services.master.core.context import Context
from services.master.core.events import Event, Tick, WorkerSaid
from services.master.core.policy import Limits
from services.master.core.recovery import Saved, restore
from services.master.core.rounds import advance
from services.master.core.state import State
from services.master.core.table import TABLE, Ignore

# With a thousand workers these come a thousand times a second; what they change is judged at the next Tick.
QUIET = ("HEARTBEAT", "PROGRESS", "TASK_ACK", "WorkerHeard")


class Coordinator:
    """Holds the state; `state` may be read by anyone and changed by nobody else."""

    def __init__(self, term: int, limits: Limits | None = None) -> None:
        self.state = State(term=term)
        self.limits = limits or Limits()

    def restore(self, saved: Saved, now_ms: int) -> None:
        """Take a run up again after a restart, before the first event."""
        restore(self.state, saved, now_ms)

    def step(self, event: Event, now_ms: int) -> list[Command]:
        """Take one event at `now_ms` (monotonic), return what is to be done, in order."""
        ctx = Context(self.state, self.limits, now_ms, isinstance(event, Tick))
        stopping.count_time(ctx)
        name = event.message.t if isinstance(event, WorkerSaid) else type(event).__name__
        cell = TABLE[name][self.state.phase]
        if not isinstance(cell, Ignore):
            cell(ctx, event)
        if name not in QUIET or ctx.out:
            stopping.advance(ctx)
            advance(ctx)
            reverting.advance(ctx)
            model_file.advance(ctx)
            queueing.advance(ctx)
        return ctx.out
