"""What a run left on disk, checked after the fact: every announced version is durable, rounds 1 to N, once each.

Reads the master's store, its log and its checkpoints. Not for what happened when (watch.py).
"""

import json
import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.master.shell import checkpoints

ROUND_LINE = re.compile(r"\[ROUND\] round=(\d+) ")


@dataclass(frozen=True)
class Ledger:
    """`rows` by round as in the store; `announced` are the rounds of the log's lines, in order."""

    rows: list[dict[str, Any]]
    announced: list[int]
    newest: int
    faults: list[str]
    notes: list[str]

    def samples(self, first: int, last: int) -> int:
        """Samples accepted in rounds first to last."""
        return sum(row["samples"] for row in self.rows if first <= row["round"] <= last)


def read(master: Path, run: str, log: str) -> Ledger:
    """Everything that is wrong is a sentence in `faults`; none means that nothing was lost or counted twice.

    `notes` are about the lines: each waits for its evaluation, and a master that dies meanwhile says only the last.
    """
    with sqlite3.connect(f"file:{master / 'master.sqlite'}?mode=ro", uri=True) as store:
        found = store.execute("SELECT row FROM rounds WHERE run = ? ORDER BY round", [run]).fetchall()
    store.close()
    rows = [json.loads(row) for (row,) in found]
    announced = [int(number) for number in ROUND_LINE.findall(log)]
    folder = master / "runs" / run
    kept = checkpoints.rounds_in(folder)
    faults = [f"{path.name} was set aside as damaged" for path in sorted(folder.glob("*.bad"))]
    for number in kept:
        try:
            meta = checkpoints.read(checkpoints.path_of(folder, number)).meta
        except Exception as error:  # noqa: BLE001 - whatever it is, this version is not readable
            faults.append(f"checkpoint {number} cannot be read: {error}")
            continue
        row = next((row for row in rows if row["round"] == number), None)
        if number and (row is None or row["samples"] != meta["row"]["samples"]):
            faults.append(f"the row of round {number} is not that of its checkpoint")
    newest = max(kept, default=-1)
    closed = [row["round"] for row in rows]
    if closed != list(range(1, newest + 1)):
        missing = sorted(set(range(1, newest + 1)) - set(closed))
        faults.append(f"rows are not rounds 1 to {newest}: missing {missing[:5]}, last {closed[-3:]}")
    lost = [number for number in announced if number > newest]
    if lost:
        faults.append(f"announced and not durable: {lost[:5]}")
    if announced != sorted(announced):
        faults.append("[ROUND] lines are out of order")
    notes = []
    if unsaid := sorted(set(closed) - set(announced)):
        notes.append(f"{len(unsaid)} rounds have no [ROUND] line: {unsaid[:5]}")
    if twice := sorted({number for number in announced if announced.count(number) > 1}):
        notes.append(f"{len(twice)} rounds have two [ROUND] lines: {twice[:5]}")
    return Ledger(rows, announced, newest, faults, notes)
