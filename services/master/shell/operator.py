"""The operator's commands: checked here, decided by the coordinator where they touch the run, else answered at once."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.common.errors import ProtocolError
from services.common.learning import BAD_SPEC, catalog, faults_of, summary
from services.common.learning.outer import warnings_of
from services.common.protocol import control
from services.common.protocol.messages import RunSpec, because
from services.master.core import events
from services.master.core.coordinator import Coordinator
from services.master.core.events import Event
from services.master.core.state import QUEUE_MAX, QUEUED
from services.master.core.view import queue_view
from services.master.shell.admission import LOCAL_LABEL, Admission
from services.master.shell.bulletin import Bulletin
from services.master.shell.checkpoints import Vault, rounds_in
from services.master.shell.folders import Folders
from services.master.shell.initialisation import Initialisation
from services.master.shell.model_copies import Places
from services.master.shell.store import Store, wall_ms


@dataclass
class Operator:
    """`step` feeds the coordinator; `offer` makes a file available for download and returns its facts."""

    vault: Vault
    store: Store
    admission: Admission
    bulletin: Bulletin
    coordinator: Coordinator
    endpoints: Callable[[], list[str]]
    places: Places
    step: Callable[[Event], None]
    offer: Callable[[Path], dict[str, Any]]
    initialisation: Initialisation

    def perform(self, cmd_id: str, command: Any) -> dict[str, Any] | None:
        """The result, or None when the coordinator answers. Raises MaheError with a code."""
        if isinstance(command, control.Init):
            self.initialisation.begin()
            return {"term": self.bulletin.term, **self.initialisation.view()}
        if isinstance(command, control.CreateRun):
            if not self.initialisation.done:
                self.initialisation.hold(cmd_id, command)  # performed again when it is done
                return None
            self.initialisation.check()
            return self._create_run(cmd_id, command.spec)
        if isinstance(command, control.PauseRun):
            self.step(events.PauseRun(cmd_id, self._known(command.run)))
            return None
        if isinstance(command, control.ResumeRun):
            self.step(events.ResumeRun(cmd_id, self._known(command.run)))
            return None
        if isinstance(command, control.StopRun):
            self.step(events.StopRun(cmd_id, self._known(command.run)))
            return None
        if isinstance(command, control.RemoveAllWorkers):
            workers = sorted(self.admission.names())
            for worker in workers:
                self.admission.revoke_worker(worker)
                self.step(events.RemoveWorker("", worker))
            return {"workers": workers}
        if isinstance(command, control.RemoveWorker):
            if command.worker not in self.admission.names():
                raise ProtocolError(f"worker {command.worker} is not enrolled", code="WORKER_UNKNOWN")
            self.admission.revoke_worker(command.worker)  # first: when the store cannot be written nothing has happened
            self.step(events.RemoveWorker(cmd_id, command.worker))
            return None
        return self._look_up(command)

    def _look_up(self, command: Any) -> dict[str, Any] | None:
        if isinstance(command, control.GetRun):
            return self._as_now([self.store.run(self._known(command.run)) or {}])[0]
        if isinstance(command, control.ListRuns):
            rows = self._as_now(self.store.runs(command.limit + 1, command.before))
            return _page(rows, "number", command.limit)
        if isinstance(command, control.ListRounds):
            rows = self.store.rounds(self._known(command.run), command.after, command.limit + 1)
            return _page(rows, "round", command.limit)
        if isinstance(command, control.ListCheckpoints):
            return {"items": self._checkpoints(self._known(command.run))}
        if isinstance(command, control.ListDatasets):
            return {"items": catalog()}
        if isinstance(command, control.ListFolders):
            return Folders(self.places).look(command.path)
        if isinstance(command, control.CreateJoinString):
            return self._create_join(command)
        if isinstance(command, control.RevokeJoinString):
            if not self.admission.revoke_join(command.id):
                raise ProtocolError(f"join string {command.id} is not there", code="JOIN_UNKNOWN")
            return {"id": command.id}
        assert isinstance(command, control.ListJoinStrings)
        views = [_join_view(*row) for row in self.store.joins() if row[0] > command.after]
        return _page(views, "id", command.limit)

    def _create_run(self, cmd_id: str, spec: RunSpec) -> dict[str, Any] | None:
        _check_spec(spec)
        warnings = warnings_of(spec.outer, spec.rounds)
        if known := self.store.run_asked_by(cmd_id):  # of an earlier master, which may have died before it answered
            if known["spec"] != spec.model_dump(mode="json"):
                text = f"id {cmd_id} has started run {known['id']}, which is another one; take a new key"
                raise ProtocolError(text, code="IDEMPOTENCY_KEY_REUSED")
            return {"run": known["id"], "warnings": warnings, "position": self._position(known["id"])}
        if len(self.coordinator.state.queue) >= QUEUE_MAX:
            self.step(events.CreateRun(cmd_id, "none", spec))  # refused by the table, with the reason
            return None
        self.places.check(spec.model_path)
        number = self.store.runs_made() + 1
        run = f"{spec.dataset.removeprefix('builtin:').replace('_', '-').replace(':', '-')}-{number}"
        self.store.add_run(run, number, spec.model_dump(mode="json"), QUEUED, because("CREATED"), cmd_id)
        self.bulletin.created_ms[run] = wall_ms()
        self.step(events.CreateRun("", run, spec))  # which cannot be refused; answered here, with the warnings
        for sentence in warnings:
            self.bulletin.post("WARN", f"run {run}: {sentence}", {})
        return {"run": run, "warnings": warnings, "position": self._position(run)}

    def _position(self, run: str) -> int | None:
        """In the queue, 1 is the next; None: it has begun."""
        return next((one["position"] for one in queue_view(self.coordinator.state) if one["id"] == run), None)

    def _as_now(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Rows of runs; those that wait with their position and reason as they are now."""
        waiting = {one["id"]: one for one in queue_view(self.coordinator.state)}
        for row in rows:
            now = waiting.get(row["id"], {"position": None})
            row |= {name: now[name] for name in ("phase", "reason", "reason_said", "position") if name in now}
        return rows

    def _known(self, run: str) -> str:
        if not self.store.has_run(run):
            raise ProtocolError(f"run {run} does not exist; see GET /api/v1/runs", code="RUN_UNKNOWN")
        return run

    def _checkpoints(self, run: str) -> list[dict[str, Any]]:
        best = self.store.best_round(run)
        items = []
        for round_number in rounds_in(self.vault.run_folder(run)):
            try:
                facts = self.offer(self.vault.path_of(run, round_number))
            except OSError:
                continue  # pruned in this moment
            items.append({"round": round_number, "best": round_number == best, **facts})
        return items

    def _create_join(self, command: control.CreateJoinString) -> dict[str, Any]:
        endpoints = self.endpoints()
        join, text = self.admission.add_join(command.label, endpoints, command.expires_s, command.uses)
        return {
            "id": join,
            "join_string": text,
            "endpoints": endpoints,
            "expires_at_ms": wall_ms() + 1000 * command.expires_s,
            "uses": command.uses,
        }


def _check_spec(spec: RunSpec) -> None:
    """Names and values of data set, model and optimizers; raises ProtocolError BAD_SPEC with the fields."""
    faults = faults_of(spec, {str(card["name"]): card for card in catalog()})
    if faults:
        raise ProtocolError(summary(faults), code=BAD_SPEC, faults=faults)


def _page(items: list[dict[str, Any]], key: str, limit: int) -> dict[str, Any]:
    """The first `limit` of `items`, and where the next page begins, if there is one."""
    return {"items": items[:limit], "next": items[limit - 1][key] if len(items) > limit else None}


def _join_view(
    join: int, label: str, secret: bytes, created_ms: int, expires_ms: int | None, uses_left: int | None
) -> dict[str, Any]:
    expired = expires_ms is not None and wall_ms() > expires_ms
    return {
        "id": join,
        "label": label,
        "local": label == LOCAL_LABEL,
        "created_at_ms": created_ms,
        "expires_at_ms": expires_ms,
        "uses_left": uses_left,
        "state": "expired" if expired else "used up" if uses_left == 0 else "valid",
    }
