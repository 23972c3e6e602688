"""The SQLite store: who is enrolled, which join secrets stand, runs, assignment tables, rounds, the log.

Checkpoints are the commit points; rows of rounds follow them and are repaired from their meta. WAL, synchronous=FULL.
One `Store` belongs to one thread; two threads open two.
"""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from services.common.errors import CheckpointError
from services.common.host.failpoints import failpoint
from services.common.protocol.reasons import Reason, told
from services.master.core.state import QUEUED

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS workers (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, public_key TEXT UNIQUE NOT NULL, enrolled_ms INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS joins (
    id INTEGER PRIMARY KEY AUTOINCREMENT, label TEXT NOT NULL, secret BLOB NOT NULL, created_ms INTEGER NOT NULL,
    expires_ms INTEGER, uses_left INTEGER);
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, number INTEGER UNIQUE NOT NULL, spec TEXT NOT NULL, phase TEXT NOT NULL,
    reason TEXT NOT NULL, finished INTEGER NOT NULL, created_ms INTEGER NOT NULL, reason_said TEXT);
CREATE TABLE IF NOT EXISTS assignments (run TEXT NOT NULL, round INTEGER NOT NULL, attempt INTEGER NOT NULL,
    body TEXT NOT NULL, PRIMARY KEY (run, round));
CREATE TABLE IF NOT EXISTS rounds (run TEXT NOT NULL, round INTEGER NOT NULL, row TEXT NOT NULL,
    PRIMARY KEY (run, round));
CREATE TABLE IF NOT EXISTS asked (number INTEGER PRIMARY KEY, cmd_id TEXT UNIQUE NOT NULL, run TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, kind TEXT NOT NULL,
    text TEXT NOT NULL);
