"""What few bytes cost in what is learnt: encodings against fp32, rounds against every step, shards sorted by label."""

import statistics
from dataclasses import replace
from typing import Any

from bench.learning.data import MNIST_FILE, digits, mnist
from bench.learning.rounds import Arm, train
from bench.targets import FEWER_BYTES_THAN_EVERY_STEP, POINTS_BELOW_EVERY_STEP
from services.common.protocol.encodings import ENCODINGS

SEEDS = (1, 2, 3)
TUNING_SEED = 9
SPREAD_SHARE = 0.1
MNIST_MODEL = {"family": "mlp", "hidden": [128]}
SAMPLES = 2000 * 4 * 32  # of all workers: 32 epochs of 8,000
LOCAL_STEPS = 50
RATES = (0.05, 0.1, 0.2, 0.4)
SORTED_TARGET = 0.955
SORTED_OUTER: tuple[dict[str, Any], ...] = (
    {"name": "fedavg"},
    {"name": "nesterov", "lr": 0.7, "mu": 0.6},
    {"name": "nesterov", "lr": 0.7, "mu": 0.9},
    {"name": "fedadam", "lr": 0.03},
)


def encodings() -> list[dict[str, Any]]:
    """|loss - fp32's loss| at equal K, as a share of fp32's spread over the seeds."""
    arms = [("digits", digits(), Arm(k_steps=10, rounds=40))]
    if MNIST_FILE.exists():
        arms.append(("mnist10k", mnist(), Arm(k_steps=50, rounds=20, model=MNIST_MODEL)))
    rows = []
    for name, data, arm in arms:
        whole = [train(data, replace(arm, seed=seed)).loss for seed in SEEDS]
        spread = max(whole) - min(whole)
        for encoding in ENCODINGS:
            found = [train(data, replace(arm, seed=seed, encoding=encoding)).loss for seed in SEEDS]
            off = max(abs(a - b) for a, b in zip(found, whole, strict=True)) / spread
            wanted = encoding in ("int8", "int4")
            rows.append(
                {
                    "data": name,
                    "k_steps": arm.k_steps,
                    "rounds": arm.rounds,
                    "encoding": encoding,
                    "losses": [round(one, 5) for one in found],
                    "off_by_spreads": round(off, 4),
                    "target": SPREAD_SHARE if wanted else None,
                    "held": off <= SPREAD_SHARE if wanted else None,
                }
            )
    return rows


def against_every_step() -> list[dict[str, Any]]:
    """MNIST-10k: per-step synchronisation (fp32) against rounds (int4), both at their best rate, at equal samples."""
    if not MNIST_FILE.exists():
        return [{"left out": f"there is no {MNIST_FILE}", "held": None}]
    data = mnist()
    every = Arm(k_steps=1, rounds=SAMPLES // 4 // 32, model=MNIST_MODEL, aggregator="mean")
    few = Arm(k_steps=LOCAL_STEPS, rounds=every.rounds // LOCAL_STEPS, encoding="int4", model=MNIST_MODEL)
    rows = []
    for name, arm in (("every step", every), ("rounds", few)):
        tried = {rate: train(data, _at(arm, rate, TUNING_SEED)).accuracy for rate in RATES}
        best = max(tried, key=lambda rate: tried[rate])
        runs = [train(data, _at(arm, best, seed)) for seed in SEEDS]
        row: dict[str, Any] = {"arm": name, "k_steps": arm.k_steps, "encoding": arm.encoding, "rates_tried": tried}
        accuracies = [round(one.accuracy, 4) for one in runs]
        row |= {"rate": best, "accuracies": accuracies, "accuracy": round(statistics.mean(accuracies), 4)}
        rows.append(row | {"bytes": runs[0].up_bytes + runs[0].down_bytes, "held": None})
    gap = 100 * (rows[0]["accuracy"] - rows[1]["accuracy"])
    fewer = rows[0]["bytes"] / rows[1]["bytes"]
    held = gap <= POINTS_BELOW_EVERY_STEP and fewer >= FEWER_BYTES_THAN_EVERY_STEP
    return [*rows, {"gap_points": round(gap, 2), "fewer_bytes": round(fewer, 1), "held": held}]


def sorted_by_label() -> list[dict[str, Any]]:
    """Digits, each worker with labels of its own, K = 10: which outer optimizer mends the drift."""
    data = digits()
    rows = []
    for outer in SORTED_OUTER:
        arm = Arm(k_steps=10, rounds=80, outer=outer, by_label=True, encoding="int8")
        runs = [train(data, replace(arm, seed=seed)).accuracy for seed in SEEDS]
        row: dict[str, Any] = {"outer": outer, "accuracies": [round(one, 4) for one in runs]}
        rows.append(row | {"median": statistics.median(runs)})
    best = max(row["median"] for row in rows)
    return [{**row, "held": row["median"] >= SORTED_TARGET if row["median"] == best else None} for row in rows]


def _at(arm: Arm, rate: float, seed: int) -> Arm:
    return replace(arm, inner={"name": "sgd", "lr": rate}, seed=seed)
