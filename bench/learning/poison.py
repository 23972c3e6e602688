"""Two of eight workers send poison: what each rule makes of it, over five seeds, and whom it names."""

import statistics
from dataclasses import replace
from typing import Any

from bench.learning.data import digits
from bench.learning.rounds import Arm, train

SEEDS = (1, 2, 3, 4, 5)
ATTACKS = ("nan", "x-10", "flip")
RULES = ("clip", "median", "trimmed", "mean")
POINTS = 2.5
BASE = Arm(workers=8, k_steps=10, rounds=60, encoding="int8")


def poison() -> list[dict[str, Any]]:
    """A row for each rule and attack; `held` only where it is promised: the default rule and the median."""
    data = digits()
    clean = {
        rule: [train(data, replace(BASE, aggregator=rule, seed=seed)).accuracy for seed in SEEDS] for rule in RULES
    }
    best = statistics.mean(clean["mean"])
    rows = []
    for rule in RULES:
        for attack in ATTACKS:
            runs = [train(data, replace(BASE, aggregator=rule, attack=attack, seed=seed)) for seed in SEEDS]
            worse = 100 * (best - statistics.mean(one.accuracy for one in runs))
            named = sorted(runs[0].clipped.items(), key=lambda one: -one[1])[:2] if rule == "clip" else []
            rows.append(
                {
                    "rule": rule,
                    "attack": attack,
                    "clean": round(statistics.mean(clean[rule]), 4),
                    "accuracies": [round(one.accuracy, 4) for one in runs],
                    "points_below_clean_mean": round(worse, 2),
                    "most_clipped": [worker for worker, _ in named],
                    "refused": sorted(runs[0].refused),
                    "target": POINTS if rule in ("clip", "median") else None,
                    "held": worse <= POINTS if rule in ("clip", "median") else None,
                }
            )
    return rows
