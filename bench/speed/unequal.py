"""Workers of unequal speed: how much of the time they compute, and how soon a round fits one that becomes slower."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from bench.speed import figures, trial
from bench.speed.arms import Arm, Setting, name_of
from bench.targets import OF_DIVIDED, ROUNDS_TO_RECOVER, UTILISATION
from bench.wire.links import Links

Row = dict[str, Any]
SHARES = (1.0, 0.5, 0.25, 0.25)
FASTEST_CORES = 2.0  # times those of a worker of the other parts: four fit on two cores, beside the master
SLOWED = 1  # the worker whose quota is halved: the fastest, on which most hangs
AFTER, AFTER_QUICK = 8, 3  # rounds that are looked at then


def measure(net: Links, arms: Sequence[Arm], setting: Setting) -> Iterator[Row]:
    """A row for each arm. The speeds are not told but measured by the workers, as in a real cluster."""
    cores = [FASTEST_CORES * setting.cores * share for share in SHARES]
    for arm in arms:
        with trial.trial(net, cores, score=0.0) as held:
            yield _row(held, arm, setting, {"link": vars(net.rate), "arm": arm, "cores": cores})


def _row(held: trial.Trial, arm: Arm, setting: Setting, row: Row) -> Row:
    rounds: list[figures.Round] = []
    used: dict[int, float] = {}
    more = AFTER_QUICK if setting.quick else AFTER
    slow_from = trial.WARM + setting.rounds
    trial.say(f"  {name_of(arm)}, cores {row['cores']}: {len(SHARES)} workers joined")
    for closed in held.rounds(arm):
        if closed.loss is not None:
            continue
        rounds.append(closed)
        if len(rounds) == trial.WARM:
            used = {number: held.quotas.used_s(number) for number in held.quotas.cores}
        if len(rounds) == slow_from:
            used = {number: held.quotas.used_s(number) - before for number, before in used.items()}
            trial.say(f"  {len(rounds)} rounds; now worker {SLOWED} has half its quota, {more} more rounds")
            held.quotas.change(SLOWED, held.quotas.cores[SLOWED] / 2)
        if len(rounds) == slow_from + more:
            break
    work, steady, slowed = held.work(), rounds[trial.WARM : slow_from], rounds[slow_from:]
    busy = figures.utilisation(work, steady)
    total_s = sum(one.seconds for one in steady)
    before, after = figures.over_divided(work, steady), figures.over_divided(work, slowed)
    whole = [ratio for ratio in before if ratio is not None]
    return {
        **row,
        "utilisation": {number: round(share, 3) for number, share in busy.items()},
        "utilisation_mean": round(statistics.fmean(busy.values()), 3),
        "of_quota": {number: round(used[number] / total_s / row["cores"][number - 1], 3) for number in used},
        "of_divided": round(statistics.median(whole), 3) if whole else None,
        "of_divided_by_round": before,
        "after_slowing_by_round": after,
        "recovered_after": figures.recovered_after(after, OF_DIVIDED),
        "rounds_s": [one.seconds for one in rounds],
    }


def line(row: Row) -> str:
    """For people."""
    after = ", ".join("-" if one is None else f"{one:.2f}" for one in row["after_slowing_by_round"])
    return (
        f"  {name_of(row['arm'])}, cores {row['cores']}: utilisation {row['utilisation']}, "
        f"of quota {row['of_quota']}; slowed: {after} of the divided round"
    )


def targets(rows: list[Row]) -> Iterator[tuple[str, bool]]:
    """(sentence, met) of each target."""
    for row in rows:
        what, mean, ratio, after = (
            name_of(row["arm"]),
            row["utilisation_mean"],
            row["of_divided"],
            row["recovered_after"],
        )
        yield f"{what}: mean utilisation {mean:.1%}, at least {UTILISATION:.0%}", mean >= UTILISATION
        text = "never measured whole" if ratio is None else f"{ratio:.2f}x the perfectly divided one"
        yield f"{what}: a round is {text}, at most {OF_DIVIDED}", ratio is not None and ratio <= OF_DIVIDED
        when = "never" if after is None else f"with round {after}"
        text = f"{what}: a worker halved, back within {OF_DIVIDED}x {when}, at the latest with {ROUNDS_TO_RECOVER}"
        yield text, after is not None and after <= ROUNDS_TO_RECOVER
