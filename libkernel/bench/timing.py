"""Times calls that take turns: the best of many rounds for each, so that what disturbs one round disturbs all alike.

Each round has an order of its own: who comes after whom decides what lies in the caches.
"""

import random
import time
from collections.abc import Callable

from services.common.kernels.library import library, set_tier

Call = Callable[[], object]
WARM_CALLS = 5
ROUND_S = 0.002  # a call is repeated for about this long within its turn
PLAIN_C = "plain C"


def measure(contenders: dict[str, Call], rounds: int) -> dict[str, float]:
    """The fewest seconds of one call, for each; that named PLAIN_C runs on the scalar tier."""
    # The first calls open what they need and touch memory for the first time: they do not tell how many fill a turn.
    once = {name: min(_turn(name, call, 1) for _ in range(WARM_CALLS)) for name, call in contenders.items()}
    repeats = {name: max(1, int(ROUND_S / max(seconds, 1e-7))) for name, seconds in once.items()}
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
