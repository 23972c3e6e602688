"""Which faults, when, on whom, for how long: drawn from a seed, nothing else. Not for how they are done (storm.py)."""

import random
from dataclasses import dataclass
from enum import StrEnum

HOLD_S = (2.0, 10.0)  # a frozen or cut worker stays so for a time in this range
DEAD_S = (0.5, 3.0)  # a killed process is started again after a time in this range
BATCH = 3


class Kind(StrEnum):
    """What happens to the targets."""

    KILL_WORKER = "kill -9 of the agent"
    KILL_TRAINER = "kill -9 of the trainer"
    KILL_MASTER = "kill -9 of the master"
    KILL_BATCH = "kill -9 of three workers at once"
    FREEZE = "SIGSTOP of agent and trainer"
    FREEZE_TRAINER = "SIGSTOP of the trainer"
    RESTART = "SIGTERM, then a restart"
    CUT = "no packet comes or goes"
    CUT_TO_MASTER = "no packet reaches the master"
    CUT_FROM_MASTER = "no packet comes from the master"


CUTS = {Kind.CUT: "both", Kind.CUT_TO_MASTER: "to-master", Kind.CUT_FROM_MASTER: "from-master"}
DEATHS = (Kind.KILL_WORKER, Kind.KILL_MASTER, Kind.KILL_BATCH, Kind.RESTART)


@dataclass(frozen=True)
class Fault:
    """`targets` are workers' numbers, empty for the master; after `hold_s` it is mended."""

    number: int
    kind: Kind
    targets: tuple[int, ...]
    hold_s: float

    @property
    def whom(self) -> set[str]:
        """The services that are hurt."""
        return {f"worker-{number}" for number in self.targets} or {"master"}

    def __str__(self) -> str:
        return f"{self.kind.value}: {', '.join(sorted(self.whom))}, for {self.hold_s:.1f} s"


def draw(seed: int, count: int, workers: int, *, with_cuts: bool) -> list[Fault]:
    """`count` faults. Each kind comes equally often in the long run; every kind comes if there are enough."""
    chance = random.Random(seed)
    kinds = [kind for kind in Kind if with_cuts or kind not in CUTS]
    faults, bag = [], list[Kind]()
    for number in range(1, count + 1):
        if not bag:
            bag = chance.sample(kinds, len(kinds))
        kind = bag.pop()
        hold_s = round(chance.uniform(*(DEAD_S if kind in DEATHS or kind is Kind.KILL_TRAINER else HOLD_S)), 1)
        size = {Kind.KILL_MASTER: 0, Kind.KILL_BATCH: min(BATCH, workers - 1)}.get(kind, 1)
        faults.append(Fault(number, kind, tuple(sorted(chance.sample(range(1, workers + 1), size))), hold_s))
    return faults
