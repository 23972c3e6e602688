"""How the rounds are cut, from what was measured: whether they overlap.

A star moves all deltas through the master's one link, so that on a slow link workers wait more than they work unless
they train on meanwhile. Decided when a round opens, with the reason; kept in the assignment table.
"""

import statistics
from collections.abc import Sequence

from services.master.core.state import Lease, Pace, Run

ROUNDS_MEASURED = 3
SYNC_SHARE_MAX = 0.05  # of the local steps' time: an exchange that takes more is worth hiding


def measured(run: Run, accepted: Sequence[Lease]) -> Pace:
    """The run's pace with one more round. Its exchange is that of the worker that waited least for the others."""
    syncs = [lease.sync_ms for lease in accepted if lease.sync_ms is not None]
    steps = [lease.step_ms for lease in accepted if lease.step_ms is not None]
    sync_ms = [*run.pace.sync_ms, min(syncs)] if syncs else run.pace.sync_ms
    step_ms = [*run.pace.step_ms, statistics.median(steps)] if steps else run.pace.step_ms
    return Pace(run.pace.overlaps, sync_ms[-ROUNDS_MEASURED:], step_ms[-ROUNDS_MEASURED:])


def choose(run: Run, number: int) -> str:
    """Decide anew, before round `number` opens; the reason as people read it, empty when nothing changes."""
    pace = run.pace
    may_overlap = run.spec.rounds_in_flight == "auto" and run.spec.balance != "units"
    if not may_overlap or pace.overlaps or len(pace.sync_ms) < ROUNDS_MEASURED:
        return ""
    sync_ms, steps_ms = statistics.median(pace.sync_ms), run.spec.k_steps * statistics.median(pace.step_ms)
    if sync_ms <= SYNC_SHARE_MAX * steps_ms:
        return ""
    pace.overlaps = True
    share = f"{100 * sync_ms / steps_ms:.0f} %" if steps_ms else "all"
    return (
        f"from round {number} on workers train while deltas and updates travel: that takes "
        f"{sync_ms / 1000:.2f} s, {share} of the local steps' {steps_ms / 1000:.2f} s"
    )
