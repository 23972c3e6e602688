"""Where a round goes: medians over the rounds of a run that was recorded (cluster.py, `profile=True`).

From the master's journal, ms by its clock, what its loop was told; from times.py what the processes did.
"""

import itertools
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.wire.cluster import WARM

PROCESSES = ("master", "agent", "trainer")
Event = tuple[float, str]  # at, in ms; kind, or what a worker said
STEPS = (  # of a round, each from the one before; of several events of one round the last counts
    ("AssignmentSaved", "table durable, TASKs go out"),
    ("TASK_ACK", "last TASK_ACK"),
    ("DELTA_BEGIN", "last DELTA_BEGIN: followed, encoded, written"),
    ("DeltaStaged", "last delta here and checked"),
    ("AggregationDone", "folded, mean, update encoded"),
    ("CheckpointDone", "checkpoint durable, round closed"),
)


def describe(home: Path) -> dict[str, Any]:
    """Medians in ms: `steps` by the loop, and for each kind of process wall and CPU of each named function."""
    rounds = list(_rounds(list(_events(home / "journal"))))[WARM:]
    moments = [[events[0][0], *(_last(events, kind) for kind, _ in STEPS)] for events in rounds]
    steps = {
        text: round(statistics.median(one[place + 1] - one[place] for one in moments), 1)
        for place, (_, text) in enumerate(STEPS)
    }
    spans = [(events[0][0], events[-1][0]) for events in rounds]
    parts = {who: _parts([list(_times(path)) for path in sorted(home.glob(f"{who}.*"))], spans) for who in PROCESSES}
    return {"rounds": len(rounds), "steps_ms": steps, **parts}


def lines(found: dict[str, Any]) -> Iterator[str]:
    """For people."""
    yield f"  a round by the master's loop, median of {found['rounds']}, ms since the line before:"
    for text, took in found["steps_ms"].items():
        yield f"    {took:8.1f}  {text}"
    for who in PROCESSES:
        yield f"  {who}: ms a round (processor time in brackets), medians; some are part of others"
        for name, (wall, used) in found[who].items():
            if wall:
                yield f"    {wall:8.2f} ({used:.2f})  {name}"


def _events(journal: Path) -> Iterator[Event]:
    for raw in journal.read_text().splitlines():
        line = json.loads(raw)
        kind = line.get("kind", "")
        if kind == "WorkerSaid":
            kind = line["event"]["message"]["t"]
        yield line.get("at", 0), kind


def _rounds(events: list[Event]) -> Iterator[list[Event]]:
    """From one CheckpointDone to the next, both included; the first stands for the opening."""
    marks = [place for place, (_, kind) in enumerate(events) if kind == "CheckpointDone"]
    for begin, end in itertools.pairwise(marks):
        yield events[begin : end + 1]


def _last(events: list[Event], kind: str) -> float:
    """When the last of a kind came; the first event is of the round before."""
    return max(at for at, one in events[1:] if one == kind)


def _times(path: Path) -> Iterator[dict[str, Any]]:
    for raw in path.read_text().splitlines():
        yield json.loads(raw)


def _parts(tables: list[list[dict[str, Any]]], spans: list[tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """name -> (wall, CPU) in ms of all calls in one round of one process; medians over rounds and processes."""
    found: dict[str, tuple[float, float]] = {}
    for name in dict.fromkeys(row["name"] for rows in tables for row in rows):
        walls, used = [], []
        for rows in tables:
            for begin, end in spans:
                inside = [row for row in rows if row["name"] == name and begin <= row["at_ms"] < end]
                walls.append(sum(row["ms"] for row in inside))
                used.append(sum(row["cpu_ms"] for row in inside))
        found[name] = (round(statistics.median(walls), 2), round(statistics.median(used), 2))
    return found
