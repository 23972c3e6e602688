"""What the commands tell of a run and of a worker: the fields of `--json`, and sentences for people.

The fields are a promise to scripts: the guide lists them, and a test compares. Made from the API's answers, in which
what a console does not tell is absent.
"""

import datetime as dt
from dataclasses import dataclass
from typing import Any

ENDED = {"STOPPED", "FAILED"}


@dataclass(frozen=True)
class Evaluation:
    """What a version of the model is worth on data held out of training."""

    version: int
    loss: float
    accuracy: float


@dataclass(frozen=True)
class RunSummary:
    """One run. `rounds`: to train in all; `version`: trained so far. `eta_s` is null when nobody can know."""

    id: str
    name: str
    dataset: str
    phase: str
    reason: str
    finished: bool
    version: int
    rounds: int
    eta_s: float | None
    last: Evaluation | None
    best: Evaluation | None
    created_at_ms: int | None

    @property
    def ended(self) -> bool:
        """Whether it trains no more (a failed run may be resumed)."""
        return self.finished or self.phase in ENDED

    @property
    def word(self) -> str:
        """Its phase as people read it."""
        return "FINISHED" if self.finished else self.phase

    @property
    def sentence(self) -> str:
        """All of it on one line."""
        line = f"run {self.id}: {self.word}, round {self.version} of {self.rounds}"
        if self.last is not None:
            line += f", accuracy {self.last.accuracy:.4f} after round {self.last.version}"
        if self.eta_s is not None:
            line += f", about {duration(self.eta_s)} left"
        return f"{line} ({self.reason})" if self.reason else line


@dataclass(frozen=True)
class WorkerSummary:
    """One worker."""

    id: str
    name: str
    link: str
    agent: str
    owner: str
    reason: str
    quarantined: bool
    samples_per_s: float
    accepted_rounds: int
    samples_total: int

    @property
    def sentence(self) -> str:
        """All of it on one line."""
        why = self.reason or self.owner
        state = f"{self.link}, {self.agent}" + (f": {why}" if why else "")
        return f"worker {self.name}: {state}; {self.accepted_rounds} rounds, {self.samples_total} samples"


def run_of(run: dict[str, Any]) -> RunSummary:
    """From a run as the API tells it, current or earlier."""
    spec = run.get("spec") or {}
    version, rounds = int(run.get("version") or 0), int(run.get("rounds_total") or spec.get("rounds") or 0)
    per_minute = run.get("rounds_per_minute") if run.get("phase") == "RUNNING" else None
    return RunSummary(
        id=str(run.get("id", "")),
        name=str(run.get("name") or spec.get("name") or ""),
        dataset=str(spec.get("dataset", "")),
        phase=str(run.get("phase", "")),
        reason=str(run.get("reason") or ""),
        finished=bool(run.get("finished")),
        version=version,
        rounds=rounds,
        eta_s=round(60 * max(0, rounds - version) / per_minute, 1) if per_minute else None,
        last=_evaluation(run.get("last_eval")),
        best=_evaluation(run.get("best_eval")),
        created_at_ms=run.get("created_at_ms"),
    )


def worker_of(worker: dict[str, Any]) -> WorkerSummary:
    """From a worker as the API tells it."""
    texts = {name: str(worker.get(name) or "") for name in ("id", "name", "link", "agent", "owner", "reason")}
    return WorkerSummary(
        **texts,
        quarantined=bool(worker.get("quarantined")),
        samples_per_s=float(worker.get("samples_per_s") or 0),
        accepted_rounds=int(worker.get("accepted_rounds") or 0),
        samples_total=int(worker.get("samples_total") or 0),
    )


def duration(seconds: float) -> str:
    """Seconds as the page writes them: 42 s, 3:07 min, 2:05 h."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


def local_time(ms: int | None) -> str:
    """Milliseconds since the epoch as date and time of this place; a dash when not known."""
    if ms is None:
        return "-"
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def master_silence(link: dict[str, Any]) -> str:
    """Why the master is not heard, and since when; empty while it is."""
    if link.get("state") == "live":
        return ""
    since = f" since {local_time(link['since_ms'])}" if link.get("since_ms") else ""
    return f"the master does not answer{since}: {link.get('reason') or link.get('state')}"


def _evaluation(found: dict[str, Any] | None) -> Evaluation | None:
    return Evaluation(int(found["version"]), float(found["loss"]), float(found["accuracy"])) if found else None
