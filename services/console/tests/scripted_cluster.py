"""State as a master would tell it: a run of some closed rounds, workers in different states, a catalog."""

import math
from typing import Any

RUN_ID = "run-7"
DATASETS = [
    {
        "name": "digits",
        "description": "Handwritten digits, 8x8 pixels, real data",
        "dimensions": 64,
        "classes": 10,
        "train": 1438,
        "test": 359,
        "recommended": {
            "rounds": 30,
            "k_steps": 50,
            "batch": 32,
            "model": {"family": "mlp", "hidden": [64, 64]},
            "inner": {"name": "sgd", "lr": 0.1},
        },
    },
    {
        "name": "rings4",
        "description": "Four rings of points, one class each",
        "dimensions": 2,
        "classes": 4,
        "train": 1600,
        "test": 400,
        "recommended": {
            "rounds": 20,
            "k_steps": 40,
            "batch": 16,
            "model": {"family": "mlp", "hidden": [32, 32]},
            "inner": {"name": "adamw", "lr": 0.01},
        },
    },
]
JOIN_STRING = "mahe1." + "a2bcdefghijklmnopqrstuvwxyz234567" * 6


def history_row(number: int, *, evaluated: bool = True) -> dict[str, Any]:
    """One closed round of a run that learns."""
    loss = 0.12 + 2.1 * math.exp(-number / 5.5) + 0.02 * math.sin(number * 1.7)
    return {
        "round": number,
        "workers": 4,
        "train_loss": round(loss * 0.93 + 0.015 * math.cos(number * 2.3), 4),
        "eval_loss": round(loss, 4) if evaluated else None,
        "eval_accuracy": round(0.975 - 0.86 * math.exp(-number / 4.2), 4) if evaluated else None,
        "samples": 6400,
        "bytes": 301_480,
        "seconds": 1.8,
    }


def run(closed: int, *, phase: str = "RUNNING", reason: str | None = None, total: int = 30) -> dict[str, Any]:
    """A run with `closed` rounds behind it."""
    last = history_row(closed) if closed else None
    evaluation = last and {"version": closed, "loss": last["eval_loss"], "accuracy": last["eval_accuracy"]}
    spec = {
        "name": "digits at night",
        "dataset": "digits",
        "model": {"family": "mlp", "hidden": [64, 64]},
        "inner": {"name": "sgd", "lr": 0.1},
        "outer": {"name": "fedavg", "lr": 1.0},
        "rounds": total,
        "min_workers": 2,
        "k_steps": 50,
        "batch": 32,
        "balance": "proportional",
        "units": 8,
        "encoding": "int8",
        "aggregator": "clip",
        "clip": 1.0,
        "trim": 1,
        "rounds_in_flight": 1,
        "seed": 7,
    }
    open_round = {
        "round": closed + 1,
        "phase": "OPEN",
        "reason": "2 of 4 deltas are in; waiting for lab-pc-02, dorm-417",
        "accepted": 2,
        "leases": [{"worker": "w1", "shard": 0, "samples": 640, "k_steps": 50, "batch": 32, "state": "LEASED"}],
    }
    return {
        "id": RUN_ID,
        "name": "digits at night",
        "spec": spec,
        "phase": phase,
        "reason": reason or f"round {closed + 1} of {total}: 2 of 4 deltas are in",
        "finished": phase == "STOPPED" and closed == total,
        "version": closed,
        "rounds_total": total,
        "created_at_ms": 1_796_000_000_000,
        "rounds_open": [open_round] if phase == "RUNNING" else [],
        "last_eval": evaluation,
        "best_eval": evaluation,
        "n_parameters": 8970,
        "k_steps": 50,
        "encoding": "int8",
        "rounds_in_flight": 1,
        "sync_ms": None,
        "step_ms": None,
        "rounds_per_minute": 21.4 if phase == "RUNNING" else None,
    }


def worker(number: int, name: str, **changes: Any) -> dict[str, Any]:
    """One worker, training unless told otherwise."""
    return {
        "id": f"w{number}",
        "name": name,
        "link": "LINKED",
        "agent": "training",
        "owner": "",
        "reason": "trains shard 1 of round 13",
        "cores": 2 + 2 * (number % 3),
        "threads": 2,
        "memory_mib": 8192,
        "platform": "Linux x86_64",
        "samples_per_s": 900.0 * number,
        "share": round(0.1 * number, 2),
        "k_steps": 50,
        "batch": 32,
        "link_bytes_per_s": None,
        "step": 12 * number % 50,
        "steps_total": 50,
        "progress_age_ms": 400,
        "last_heard_ms_ago": 300,
        "accepted_rounds": 12,
        "measured": True,
        "samples_total": 7200 * number,
        "clipped_rounds": 0,
        "mismatches": 0,
        **changes,
    }


def workers() -> list[dict[str, Any]]:
    """Four workers: two train, one is paused by its owner, one is lost."""
    return [
        worker(1, "lab-pc-01"),
        worker(2, "lab-pc-02"),
        worker(
            3,
            "dorm-417",
            agent="paused",
            owner="on battery",
            reason="paused: on battery",
            share=None,
            step=0,
            progress_age_ms=None,
            samples_per_s=1420.5,
            platform="Windows AMD64",
        ),
        worker(
            4,
            "office-mac",
            link="LOST",
            agent="idle",
            reason="nothing heard for 21 s; its data comes again later",
            share=None,
            step=0,
            progress_age_ms=None,
            last_heard_ms_ago=21_000,
            platform="Darwin arm64",
        ),
    ]


def check(code: str, level: str = "ok") -> dict[str, Any]:
    """What a check of INIT has found."""
    return {"code": code, "level": level, "values": {"tier": "avx2"}, "text": f"{code} is {level}"}


def init(state: str, checks: list[dict[str, Any]]) -> dict[str, Any]:
    """How far INIT is."""
    return {"state": state, "checks": checks}


def state(*, closed: int = 12, **changes: Any) -> dict[str, Any]:
    """A whole snapshot; `closed=0` with `run=None` is a cluster where nothing has been started."""
    return {
        "term": 1,
        "master": {
            "version": "0.1.0",
            "endpoints": ["tcp://192.168.1.20:47820"],
            "started_at_ms": 1_796_000_000_000,
            "kernel": "avx2",
        },
        "init": init("done", [check("KERNELS"), check("ADDRESSES_LOCAL", "warn")]),
        "refused": {"count": 0, "last": ""},
        "run": run(closed),
        "workers": workers(),
        "history": [history_row(number) for number in range(1, closed + 1)],
        **changes,
    }
