"""`make simulate SEED=7 WORKERS=1000 HOURS=1`: one simulated cluster, or many seeds one after the other."""

import argparse
import sys
import time
import traceback

from services.tests.simulation.cluster import Cluster, Plan


def main() -> int:
    """0 when everything held."""
    parser = argparse.ArgumentParser(prog="make simulate")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--seeds", type=int, default=1, help="so many, from --seed on")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--hours", type=float, default=0.25)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--no-faults", action="store_true")
    parser.add_argument("--units", action="store_true", help="balance=units")
    args = parser.parse_args()
    failed = 0
    for seed in range(args.seed, args.seed + args.seeds):
        plan = Plan(seed, args.workers, args.hours, args.rounds, not args.no_faults, units=args.units)
        failed += not play(plan)
    return 1 if failed else 0


def play(plan: Plan) -> bool:
    """Whether it held; if not, how to see it again and what happened last."""
    started = time.monotonic()
    cluster = Cluster(plan)
    try:
        outcome = cluster.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, the seed shows it again
        print(cluster.world.tell_last())
        print(traceback.format_exc(limit=-6))
        print(f"[SIMULATE] seed {plan.seed} FAILED at {cluster.world.now_ms / 1000:.3f} s: {error}")
        print(f"[SIMULATE] again: make simulate SEED={plan.seed} WORKERS={plan.workers} HOURS={plan.hours}")
        return False
    wall_s = time.monotonic() - started
    print(
        f"[SIMULATE] seed={plan.seed} workers={plan.workers} hours={outcome.hours:.2f} rounds={outcome.rounds} "
        f"faults={outcome.faults} restarts={outcome.restarts} loss={outcome.loss:.4f} digest={outcome.digest[:16]} "
        f"({wall_s:.1f} s, {outcome.hours * 3600 / wall_s:.0f} x real time)"
    )
    return True


if __name__ == "__main__":
    sys.exit(main())
