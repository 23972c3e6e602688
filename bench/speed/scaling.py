"""Samples/s of one, two and four workers with the same quota each, and of one PC without a cluster."""

from collections.abc import Iterator, Sequence
from typing import Any

from bench.speed import lone, trial
from bench.speed.arms import Arm, Setting, name_of, workers_of
from bench.speed.figures import samples_per_s
from bench.targets import SAMPLES_OF_ONE
from bench.wire.links import Links, Rate

Row = dict[str, Any]


def measure(net: Links, arms: Sequence[Arm], setting: Setting) -> Iterator[Row]:
    """A row for each arm and number of workers; the ratios are to what was measured just before."""
    for arm in arms:
        alone = lone.measure(arm, setting.cores, setting.rounds)
        row = {"link": vars(net.rate), "arm": arm}
        yield {**row, "workers": 0, "samples_per_s": round(alone, 1)}
        first = None
        for workers in setting.workers:
            with trial.trial(net, [setting.cores] * workers) as one:
                rounds = one.counted(arm, setting.rounds)
            rate = samples_per_s(rounds)
            first = rate if workers == 1 else first
            yield {
                **row,
                "workers": workers,
                "samples_per_s": round(rate, 1),
                "of_one": None if first is None else round(rate / first, 3),
                "of_lone": round(rate / alone, 3),
                "rounds_s": [one.seconds for one in rounds],
            }


def line(row: Row) -> str:
    """For people."""
    if not row["workers"]:
        return f"  {name_of(row['arm'])}, a lone process: {row['samples_per_s']:,.0f} samples/s"
    what = f"  {name_of(row['arm'])}, {workers_of(row['workers'])}"
    of_one = "" if row["of_one"] is None else f"{row['of_one']:.2f}x one worker, "
    least = _least(row)
    target = "" if least is None else f" (target {least:g}x)"
    return f"{what}: {row['samples_per_s']:,.0f} samples/s, {of_one}{row['of_lone']:.2f}x a lone process{target}"


def targets(rows: list[Row]) -> Iterator[tuple[str, bool]]:
    """(sentence, met) of each target: only at the usual link, against one worker and, stricter, a lone process."""
    for row in rows:
        least = _least(row)
        if least is None:
            continue
        for field, whom in (("of_one", "one worker"), ("of_lone", "a lone process")):
            if row[field] is not None:
                text = (
                    f"{name_of(row['arm'])}, {workers_of(row['workers'])}: {row[field]:.2f}x {whom}, at least {least:g}"
                )
                yield text, row[field] >= least


def _least(row: Row) -> float | None:
    return SAMPLES_OF_ONE.get(row["workers"]) if Rate(**row["link"]) == Rate() else None
