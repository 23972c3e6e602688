"""Times calls that take turns: the best of many rounds for each, so that what disturbs one round disturbs all alike.

Each round has an order of its own: who comes after whom decides what lies in the caches.
"""

import random
import time
from collections.abc import Callable

from services.common.kernels.library import library, set_tier

Call = Callable[[], object]
ROUND_S = 0.002  # a call is repeated for about this long within its turn
PLAIN_C = "plain C"


def measure(contenders: dict[str, Call], rounds: int) -> dict[str, float]:
    """The fewest seconds of one call, for each; that named PLAIN_C runs on the scalar tier."""
    repeats = {name: max(1, int(ROUND_S / max(_turn(name, call, 1), 1e-7))) for name, call in contenders.items()}
    best = dict.fromkeys(contenders, float("inf"))
    order = list(contenders)
    shuffle = random.Random(1).shuffle  # noqa: S311 - an order, not a secret
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            best[name] = min(best[name], _turn(name, contenders[name], repeats[name]))
    return best


def _turn(name: str, call: Call, repeats: int) -> float:
    opened = library()
    before = opened.tier()
    if name == PLAIN_C:
        set_tier(opened, "scalar")
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    seconds = (time.perf_counter() - start) / repeats
    set_tier(opened, before)
    return seconds
