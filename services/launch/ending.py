"""How a run ended, and where its model is."""

from dataclasses import asdict, dataclass
from typing import Any

from services.launch.console_client import Link
from services.launch.lines import say, say_error, show_json


@dataclass(frozen=True)
class Ending:
    """How a run ended: `finished` when it closed all its rounds or had enough, and how in any case."""

    finished: bool
    reason: str
    loss: float | None
    accuracy: float | None


def ending_of(run: dict[str, Any]) -> Ending:
    """The ending that the state of a run tells."""
    evaluated = run.get("last_eval") or {}
    reason = str(run.get("reason") or run.get("phase"))
    return Ending(bool(run.get("finished")), reason, evaluated.get("loss"), evaluated.get("accuracy"))


def say_end(link: Link, run: str, ending: Ending, kind: str, *, as_json: bool = False) -> None:
    """How it ended, and where the model is: the best by evaluation, the newest where none is evaluated."""
    kept = sorted(link.fresh().checkpoints(run), key=lambda item: int(item["round"]))
    best = next((item for item in kept if item["best"]), None)
    if as_json:
        chosen = best or (kept[-1] if kept else None)
        show_json({"type": "end", "run": run, **asdict(ending), "checkpoint": chosen and chosen["path"]})
        return
    if ending.accuracy is not None and ending.loss is not None:
        say(kind, f"final accuracy {ending.accuracy:.4f}, loss {ending.loss:.4f}, on data held out of training")
    if best is not None:
        say(kind, f"the best is version {best['round']}; its checkpoint: {best['path']}")
    elif kept:
        say(kind, f"no version is evaluated; the newest checkpoint: {kept[-1]['path']}")
    if not ending.finished:
        say_error(f"the run did not finish: {ending.reason}")
