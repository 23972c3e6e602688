"""How rounds are cut, from what was measured: whether they overlap, how many local steps each has, how deltas travel.

A star moves all deltas through the master's one link, so that on a slow link workers wait more than they work. What
helps, in this order: train on meanwhile, more steps for each exchange, fewer bytes; the rule is `protocol.pacing`.
Decided when a round opens, told with its reason, kept in the assignment table. Never for units: what a unit is must not
hang on the time of day.
"""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from services.common.protocol.messages import Encoding, is_worth_hiding, steps_wanted
from services.master.core import speeds
from services.master.core.state import Lease, Pace, Run, Worker

ROUNDS_MEASURED = 3
CHEAPER: dict[Encoding, Encoding] = {"fp32": "int8", "bf16": "int8", "int8": "int4"}
SLOW_LINK = 0.5  # of the median link: that one holds the others up


def measured(run: Run, accepted: Sequence[Lease]) -> Pace:
    """The run's pace with one more round. Its exchange is that of the worker that waited least for the others."""
    syncs = [lease.sync_ms for lease in accepted if lease.sync_ms is not None]
    steps = [lease.step_ms for lease in accepted if lease.step_ms is not None]
    sync_ms = [*run.pace.sync_ms, min(syncs)] if syncs else run.pace.sync_ms
    step_ms = [*run.pace.step_ms, statistics.median(steps)] if steps else run.pace.step_ms
    return replace(run.pace, sync_ms=sync_ms[-ROUNDS_MEASURED:], step_ms=step_ms[-ROUNDS_MEASURED:])


def choose(run: Run, number: int, workers: Sequence[Worker]) -> list[str]:
    """Decide anew, before round `number` opens with these workers; the reasons as people read them."""
    pace = run.pace
    if run.spec.balance == "units" or len(pace.sync_ms) < ROUNDS_MEASURED or not all(pace.step_ms):
        return []
    sync_ms, step_ms = statistics.median(pace.sync_ms), statistics.median(pace.step_ms)
    reasons = [_overlap(run, number, sync_ms, step_ms)]
    if run.spec.k_auto:
        reasons += [_steps(run, number, sync_ms, step_ms) or _bytes(run, number, sync_ms, step_ms, workers)]
    return [reason for reason in reasons if reason]


def _overlap(run: Run, number: int, sync_ms: float, step_ms: float) -> str:
    steps_ms = run.k_steps * step_ms
    if run.spec.rounds_in_flight != "auto" or run.pace.overlaps or not is_worth_hiding(sync_ms, steps_ms):
        return ""
    run.pace.overlaps = True
    return (
        f"from round {number} on workers train while deltas and updates travel: that takes {sync_ms / 1000:.2f} s, "
        f"{100 * sync_ms / steps_ms:.0f} % of the local steps' {steps_ms / 1000:.2f} s"
    )


def _wanted(run: Run, sync_ms: float, step_ms: float) -> int:
    return steps_wanted(run.spec.k_steps, sync_ms, step_ms, overlaps=run.rounds_in_flight > 1)


def _steps(run: Run, number: int, sync_ms: float, step_ms: float) -> str:
    """Twice as many local steps, or half as many: one change a round, so that a single odd measurement does little."""
    before, wanted = run.k_steps, _wanted(run, sync_ms, step_ms)
    most = max(run.spec.k_steps_max, run.spec.k_steps)
    after = before
    if wanted > before:
        after = min(2 * before, most)
    elif 2 * wanted <= before:
        after = before // 2
    if after == before:
        return ""
    run.pace.k_steps, run.pace.told = after, False
    return (
        f"{after} local steps instead of {before} from round {number} on: a step takes {step_ms:.1f} ms, "
        f"the exchange {sync_ms / 1000:.2f} s"
    )


def _bytes(run: Run, number: int, sync_ms: float, step_ms: float, workers: Sequence[Worker]) -> str:
    """Where more steps are not allowed: fewer bytes, then a word about the link."""
    pace, before = run.pace, run.encoding
    if _wanted(run, sync_ms, step_ms) <= run.k_steps:
        return ""
    if before in CHEAPER:
        pace.encoding = CHEAPER[before]
        pace.sync_ms.clear()  # what follows takes another time
        return (
            f"deltas and updates travel as {pace.encoding} instead of {before} from round {number} on: "
            f"{run.k_steps} local steps, the most that are allowed, do not make up for an exchange of "
            f"{sync_ms / 1000:.2f} s"
        )
    if pace.told:
        return ""
    pace.told = True
    steps_ms = run.k_steps * step_ms
    waits = sync_ms - steps_ms if run.rounds_in_flight > 1 else sync_ms
    share = 100 * waits / (waits + steps_ms)
    return (
        f"workers wait {share:.0f} % of the time for the link: the exchange takes {sync_ms / 1000:.2f} s, "
        f"{run.k_steps} local steps {steps_ms / 1000:.2f} s; {_advice(workers)}, or allow more than k_steps_max="
        f"{run.spec.k_steps_max}"
    )


def _advice(workers: Sequence[Worker]) -> str:
    """Whom to leave out: the one whose link holds the others up, else the slowest, for all share the master's link."""
    links = [(worker.link_bytes_per_s, worker.name) for worker in workers if worker.link_bytes_per_s]
    if len(workers) == 1:
        return "a wire instead of Wi-Fi may help"
    if links and min(links)[0] < SLOW_LINK * statistics.median(speed for speed, _ in links):
        return f"leave out {min(links)[1]}, whose link carries only {min(links)[0] * 8 / 1e6:.1f} Mbit/s"
    slowest = min(zip(speeds.comparable(workers), (worker.name for worker in workers), strict=True))
    return f"all share the master's link: leave out {slowest[1]}, the slowest"
