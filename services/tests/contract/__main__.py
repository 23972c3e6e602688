"""`make release`: thousands of questions to the API of a real cluster. Exit code 0 when every answer was described."""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from services.tests.chaos import report
from services.tests.contract.asking import CLEARING, STREAM, Outcome, ask
from services.tests.contract.streams import ask_streams
from services.tests.docs import facts
from services.tests.system.cluster import Cluster

EXAMPLES = 400
REQUESTS_MIN = 5000
SEED = 8
WORKERS = 2


def main() -> int:
    """Read the command line, ask, print, write."""
    parser = argparse.ArgumentParser(prog="python -m services.tests.contract")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="questions to each operation in each phase")
    parser.add_argument("--least", type=int, default=REQUESTS_MIN, help="requests in all, or it has failed")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mahe-contract-") as home:
        results = question(Path(home), args.examples, args.seed)
    results["held"] = results["held"] and results["requests"] >= args.least
    report.write(args.json, "schemathesis", results)
    print(results)
    return 0 if results["held"] else 1


def question(home: Path, examples: int, seed: int) -> dict[str, Any]:
    """The whole API of a cluster that trains; the results, ready for JSON."""
    with Cluster(home) as cluster:
        cluster.start(WORKERS)
        cluster.run(dataset="digits", rounds=5)
        link = cluster.api
        most = ("--exclude-operation-id", STREAM, "--exclude-operation-id", CLEARING)
        parts: list[Outcome] = [ask(link, home / "most", *most, examples=examples, seed=seed)]
        statuses, faults = ask_streams(link, facts.openapi())
        parts.append(ask(link, home / "last", "--include-operation-id", CLEARING, examples=10, seed=seed))
        faults += [f"the log of the {name} has a traceback" for name in cluster.services if _traceback(cluster, name)]
        for part in parts:
            statuses.update({int(status): count for status, count in part.statuses.items()})
            if not part.held:
                print(part.said)
    return {
        "examples": examples,
        "seed": seed,
        "requests": statuses.total(),
        "operations": sum(part.operations for part in parts) + 1,
        "statuses": {str(status): count for status, count in sorted(statuses.items())},
        "failures": [fault for part in parts for fault in part.failures] + faults,
        "seconds": round(sum(part.seconds for part in parts), 1),
        "held": all(part.held for part in parts) and not faults and max(statuses) < 500,
    }


def _traceback(cluster: Cluster, name: str) -> bool:
    return "Traceback" in cluster.log(name)


if __name__ == "__main__":
    sys.exit(main())
