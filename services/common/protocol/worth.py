"""Will it help? What the present PCs are worth together, and who had better stay out. Pure, from the round's model.

Greedy: a few orders, and in each the best cut. No search over sets, so that 1,000 PCs are no matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from services.common.protocol.round_time import Conditions, Pc, RoundTime, own_link_s, own_round_s, round_times
from services.common.protocol.spec import RunSpec

ALONE_S = 60.0
"""A run that one PC ends in less needs no second one."""
MARGIN = 0.05
"""A gain below this is not worth a sentence: the model is not that exact."""
NAMES_MAX = 3

VerdictCode = Literal["NO_PC", "ONE_PC_IS_ENOUGH", "ONE_PC", "LEAVE_OUT", "LINK_BOUND", "HELPS"]
LeftOutCode = Literal["SLOW_LINK", "SLOW_PC", "ADDS_NOTHING"]


@dataclass(frozen=True)
class LeftOut:
    """A PC without which the others are faster, and why."""

    name: str
    code: LeftOutCode
    sentence: str


@dataclass(frozen=True)
class Worth:
    """What more PCs bring, against the fastest PC that trains the same samples by itself and sends nothing."""

    alone_s: float | None
    """What that PC would need for the whole run; None without a PC."""
    speedups: tuple[float, ...]
    """With 1, 2, ... of the present PCs, the most useful first."""
    best_workers: int
    """So many of them are the fastest; more bring nothing."""
    leave_out: tuple[LeftOut, ...]
    code: VerdictCode
    sentence: str


def will_it_help(spec: RunSpec, conditions: Conditions, samples: int) -> Worth:
    """The verdict for a run of `samples` samples in all."""
    if not conditions.pcs:
        return Worth(None, (), 0, (), "NO_PC", "No PC that can train is here: add a machine.")
    pcs = _most_useful_first(spec, conditions)
    times = round_times(spec, conditions, pcs)
    fastest = max(pcs, key=lambda pc: pc.samples_per_s)
    alone_s = samples / fastest.samples_per_s
    speedups = tuple(one.samples_per_s / fastest.samples_per_s for one in times)
    best = _best(times)
    out: tuple[LeftOut, ...] = ()
    if speedups[-1] < (1 - MARGIN) * speedups[best - 1]:
        out = tuple(_left_out(spec, conditions.n_parameters, pc, times[best - 1]) for pc in pcs[best:])
    code, sentence = _verdict(fastest.name, alone_s, speedups, best, out, times[-1])
    return Worth(alone_s, speedups, best, out, code, sentence)


def _most_useful_first(spec: RunSpec, conditions: Conditions) -> list[Pc]:
    """The best set that a cut of any of the orders gives, then the others; each by its own round time.

    With shares by speed the best set is a cut by link, with equal ones nearly always a cut by own round time.
    """
    n = conditions.n_parameters

    def own(pc: Pc) -> tuple[float, str]:
        return own_round_s(spec, n, pc), pc.name

    def link(pc: Pc) -> tuple[float, str]:
        return own_link_s(spec, n, pc), pc.name

    cuts = []
    for key in (own, link):
        order = sorted(conditions.pcs, key=key)
        times = round_times(spec, conditions, order)
        best = _best(times)
        cuts.append((times[best - 1].samples_per_s, order[:best], order[best:]))
    _, kept, others = max(cuts, key=lambda cut: cut[0])
    return sorted(kept, key=own) + sorted(others, key=own)


def _best(times: Sequence[RoundTime]) -> int:
    """How many PCs are the fastest: the fewest, where more are no faster."""
    return 1 + max(range(len(times)), key=lambda at: times[at].samples_per_s)


def _verdict(
    fastest: str, alone_s: float, speedups: Sequence[float], best: int, out: Sequence[LeftOut], whole: RoundTime
) -> tuple[VerdictCode, str]:
    here = len(speedups)
    if alone_s < ALONE_S:
        return "ONE_PC_IS_ENOUGH", f"{fastest} alone finishes in {max(1.0, alone_s):.0f} s: you need no second PC."
    if here == 1:
        return "ONE_PC", "One PC is here; add another, and this says what it brings."
    if out:
        names = ", ".join(one.name for one in out[:NAMES_MAX])
        more = f" and {len(out) - NAMES_MAX} more" if len(out) > NAMES_MAX else ""
        gain = speedups[best - 1] / speedups[-1]
        return "LEAVE_OUT", f"Leave out {names}{more}: the run is then {gain:.1f} times as fast as with all."
    gained = f"{here} PCs are {speedups[-1]:.1f} times as fast as {fastest} alone"
    if whole.transfer_s > whole.compute_s:
        return "LINK_BOUND", (
            f"{gained}, for a round sends for {whole.transfer_s:.1f} s and trains for {whole.compute_s:.1f} s: "
            "take more local steps a round, or an encoding with fewer bytes."
        )
    return "HELPS", f"{gained}."


def _left_out(spec: RunSpec, n_parameters: int, pc: Pc, with_kept: RoundTime) -> LeftOut:
    """Why this PC makes the round of those that are kept longer: by the larger of the two waits for it."""
    sends_s = own_link_s(spec, n_parameters, pc)
    trains_s = spec.k_steps * spec.batch / pc.samples_per_s if spec.balance != "proportional" else 0.0
    for_link_s, for_steps_s = sends_s - with_kept.transfer_s, trains_s - with_kept.compute_s
    if pc.bytes_per_s is not None and for_link_s > max(0.0, for_steps_s):
        waits = f"its link carries {pc.bytes_per_s / 1e6:.2g} MB/s, so every round waits {for_link_s:.1f} s for it"
        return LeftOut(pc.name, "SLOW_LINK", f"{pc.name}: {waits}.")
    if for_steps_s > 0:
        waits = f"equal pieces take it {trains_s:.1f} s, so every round waits {for_steps_s:.1f} s for it"
        return LeftOut(pc.name, "SLOW_PC", f"{pc.name}: {waits}.")
    return LeftOut(pc.name, "ADDS_NOTHING", f"{pc.name}: the others are enough, one more only makes the master wait.")
