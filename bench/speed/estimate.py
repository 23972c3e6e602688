"""Whether the estimate is right: minutes that were foretold from measured speeds, beside those that it then took.

In each setting a short run measures speeds and the exchange, as any first run does; then another run is estimated,
started and timed to its end.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from bench.speed import mnist, trial
from bench.speed.arms import Arm, Setting, name_of, spec_of, workers_of
from bench.targets import ESTIMATE_WITHIN
from bench.wire.links import Links, Rate
from services.common.learning import build_model, describe, load
from services.common.protocol.estimate import Conditions, Pc, estimate
from services.common.protocol.round_time import split_sync
from services.common.protocol.spec import RunSpec

Row = dict[str, Any]
FIRST: Arm = {"encoding": "int8", "k_steps": 100, "rounds": 8}
USUAL: tuple[tuple[int, Arm], ...] = (
    (1, {"encoding": "int8", "k_steps": 200, "rounds": 16}),
    (2, {"encoding": "int8", "k_steps": 200, "rounds": 16}),
    (2, {"encoding": "int8", "k_steps": 50, "rounds": 20, "rounds_in_flight": 1}),
    (2, {"encoding": "int4", "k_steps": 150, "rounds": 20}),
    (4, {"encoding": "int8", "k_steps": 150, "rounds": 16}),
)
SLOW: tuple[tuple[int, Arm], ...] = ((2, {"encoding": "int8", "k_steps": 200, "rounds": 10}),)


def measure(net: Links, arms: Sequence[Arm], setting: Setting) -> Iterator[Row]:
    """A row for each setting; `arms` are not asked, for these are settings of their own."""
    del arms
    cases = USUAL if net.rate == Rate() else SLOW
    for workers, arm in cases[:1] if setting.quick else cases:
        with trial.trial(net, [setting.cores] * workers) as held:
            first = spec_of(FIRST, workers)
            run, _ = held.whole(first)
            spec = spec_of(arm, workers)
            foretold = estimate(spec, conditions_of(spec, first, run, held.workers_seen()))
            assert foretold.minutes is not None
            _, took_s = held.whole(spec)
        minutes = took_s / 60
        yield {
            "link": vars(net.rate),
            "arm": arm,
            "workers": workers,
            "estimated_minutes": round(foretold.minutes, 3),
            "minutes": round(minutes, 3),
            "off": round(foretold.minutes / minutes - 1, 3),
        }


def conditions_of(spec: RunSpec, first: RunSpec, run: Row, workers: Sequence[Row]) -> Conditions:
    """What the console would take from the master's state after the first run."""
    data = load(describe(mnist.NAME))
    n = build_model(spec.model, data.x_train.shape[1], data.classes).n_parameters
    bytes_per_s, fixed_s = split_sync(run["sync_ms"] / 1000, first, n, len(workers))
    pcs = tuple(Pc(one["name"], one["samples_per_s"]) for one in workers)
    return Conditions(len(data.y_train), n, pcs, bytes_per_s, fixed_s)


def line(row: Row) -> str:
    """For people."""
    return (
        f"  {name_of(row['arm'])}, {workers_of(row['workers'])}: estimated {60 * row['estimated_minutes']:.1f} s, "
        f"took {60 * row['minutes']:.1f} s ({row['off']:+.0%})"
    )


def targets(rows: list[Row]) -> Iterator[tuple[str, bool]]:
    """(sentence, met) of each target."""
    for row in rows:
        what = f"estimate of {name_of(row['arm'])}, {workers_of(row['workers'])}"
        yield f"{what}: {row['off']:+.0%}, at most {ESTIMATE_WITHIN:.0%}", abs(row["off"]) <= ESTIMATE_WITHIN
