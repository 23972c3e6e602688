"""`/metrics` for Prometheus: the mirror of the master's state and the tally, put into words when somebody asks.

No label holds what others choose (the name of a PC or a run, an address): a thousand workers are a handful of series,
and nobody can make more of them by joining under ever new names. What each worker does is in the API. While the
master does not answer there are no figures of it: old ones would look like new ones.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from services.console.hub import Hub
from services.console.tally import SECONDS, Tally

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LINKED = "LINKED"
LINKS_LOST = ("SUSPECT", "DETACHED", "LOST")
AGENTS = ("idle", "pulling", "training", "waiting", "uploading", "holding", "paused")
QUARANTINED = "quarantined"
WORKER_STATES = (*AGENTS, *(link.lower() for link in LINKS_LOST), QUARANTINED)
PHASES = ("IDLE", "RUNNING", "WAITING", "PAUSED", "STOPPED", "FAILED")

Dict = dict[str, Any]
Families = Iterator[Metric]


class Facts(Protocol):
    """What figures are made of."""

    @property
    def hub(self) -> Hub:
        """The state of the master, the link and the streams."""


class Figures:
    """A collector of prometheus-client: everything is worked out when it is asked."""

    def __init__(self, facts: Facts, version: str) -> None:
        self._facts = facts
        self._version = version

    def exposition(self) -> bytes:
        """The text that Prometheus reads."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Families:
        """All families, always in this order."""
        hub = self._facts.hub
        live = hub.link.state == "live"
        yield InfoMetricFamily("mahe_build", "The MAHE of this console", {"version": self._version})
        yield _gauge("mahe_master_up", "Whether the master answers", float(live))
        yield _gauge("mahe_sse_clients", "Open event streams", hub.streams)
        yield from _counts(hub.tally)
        if live and hub.mirror.snapshot is not None:
            yield _workers(hub.mirror.snapshot.get("workers") or [])
            yield from _run(hub.mirror.snapshot.get("run") or {})
            yield from _learning(hub.mirror.snapshot)


def state_of(worker: Dict) -> str:
    """One of WORKER_STATES; a word that is not known here counts as idle."""
    if worker.get("quarantined"):
        return QUARANTINED
    link = worker.get("link")
    if link != LINKED:
        return str(link).lower() if link in LINKS_LOST else "lost"
    agent = worker.get("agent")
    return str(agent) if agent in AGENTS else "idle"


def _counts(tally: Tally) -> Families:
    """What only grows while this console lives."""
    yield _counter("mahe_rounds", "Rounds closed since this console started", tally.rounds)
    buckets: list[tuple[str, float]] = []
    below = 0
    for bound in SECONDS:
        below += tally.round_seconds[bound]
        buckets.append((str(bound), below))
    buckets.append(("+Inf", tally.rounds))
    text = "From opening a round to closing it"
    yield HistogramMetricFamily("mahe_round_duration_seconds", text, buckets, sum_value=tally.seconds)
    yield _counter("mahe_samples", "Samples trained in closed rounds", tally.samples)
    sync = CounterMetricFamily(
        "mahe_sync_bytes", "Bytes of accepted deltas, from workers to master", labels=["direction"]
    )
    sync.add_metric(["up"], tally.delta_bytes)
    yield sync
    text = "Bytes that sending a gradient of fp32 at each local step would have taken more than the deltas took"
    yield _counter("mahe_sync_avoided_bytes", text, tally.avoided_bytes)
    errors = CounterMetricFamily("mahe_errors", "Requests to this console answered with a problem", labels=["code"])
    for code, count in sorted(tally.refusals.items()):
        errors.add_metric([code], count)
    yield errors


def _workers(workers: list[Dict]) -> Metric:
    family = GaugeMetricFamily("mahe_workers", "Workers by what they do", labels=["state"])
    counts = Counter(map(state_of, workers))
    for state in WORKER_STATES:
        family.add_metric([state], counts[state])
    return family


def _run(run: Dict) -> Families:
    """The current run, or the last one."""
    phases = GaugeMetricFamily("mahe_run_phase", "1 for the phase that the run is in", labels=["phase"])
    for phase in PHASES:
        phases.add_metric([phase.lower()], float(run.get("phase", "IDLE") == phase))
    yield phases
    yield _gauge("mahe_run_version", "Rounds of the run that are closed", run.get("version"))
    yield _gauge("mahe_run_rounds", "Rounds of the run in all", run.get("rounds_total"))
    yield _gauge("mahe_step_duration_seconds", "Median time of a local step", _seconds(run.get("step_ms")))
    yield _gauge(
        "mahe_sync_duration_seconds", "Median time of an exchange with the workers", _seconds(run.get("sync_ms"))
    )


def _learning(snapshot: Dict) -> Families:
    """The newest losses and the accuracy on data held out."""
    run = snapshot.get("run") or {}
    losses = (row.get("train_loss") for row in reversed(snapshot.get("history") or []))
    evaluation = run.get("last_eval") or {}
    yield _gauge(
        "mahe_train_loss",
        "Training loss of the newest round",
        next((loss for loss in losses if loss is not None), None),
    )
    yield _gauge("mahe_eval_loss", "Loss of the newest evaluated version", evaluation.get("loss"))
    text = "Accuracy of the newest evaluated version, 0 to 1"
    yield _gauge("mahe_eval_accuracy_ratio", text, evaluation.get("accuracy"))


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value)


def _gauge(name: str, text: str, value: float | None) -> Metric:
    """A figure; None: there is none at present, and so no sample."""
    return GaugeMetricFamily(name, text, value)


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000
