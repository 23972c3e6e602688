"""`mahe runs`: all runs in a table, or one run whole."""

import json
from dataclasses import asdict
from typing import Any

from services.common.host.machine import home
from services.launch.console_client import Link, find_console
from services.launch.lines import say, show, show_json, show_table, tell
from services.launch.summary import Evaluation, RunSummary, local_time, run_of

HEAD = ["RUN", "DATA SET", "PHASE", "ROUNDS", "BEST LOSS", "BEST ACC", "LAST LOSS", "LAST ACC", "CREATED"]
UNKNOWN = "-"


def run_runs(run: str | None, *, limit: int, as_json: bool) -> int:
    """The newest `limit` runs, newest first; or the one. Raises MaheError RUN_UNKNOWN, NOT_REACHABLE."""
    link = find_console(home())
    if run is not None:
        return one_run(link, run, as_json=as_json)
    current = link.snapshot().get("run") or {}
    found = [complete(link, item, current) for item in link.runs(limit)]
    runs = [run_of(item) for item in found]
    if as_json:
        show_json({"runs": [asdict(item) for item in runs]}, indent=2)
    elif runs:
        show_table([HEAD, *map(cells, runs)])
    else:
        tell("RUNS", "no run yet; to start one: mahe start, or Start on the page")
    return 0


def one_run(link: Link, run: str, *, as_json: bool) -> int:
    """Its state, settings and checkpoints."""
    found = complete(link, link.run(run), {})
    summary = run_of(found)
    settings: dict[str, Any] = found.get("spec") or {}
    kept = sorted(link.checkpoints(summary.id), key=lambda item: int(item["round"]))
    checkpoints = [{name: item[name] for name in ("round", "best", "bytes", "sha256", "path")} for item in kept]
    if as_json:
        show_json({**asdict(summary), "settings": settings, "checkpoints": checkpoints}, indent=2)
        return 0
    say("RUN", summary.sentence)
    facts = {
        "name": summary.name,
        "created": local_time(summary.created_at_ms),
        "last": evaluated(summary.last),
        "best": evaluated(summary.best),
    }
    plain = {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}
    for title, rows in (("FACTS", facts), ("SETTINGS", plain)):
        show("")
        show_table([[title, ""], *([name, value] for name, value in rows.items())])
    show("")
    lines = [[str(one["round"]), "best" if one["best"] else "", str(one["bytes"]), one["path"]] for one in checkpoints]
    show_table([["CHECKPOINT", "", "BYTES", "PATH"], *lines])
    return 0


def complete(link: Link, item: dict[str, Any], current: dict[str, Any]) -> dict[str, Any]:
    """A run with how far it came, its last and its best evaluation: told of the current one, else read from rounds."""
    if item.get("id") == current.get("id"):
        return {**item, **current}
    if "version" in item:
        return item
    rows = link.rounds(str(item["id"]))
    found = [row for row in rows if row.get("eval_loss") is not None]
    evaluations = [
        {"version": row["round"], "loss": row["eval_loss"], "accuracy": row["eval_accuracy"]} for row in found
    ]
    return {
        **item,
        "version": rows[-1]["round"] if rows else 0,
        "last_eval": evaluations[-1] if evaluations else None,
        "best_eval": min(evaluations, key=lambda one: float(one["loss"]), default=None),
    }


def cells(run: RunSummary) -> list[str]:
    """One row of the table."""
    figures = [figure for one in (run.best, run.last) for figure in loss_and_accuracy(one)]
    return [
        run.id,
        run.dataset,
        run.word,
        f"{run.version}/{run.rounds}",
        *figures,
        local_time(run.created_at_ms),
    ]


def loss_and_accuracy(found: Evaluation | None) -> tuple[str, str]:
    """Two cells."""
    return (f"{found.loss:.4f}", f"{found.accuracy:.4f}") if found is not None else (UNKNOWN, UNKNOWN)


def evaluated(found: Evaluation | None) -> str:
    """An evaluation on one line."""
    loss, accuracy = loss_and_accuracy(found)
    return f"round {found.version}: loss {loss}, accuracy {accuracy}" if found is not None else UNKNOWN
