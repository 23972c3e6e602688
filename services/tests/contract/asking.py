"""One round of questions: schemathesis as a program of its own, and what its reports say.

It makes requests from the description, good ones and bad ones, and follows what the answers name (the id of a run that
was created, say). Not for the event stream, which has no end: `streams.py` asks for that.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.launch.console_client import TOKEN_HEADER, Link

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
)
# Not positive_data_acceptance: rules over several fields (RunSpec) cannot be said in JSON Schema.
# Not missing_required_header, and no made-up tokens: test_guard has these for every route, and with the token among the
# parameters schemathesis wants every unknown header refused where another one (Idempotency-Key) is described.
STREAM = "streamEvents"
CLEARING = "removeAllWorkers"  # asked for last: after it there are no workers to ask about
LIMIT_S = 1800.0
FAULT_STATUS = 500
SHOWN_MAX = 6000


@dataclass(frozen=True)
class Outcome:
    """What was asked and answered. `failures`: sentences of schemathesis, one for each kind of fault."""

    requests: int
    statuses: dict[str, int]
    operations: int
    failures: list[str]
    seconds: float
    said: str

    @property
    def held(self) -> bool:
        """Whether every answer was one that is described, and none a fault of the console or of the master."""
        return self.requests > 0 and not self.failures and all(int(one) < FAULT_STATUS for one in self.statuses)


def ask(link: Link, folder: Path, *selection: str, examples: int, seed: int) -> Outcome:
    """Ask each operation of `selection` (options of schemathesis) up to `examples` times in each phase."""
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{link.url}api/v1/openapi.json"]
    command += ["--header", f"{TOKEN_HEADER}: {link.token}", "--checks", ",".join(CHECKS), *selection]
    command += ["--max-examples", str(examples), "--seed", str(seed), "--continue-on-failure", "--no-color"]
    command += ["--phases", "coverage,fuzzing,stateful", "--request-timeout", "20", "--suppress-health-check", "all"]
    command += ["--generation-with-security-parameters", "false"]
    command += ["--report", "json,ndjson", "--report-dir", str(folder / "reports")]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    said = f"{ended.stdout[-SHOWN_MAX:]}{ended.stderr[-SHOWN_MAX:]}"
    [summary] = (folder / "reports").glob("json-*.json")
    [events] = (folder / "reports").glob("ndjson-*.ndjson")
    return _outcome(json.loads(summary.read_bytes()), _statuses(events), said)


def _outcome(summary: dict[str, Any], statuses: Counter[int], said: str) -> Outcome:
    failures = [f"{one['title']}: {', '.join(map(str, one['operations']))}" for one in summary["failures"]]
    failures += [str(one) for one in summary["errors"]]
    if not summary["complete"]:
        failures.append(f"not all was asked: {summary['stop_reason']}")
    return Outcome(
        requests=statuses.total(),
        statuses={str(status): count for status, count in sorted(statuses.items())},
        operations=summary["operations"]["tested"],
        failures=failures,
        seconds=round(summary["running_time"], 1),
        said=said,
    )


def _statuses(events: Path) -> Counter[int]:
    """How often each status was answered."""
    with events.open("rb") as lines:
        return Counter(status for line in lines for status in _answered(json.loads(line)))


def _answered(event: dict[str, Any]) -> Iterator[int]:
    recorded = event.get("ScenarioFinished", {}).get("recorder", {}).get("interactions", {})
    for one in recorded.values():
        if one.get("response") is not None:
            yield int(one["response"]["status_code"])