"""
_KEEP = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
EVENTS_KEPT = 100_000
ASKED_KEPT = 1_000  # runs, by the command that asked for them


def wall_ms() -> int:
    """Wall clock in ms since the Unix epoch: for display and expiry only."""
    return time.time_ns() // 1_000_000


class Store:
    """One connection. Every write is one durable transaction; a full or broken disk raises CheckpointError."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "master.sqlite"
        try:
            self._db = sqlite3.connect(self._path, isolation_level=None)
        except sqlite3.Error as error:
            raise CheckpointError(f"the store {self._path} cannot be opened: {error}; see what lies there") from None
        try:
            self._path.chmod(0o600)  # join secrets; SQLite gives its WAL the same mode
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute("PRAGMA busy_timeout=5000")
            self._db.executescript(_SCHEMA)
            self._add_reason_said()
        except (sqlite3.Error, OSError) as error:
            self._db.close()
            text = f"the store {self._path} cannot be opened: {error}; check the disk, or restore a backup"
            raise CheckpointError(text) from None

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def _add_reason_said(self) -> None:
        """A store of before has the English sentences alone."""
        columns = [row[1] for row in self._db.execute("PRAGMA table_info(runs)")]
        if "reason_said" not in columns:
            self._db.execute("ALTER TABLE runs ADD COLUMN reason_said TEXT")

    def next_term(self) -> int:
        """Count this start of the master; the number is the term."""
        text = (
            "INSERT INTO meta VALUES ('term', '1') ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
        )
        with self._transaction("term"):
            self._write(text)
        return int(self._meta("term"))

    # workers

    def enrol(self, worker: str, name: str, public_key: str, join: int) -> None:
        """Admit a worker's own key and take one use from the join secret, in one transaction."""
        with self._transaction("enrol"):
            self._write("INSERT INTO workers VALUES (?, ?, ?, ?)", worker, name, public_key, wall_ms())
            self._write("UPDATE joins SET uses_left = uses_left - 1 WHERE id = ? AND uses_left IS NOT NULL", join)

    def revoke(self, worker: str) -> None:
        """Forget a worker's key."""
        with self._transaction("revoke"):
            self._write("DELETE FROM workers WHERE id = ?", worker)

    def workers(self) -> list[tuple[str, str, str]]:
        """(id, name, public key) of each enrolled worker."""
        return self._read("SELECT id, name, public_key FROM workers ORDER BY id")

    # join secrets

    def add_join(self, label: str, secret: bytes, expires_ms: int | None, uses: int | None) -> int:
        """Keep a join secret; None: no end."""
        with self._transaction("join"):
            cursor = self._write(
                "INSERT INTO joins (label, secret, created_ms, expires_ms, uses_left) VALUES (?, ?, ?, ?, ?)",
                label,
                secret,
                wall_ms(),
                expires_ms,
                uses,
            )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def joins(self) -> list[tuple[int, str, bytes, int, int | None, int | None]]:
        """(id, label, secret, created_ms, expires_ms, uses_left) of each join secret that was not revoked."""
        return self._read("SELECT id, label, secret, created_ms, expires_ms, uses_left FROM joins ORDER BY id")

    def revoke_join(self, join: int) -> bool:
        """Forget a join secret; False when there is none."""
        with self._transaction("join"):
            return self._write("DELETE FROM joins WHERE id = ?", join).rowcount == 1

    # runs

    def add_run(
        self, run: str, number: int, spec: dict[str, Any], phase: str, reason: Reason, cmd_id: str = ""
    ) -> None:
        """A new run's row, and by which command it was asked for."""
        text = "INSERT INTO runs VALUES (?, ?, ?, ?, ?, 0, ?, ?)"
        with self._transaction("run-added"):
            self._write(text, run, number, json.dumps(spec), phase, reason.text, wall_ms(), _said(reason))
            if cmd_id:
                self._write("INSERT INTO asked VALUES (?, ?, ?)", number, cmd_id, run)
                self._write("DELETE FROM asked WHERE number <= ?", number - ASKED_KEPT)

    def run_asked_by(self, cmd_id: str) -> dict[str, Any] | None:
        """The run that this command made, among the last ASKED_KEPT: it may be sent again to a later master."""
        rows = self._read("SELECT run FROM asked WHERE cmd_id = ?", cmd_id)
        return self.run(str(rows[0][0])) if rows else None

    def begin_run(self, run: str, phase: str, reason: Reason) -> None:
        """A run leaves the queue and is the current one."""
        text = "UPDATE runs SET phase = ?, reason = ?, reason_said = ?, finished = 0 WHERE id = ?"
        with self._transaction("run-saved"):
            self._write(text, phase, reason.text, _said(reason), run)
            self._write(_KEEP, "current_run", run)

    def current_run(self) -> dict[str, Any] | None:
        """The run that began last, also when it has ended; None before the first."""
        run = self._meta("current_run")
        found = self._runs("id = ? OR (? = '' AND phase <> ?) ORDER BY number DESC LIMIT 1", run, run, QUEUED)
        return found[0] if found else None

    def queued_runs(self) -> list[dict[str, Any]]:
        """The runs that wait, in the order in which they were asked for."""
        return self._runs("phase = ? ORDER BY number", QUEUED)

    def save_run(self, run: str, phase: str, reason: Reason, finished: bool) -> None:
        """A run's phase."""
        text = "UPDATE runs SET phase = ?, reason = ?, reason_said = ?, finished = ? WHERE id = ?"
        with self._transaction("run-saved"):
            self._write(text, phase, reason.text, _said(reason), int(finished), run)

    def runs(self, limit: int, before: int | None = None) -> list[dict[str, Any]]:
        """Runs, newest first."""
        return self._runs("number < ? ORDER BY number DESC LIMIT ?", 2**53 if before is None else before, limit)

    def run(self, run: str) -> dict[str, Any] | None:
        """One run as `runs` tells it; None when there never was such a run."""
        return next(iter(self._runs("id = ?", run)), None)

    def _runs(self, which: str, *values: object) -> list[dict[str, Any]]:
        columns = "id, number, spec, phase, reason, reason_said, finished, created_ms"
        rows = self._read(f"SELECT {columns} FROM runs WHERE {which}", *values)  # noqa: S608 - `which` is ours
        names = ("id", "number", "spec", "phase", "reason", "reason_said", "finished", "created_at_ms")
        runs = [dict(zip(names, row, strict=True)) for row in rows]
        for run in runs:
            run |= {"spec": json.loads(run["spec"]), "finished": bool(run["finished"])}
            run["reason_said"] = json.loads(run["reason_said"]) if run["reason_said"] else None
        return runs

    def runs_made(self) -> int:
        """How many runs there have been."""
        return int(self._read("SELECT COALESCE(MAX(number), 0) FROM runs")[0][0])

    def has_run(self, run: str) -> bool:
        """Whether there ever was such a run."""
        return bool(self._read("SELECT 1 FROM runs WHERE id = ?", run))

    # rounds

    def save_assignment(self, run: str, table: dict[str, Any]) -> None:
        """An open round's table. Only that of the round before may stand beside it: all others are over."""
        text = "INSERT INTO assignments VALUES (?, ?, ?, ?)"
        with self._transaction("assignment"):
            self._write("DELETE FROM assignments WHERE run = ? AND round <> ?", run, table["round"] - 1)
            self._write(text, run, table["round"], table["attempt"], json.dumps(table))

    def assignments(self, run: str, after: int) -> list[dict[str, Any]]:
        """The tables of the rounds after this one that were opened, in order."""
        rows = self._read("SELECT body FROM assignments WHERE run = ? AND round > ? ORDER BY round", run, after)
        return [dict(json.loads(row[0])) for row in rows]

    def save_round(self, run: str, row: dict[str, Any]) -> None:
        """A closed round's row, written again when its evaluation is known."""
        with self._transaction("round"):
            self._write("INSERT OR REPLACE INTO rounds VALUES (?, ?, ?)", run, row["round"], json.dumps(row))

    def rounds(self, run: str, after: int, limit: int) -> list[dict[str, Any]]:
        """Closed rounds in order."""
        rows = self._read(
            "SELECT row FROM rounds WHERE run = ? AND round > ? ORDER BY round LIMIT ?", run, after, limit
        )
        return [json.loads(row[0]) for row in rows]

    def rounds_newest(self, run: str, limit: int) -> list[dict[str, Any]]:
        """The last closed rounds, in order."""
        rows = self._read("SELECT row FROM rounds WHERE run = ? ORDER BY round DESC LIMIT ?", run, limit)
        return [json.loads(row[0]) for row in rows][::-1]

    def best_round(self, run: str) -> int | None:
        """The round with the lowest evaluation loss, the first of equals."""
        rows = self._read(
            "SELECT round FROM (SELECT round, json_extract(row, '$.eval_loss') AS loss FROM rounds WHERE run = ?) "
            "WHERE loss IS NOT NULL ORDER BY loss, round LIMIT 1",
            run,
        )
        return int(rows[0][0]) if rows else None

    def drop_rounds_after(self, run: str, version: int) -> None:
        """Forget rows of rounds that are closed no more: their checkpoint was set aside."""
        with self._transaction("round"):
            self._write("DELETE FROM rounds WHERE run = ? AND round > ?", run, version)

    # the log

    def add_events(self, events: list[tuple[int, str, str]]) -> None:
        """(time_ms, kind, text) lines; the oldest beyond EVENTS_KEPT go."""
        with self._transaction("events"):
            for event in events:
                self._write("INSERT INTO events (time_ms, kind, text) VALUES (?, ?, ?)", *event)
            self._write("DELETE FROM events WHERE id <= (SELECT MAX(id) FROM events) - ?", EVENTS_KEPT)

    def _meta(self, key: str) -> str:
        rows = self._read("SELECT value FROM meta WHERE key = ?", key)
        return str(rows[0][0]) if rows else ""

    def _read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise CheckpointError(f"the store {self._path} cannot be read: {error}; check the disk") from None

    @contextmanager
    def _transaction(self, what: str) -> Iterator[None]:
        """All or nothing, and durable when it ends; `what` names its failpoints."""
        self._write("BEGIN IMMEDIATE")
        try:
            yield
            failpoint(f"store.{what}.before-commit")
            self._write("COMMIT")
        except OSError as error:  # of the failpoint
            self._undo()
            raise CheckpointError(
                f"the store {self._path} cannot be written: {error.strerror}; free the disk"
            ) from None
        except BaseException:
            self._undo()
            raise
        failpoint(f"store.{what}.committed")

    def _undo(self) -> None:
        if self._db.in_transaction:
            with suppress(sqlite3.Error):  # what went wrong before is what people hear of
                self._db.rollback()

    def _write(self, sql: str, *values: object) -> sqlite3.Cursor:
        try:
            return self._db.execute(sql, values)
        except sqlite3.Error as error:
            raise CheckpointError(f"the store {self._path} cannot be written: {error}; free the disk") from None


def _said(reason: Reason) -> str:
    return json.dumps(told(reason))
