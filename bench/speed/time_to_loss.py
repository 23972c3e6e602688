"""Seconds until the validation loss first reaches a target: one worker and two, each at its own best learning rate."""

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from bench.speed import trial
from bench.speed.arms import Arm, Setting, name_of, spec_of, with_rate, workers_of
from bench.speed.estimate import conditions_of
from bench.speed.figures import next_rate
from bench.wire.links import Links
from services.common.protocol.estimate import estimate

Row = dict[str, Any]
WORKERS = (1, 2)
SEEDS = (7, 8, 9)  # rates are tried with the first; the best one runs with all
HONEST = ("ONE_PC_IS_ENOUGH", "LEAVE_OUT")  # verdicts that promise nothing of a second PC
BEYOND = 1.25  # times the best so far: then a rate is given up
RATE_QUICK = 0.1


def measure(net: Links, arms: Sequence[Arm], setting: Setting) -> Iterator[Row]:
    """A row for each number of workers."""
    for workers in WORKERS:
        tried = [one for arm in arms for one in _bracket(net, arm, workers, setting)]
        reached = [one for one in tried if one["seconds"] is not None]
        without_curves = [{field: value for field, value in one.items() if field != "curve"} for one in tried]
        row: Row = {"link": vars(net.rate), "workers": workers, "target_loss": setting.target_loss}
        row["tried"] = without_curves
        row["curves"] = best_of_each_arm(tried)
        if not reached:
            yield {**row, "best": None, "seconds": None}
            continue
        best = min(reached, key=lambda one: one["seconds"])
        others = () if setting.quick else SEEDS[1:]
        again = [_run(net, best, workers, setting, seed, setting.limit_s) for seed in others]
        by_seed = [one["seconds"] for one in (best, *again)]
        median_s = statistics.median(math.inf if one is None else one for one in by_seed)
        yield {
            **row,
            "best": {"arm": best["arm"], "lr": best["lr"]},
            "verdict": best["verdict"],
            "seconds": round(median_s, 2) if math.isfinite(median_s) else None,
            "seconds_by_seed": by_seed,
        }


def _bracket(net: Links, arm: Arm, workers: int, setting: Setting) -> Iterator[Row]:
    tried: dict[float, float | None] = {}
    while (rate := RATE_QUICK if setting.quick and not tried else next_rate(tried)) is not None:
        best = min((one for one in tried.values() if one is not None), default=setting.limit_s / BEYOND)
        found = _run(net, {"arm": arm, "lr": rate}, workers, setting, SEEDS[0], BEYOND * best)
        tried[rate] = found["seconds"]
        yield found
        if setting.quick:
            return


def _run(net: Links, of: Row, workers: int, setting: Setting, seed: int, limit_s: float) -> Row:
    """The time at which the first version that reaches the target was there; None when it was not in `limit_s`."""
    curve: list[tuple[float, float, int]] = []  # seconds, loss, rounds
    seconds = None
    with trial.trial(net, [setting.cores] * workers) as one:
        for round_ in one.rounds({**with_rate(of["arm"], of["lr"]), "seed": seed}):
            if round_.loss is not None:
                curve.append((round_.at_s, round(round_.loss, 4), round_.number))
                if round_.loss <= setting.target_loss:
                    seconds = round_.at_s
                    break
            elif round_.at_s > limit_s:
                break
        verdict = None if seconds is None else _verdict(one, of["arm"], workers, curve[-1][2])
    row = {"arm": of["arm"], "lr": of["lr"], "seed": seed, "seconds": seconds, "curve": curve, "verdict": verdict}
    reached = f"not reached in {limit_s:.0f} s" if seconds is None else f"reached after {seconds:.1f} s"
    last = f"last loss {curve[-1][1]:.3f}" if curve else "never evaluated"
    trial.say(f"  {workers_of(workers)}, {name_of(of['arm'])} lr={of['lr']:g} seed={seed}: {reached}, {last}")
    return row


def _verdict(held: trial.Trial, arm: Arm, workers: int, rounds: int) -> Row | None:
    """What "will it help?" says of a run of so many rounds here, from what the master has measured."""
    run = held.run_seen()
    if run is None or run["sync_ms"] is None:
        return None
    spec = spec_of({**arm, "rounds": rounds}, workers)
    found = estimate(spec, conditions_of(spec, spec, run, held.workers_seen())).verdict
    return {"code": found.code, "sentence": found.sentence}


def best_of_each_arm(tried: Sequence[Row]) -> list[Row]:
    """The soonest run of each arm; of an arm that never reached the loss, its first."""
    arms: list[Arm] = []
    for one in tried:
        if one["arm"] not in arms:
            arms.append(one["arm"])
    of_arms = ([one for one in tried if one["arm"] == arm] for arm in arms)
    return [min(runs, key=lambda one: math.inf if one["seconds"] is None else one["seconds"]) for runs in of_arms]


def line(row: Row) -> str:
    """For people."""
    rates = ", ".join(sorted({f"{one['lr']:g}" for one in row["tried"]}, key=float))
    what = f"  {workers_of(row['workers'])} to loss {row['target_loss']:g}"
    if row["seconds"] is None:
        return f"{what}: not reached (tried lr {rates})"
    best = row["best"]
    how = f"median of seeds {row['seconds_by_seed']}, {name_of(best['arm'])} lr={best['lr']:g}; tried lr {rates}"
    return f"{what}: {row['seconds']:.1f} s ({how})"


def targets(rows: list[Row]) -> Iterator[tuple[str, bool]]:
    """(sentence, met): two workers are sooner there than one, or "will it help?" did not say that they would be."""
    for first, second in zip(rows[::2], rows[1::2], strict=False):
        what = f"{first['link']['mbit']:g} Mbit/s, loss {first['target_loss']:g}"
        if first["seconds"] is None or second["seconds"] is None:
            yield f"{what}: not reached by one worker or by two", False
            continue
        ratio = first["seconds"] / second["seconds"]
        text = f"{what}: one worker {first['seconds']:.1f} s, two {second['seconds']:.1f} s, {ratio:.2f}x as soon"
        verdict = second.get("verdict") or {"code": None, "sentence": "nothing"}
        yield f'{text}, more than 1, or said before: "{verdict["sentence"]}"', ratio > 1 or verdict["code"] in HONEST
