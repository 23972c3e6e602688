"""Loss curves of the time-to-loss rows, ready to be drawn: against seconds, rounds and bytes. Pure."""

from dataclasses import dataclass
from typing import Any

from bench.speed import mnist
from bench.speed.arms import Arm, name_of, spec_of, workers_of
from services.common.learning import build_model
from services.common.protocol.round_time import round_bytes

Row = dict[str, Any]


@dataclass(frozen=True)
class Curve:
    """One run: its losses on the validation examples, in time; `rounds` is empty where the row has none."""

    link: str
    workers: int
    arm: Arm
    losses: tuple[float, ...]
    seconds: tuple[float, ...]
    rounds: tuple[int, ...]
    megabytes: tuple[float, ...]
    """Of all workers together, both ways."""

    @property
    def label(self) -> str:
        """For people."""
        return f"{workers_of(self.workers)}, {name_of(self.arm)}"


def curves(rows: list[Row]) -> list[Curve]:
    """The best run of each arm in each row."""
    return [_curve(row, run) for row in rows for run in _runs(row) if run["curve"]]


def _runs(row: Row) -> list[Row]:
    """Until November 2026 rows had the best arm only, and points without their round."""
    if "curves" in row:
        return list(row["curves"])
    return [{**row["best"], "curve": row["curve"]}] if row["best"] else []


def _curve(row: Row, run: Row) -> Curve:
    seconds, losses, *rest = zip(*run["curve"], strict=True)
    rounds = rest[0] if rest else ()
    each = _round_bytes(run["arm"], row["workers"]) / 1e6
    link = f"{row['link']['mbit']:g} Mbit/s"
    return Curve(link, row["workers"], run["arm"], losses, seconds, rounds, tuple(each * one for one in rounds))


def _round_bytes(arm: Arm, workers: int) -> int:
    """In the encoding that the arm names: with k_auto a run may go over to fewer bytes, which is not looked at here."""
    spec = spec_of(arm, workers)
    return round_bytes(spec, build_model(spec.model, mnist.INPUTS, mnist.CLASSES).n_parameters, workers)
