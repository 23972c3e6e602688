"""What came of the faults: lost rounds, hangs, the throughput kept, as numbers and sentences. Pure but for printing.

Not for doing faults (storm.py) nor for reading the disk (ledger.py).
"""

import itertools
from dataclasses import asdict, dataclass, field
from typing import Any

from services.tests.chaos import faults, ledger, report
from services.tests.chaos.watch import first_after, longest_gap

HANG_S = 40.0  # LOST after 15 s, and one round deadline
EVERY_S = 5.0
CALM_S = 60.0


@dataclass(frozen=True)
class Plan:
    """What is asked for."""

    seed: int = 7
    faults: int = 60
    workers: int = 8
    every_s: float = EVERY_S
    calm_s: float = CALM_S
    k_steps: int = 12_000  # a round of about 8 s with eight workers on two cores
    units: int = 0  # of a round, with balance=units; 0: equal shards


@dataclass
class Tale:
    """What happened: moments are monotonic, in s."""

    mends: list[tuple[float, faults.Fault]] = field(default_factory=list)
    hurts: list[tuple[float, faults.Fault]] = field(default_factory=list)
    calm: tuple[float, float] = (0.0, 0.0)
    rough: tuple[float, float] = (0.0, 0.0)
    calm_busy: float = 0.0  # share of all cores of this PC that was used, by whomever
    rough_busy: float = 0.0


def judge(
    plan: Plan, tale: Tale, closings: list[tuple[float, int]], book: ledger.Ledger, ends: list[str]
) -> dict[str, Any]:
    """The results, ready for JSON; `held` says whether everything did."""
    calm, rough = (_rate(closings, book, span) for span in (tale.calm, tale.rough))
    waits = [first_after(closings, moment) for moment, _ in tale.mends]
    hangs = [str(fault) for wait, (_, fault) in zip(waits, tale.mends, strict=True) if wait is None or wait > HANG_S]
    known = [wait for wait in waits if wait is not None]
    results: dict[str, Any] = {
        "plan": asdict(plan),
        "faults": len(tale.hurts),
        "rounds": book.newest,
        "lost_rounds": book.faults,
        "hangs": hangs,
        "ends": ends,
        "notes": book.notes,
        "calm": {**calm, "cores_busy": tale.calm_busy},
        "rough": {**rough, "cores_busy": tale.rough_busy},
        "kept": round(rough["samples_per_s"] / max(1e-9, calm["samples_per_s"]), 3),
        "mend_to_close_s": {"median": report.median(known), "max": round(max(known, default=0.0), 1)},
        "longest_gap_s": round(longest_gap(closings, *tale.rough), 1),
        "by_kind": _by_kind(tale, closings),
    }
    results["held"] = not (book.faults or hangs or ends)
    for line in [*book.faults, *(f"hang after: {one}" for one in hangs), *ends, *book.notes]:
        say(line)
    say(
        f"faults={results['faults']} rounds={book.newest} lost={len(book.faults)} hangs={len(hangs)} "
        f"unclean={len(ends)} kept={100 * results['kept']:.0f}% ({rough['samples_per_s']:.0f} of "
        f"{calm['samples_per_s']:.0f} samples/s, cores busy {tale.rough_busy:.0%} of {tale.calm_busy:.0%}) "
        f"round={calm['round_s']:.2f} s, longest gap "
        f"{results['longest_gap_s']:.1f} s, mend to close at most {results['mend_to_close_s']['max']:.1f} s: "
        f"{'held' if results['held'] else 'FAILED'}"
    )
    return results


def _rate(closings: list[tuple[float, int]], book: ledger.Ledger, span: tuple[float, float]) -> dict[str, float]:
    """Samples/s between the first and the last closing in the span, and the median time of a round."""
    inside = [one for one in closings if span[0] <= one[0] <= span[1]]
    if len(inside) < 2:
        return {"samples_per_s": 0.0, "round_s": 0.0, "rounds": len(inside)}
    (began, first), (ended, last) = inside[0], inside[-1]
    gaps = [after[0] - before[0] for before, after in itertools.pairwise(inside)]
    rate = book.samples(first + 1, last) / (ended - began)
    shards = [row["workers"] for row in book.rows if first < row["round"] <= last]
    return {
        "samples_per_s": round(rate, 1),
        "round_s": report.median(gaps),
        "rounds": last - first,
        "shards_per_round": round(sum(shards) / len(shards), 2),
    }


def _by_kind(tale: Tale, closings: list[tuple[float, int]]) -> dict[str, Any]:
    """From each hurt to the next closing: median and worst, by kind."""
    found: dict[str, list[float]] = {}
    for moment, fault in tale.hurts:
        wait = first_after(closings, moment)
        if wait is not None:
            found.setdefault(fault.kind.value, []).append(wait)
    return {
        kind: {"count": len(waits), "median_s": report.median(waits), "max_s": round(max(waits), 2)}
        for kind, waits in sorted(found.items())
    }


def say(text: str) -> None:
    """One line for people, at once."""
    print(f"[CHAOS] {text}", flush=True)
