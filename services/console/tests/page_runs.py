"""Runs that were, as a master lists them, for the tests of the views about them."""

import math
from typing import Any

from services.console.tests import scripted_cluster as cluster
from services.console.tests.scripted_master import Answer, ScriptedMaster

STARTED_MS = 1_795_990_000_000


def old_run(number: int, **changes: Any) -> dict[str, Any]:
    """A row of GET /runs: a run that has ended, `digits-<number>`."""
    spec = {**cluster.run(0)["spec"], "name": f"try {number}", "rounds": 20, "seed": 7, **changes.pop("spec", {})}
    return {
        "id": f"digits-{number}",
        "number": number,
        "spec": spec,
        "phase": "STOPPED",
        "reason": f"all {spec['rounds']} rounds are closed",
        "finished": True,
        "created_at_ms": STARTED_MS + 600_000 * number,
        **changes,
    }


def rounds_of(number: int, closed: int) -> list[dict[str, Any]]:
    """The rounds of `old_run(number)`: another curve for each, best before the last."""
    rows = []
    for one in range(1, closed + 1):
        bend = 0.0004 * number * max(0, one - 0.7 * closed) ** 2
        loss = round(0.1 + 0.02 * number + 2 * math.exp(-one / (3 + number)) + bend, 4)
        rows.append({**cluster.history_row(one), "eval_loss": loss, "eval_accuracy": round(1 - 0.4 * loss, 4)})
    return rows


def prepare_runs(master: ScriptedMaster, *, count: int = 6, closed: int = 20) -> None:
    """The current run and `count` older ones, newest first; each with `closed` rounds."""
    failed = old_run(2, phase="FAILED", finished=False, reason="it diverged twice; try a lower learning rate")
    others = {1: old_run(1, spec={"encoding": "fp32", "k_steps": 25}), 2: failed}
    olds = [others.get(number) or old_run(number, spec={"seed": number}) for number in range(count, 0, -1)]
    current = {key: cluster.run(12)[key] for key in ("id", "spec", "phase", "reason", "finished", "created_at_ms")}
    serve_runs(master, [{**current, "number": 99}, *olds], closed)


def serve_runs(master: ScriptedMaster, runs: list[dict[str, Any]], closed: int) -> None:
    """Answer for these runs, newest first, as a master does; all but the current one have rounds in its store."""
    numbers = {run["id"]: run["number"] for run in runs}

    def list_runs(command: dict[str, Any]) -> Answer:
        found = [run for run in runs if run["number"] < (command["before"] or 2**53)]
        return True, "OK", "", page(found, "number", command["limit"])

    def get_run(command: dict[str, Any]) -> Answer:
        return next(((True, "OK", "", run) for run in runs if run["id"] == command["run"]), unknown(command))

    def list_rounds(command: dict[str, Any]) -> Answer:
        if command["run"] not in numbers or command["run"] == cluster.RUN_ID:
            return unknown(command)
        found = [row for row in rounds_of(numbers[command["run"]], closed) if row["round"] > command["after"]]
        return True, "OK", "", page(found, "round", command["limit"])

    master.replies |= {"list_runs": list_runs, "get_run": get_run, "list_rounds": list_rounds}


def unknown(command: dict[str, Any]) -> Answer:
    """There is no such run."""
    return False, "RUN_UNKNOWN", f"there is no run {command['run']}", {}


def page(found: list[dict[str, Any]], key: str, limit: int) -> dict[str, Any]:
    """One page of a list, and the key after which it goes on."""
    return {"items": found[:limit], "next": found[limit - 1][key] if len(found) > limit else None}
