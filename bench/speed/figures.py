"""What rounds and local steps say, as numbers: rates, utilisation, the perfectly divided round, the next rate to try.

Pure: no clock, no files.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

RATES_FIRST = (0.05, 0.1, 0.2)
RATE_MIN, RATE_MAX = 0.0125, 1.6


@dataclass(frozen=True)
class Round:
    """One closed round: when it closed since the first one opened, how long after the one before, what was done."""

    number: int
    at_s: float
    seconds: float
    samples: int
    loss: float | None = None  # on the validation examples, when its version is evaluated


@dataclass(frozen=True)
class Steps:
    """The local steps of one worker in one round, by CLOCK_MONOTONIC."""

    round: int
    samples: int
    began_s: float
    ended_s: float

    @property
    def seconds(self) -> float:
        """How long they took."""
        return self.ended_s - self.began_s


Work = Mapping[int, Sequence[Steps]]
"""By worker."""


def samples_per_s(rounds: Sequence[Round]) -> float:
    """The median over the rounds."""
    return statistics.median(one.samples / one.seconds for one in rounds)


def utilisation(work: Work, rounds: Sequence[Round]) -> dict[int, float]:
    """By worker: the share of the time of these rounds in which it computed."""
    numbers, total_s = {one.number for one in rounds}, sum(one.seconds for one in rounds)
    return {
        worker: sum(one.seconds for one in steps if one.round in numbers) / total_s for worker, steps in work.items()
    }


def divided_s(work: Work, number: int) -> float | None:
    """How long a round would take if its samples were divided perfectly by the speeds that the workers had in it.

    All compute all the time and nothing is sent: the sum of the samples by the sum of the samples/s. None when one of
    the workers took no part.
    """
    found = [one for steps in work.values() for one in steps if one.round == number]
    if len({worker for worker, steps in work.items() for one in steps if one.round == number}) < len(work):
        return None
    return sum(one.samples for one in found) / sum(one.samples / one.seconds for one in found)


def over_divided(work: Work, rounds: Sequence[Round]) -> list[float | None]:
    """For each round: its time by that of the perfectly divided one."""
    ideals = [divided_s(work, one.number) for one in rounds]
    return [None if ideal is None else one.seconds / ideal for one, ideal in zip(rounds, ideals, strict=True)]


def recovered_after(ratios: Sequence[float | None], limit: float) -> int | None:
    """Which round is back within `limit`, counted from the first that feels the change: that one is number 1.

    A round that was mostly done when the PC became slower feels nothing. Back: two rounds in a row are at most `limit`,
    as is the median from there on; a single round over it, later, is a PC's noise. None: not in these rounds.
    """
    whole = [math.inf if one is None else one for one in ratios]
    felt = next((at for at, one in enumerate(whole) if one > limit), 0)
    for at in range(felt, len(whole) - 1):
        if max(whole[at : at + 2]) <= limit and statistics.median(whole[at:]) <= limit:
            return at - felt + 1
    return None


def next_rate(tried: Mapping[float, float | None]) -> float | None:
    """The learning rate to try next, by the seconds that those tried took to the loss (None: it was not reached).

    The first three, then on beyond an end that is the best: until the best lies between two others or a limit is
    reached. None: that was all.
    """
    for rate in RATES_FIRST:
        if rate not in tried:
            return rate
    reached = {rate: seconds for rate, seconds in tried.items() if seconds is not None}
    low, high = min(tried), max(tried)
    best = min(reached, key=lambda rate: reached[rate]) if reached else high
    if best == low and low / 2 >= RATE_MIN:
        return low / 2
    if best == high and high * 2 <= RATE_MAX:
        return high * 2
    return None
