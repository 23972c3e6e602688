"""The training-volume estimate: what a run amounts to in steps, samples, bytes and minutes, before it is started.

Pure; the console's API answers it and the page shows it. The formulas are in docs/TRAINING.md; the round's model is in
`round_time`, the verdict on more PCs in `worth`. What is not known (a link, a speed) is said by a hint.
"""

from typing import Literal

from pydantic import Field

from services.common.protocol.round_time import (
    Conditions,
    Pc,
    chosen_k_steps,
    first_download_bytes,
    first_download_s,
    round_bytes,
    round_samples,
    round_times,
)
from services.common.protocol.spec import RunSpec, Spec
from services.common.protocol.worth import LeftOutCode, VerdictCode, Worth, will_it_help

__all__ = ["Conditions", "Estimate", "Hint", "Pc", "estimate"]

EPOCHS_MIN, EPOCHS_MAX = 1.0, 50.0
"""Passes over the data that are healthy, both ends included."""
HintCode = Literal["UNDER_TRAINED", "OVER_TRAINED", "WAITS_FOR_PCS", "LINK_NOT_MEASURED", "SPEED_NOT_MEASURED"]


class Hint(Spec):
    """Something to know before the start. The page translates the code."""

    code: HintCode = Field(description="Stable, for programs and translations")
    sentence: str = Field(description="The same for people, in English")


class LeaveOut(Spec):
    """One PC that had better not take part."""

    name: str = Field(description="Its name")
    code: LeftOutCode = Field(description="Why: its link is slow, it is slow, or it adds nothing")
    sentence: str = Field(description="The same for people, in English")


class Verdict(Spec):
    """Will it help? The answer in a word and a sentence."""

    code: VerdictCode = Field(description="Stable, for programs and translations")
    sentence: str = Field(description="The same for people, in English")
    alone_s: float | None = Field(description="Seconds that the fastest PC would need by itself; null without a PC")
    speedups: list[float] = Field(
        description="Times as fast as the fastest PC by itself, with 1, 2, ... of the PCs here, the most useful first"
    )
    best_workers: int = Field(description="So many of them are as fast as it gets")
    leave_out: list[LeaveOut] = Field(description="PCs without which the others are faster")


class Estimate(Spec):
    """What a run amounts to with the PCs present, or with `min_workers` if fewer are."""

    workers: int = Field(description="Workers that the numbers are for")
    k_steps: int = Field(description="Local steps of a round, as `k_auto` will choose them")
    local_steps: int = Field(description="Local steps of all workers together over the whole run")
    samples_per_round: int = Field(description="Samples of one round, all workers together")
    samples_total: int = Field(description="Samples of the whole run")
    epochs: float = Field(description="Passes over the training data: samples_total / examples to train with")
    bytes_per_round: int = Field(description="Deltas up and updates down in one round, all workers together")
    bytes_total: int = Field(description="The same over the run, with each worker's first download of the model")
    compute_s: float | None = Field(description="Seconds of local steps in a round; null while too few PCs are here")
    sync_s: float | None = Field(
        description="Seconds for deltas, the master's work and updates in a round; null as above"
    )
    round_s: float | None = Field(description="Seconds from one round's begin to the next one's; null as above")
    minutes: float | None = Field(description="Minutes for the whole run; null as above")
    verdict: Verdict = Field(description="Will more PCs help?")
    hints: list[Hint] = Field(description="What to know before the start")


def estimate(spec: RunSpec, conditions: Conditions) -> Estimate:
    """The run of `spec` under `conditions`."""
    spec = spec.model_copy(update={"k_steps": chosen_k_steps(spec, conditions)})
    here = len(conditions.pcs)
    workers = max(here, spec.min_workers)
    per_round = round_samples(spec, workers)
    samples = per_round * spec.rounds
    epochs = samples / conditions.n_train
    n = conditions.n_parameters
    moved = round_bytes(spec, n, workers)
    one = round_times(spec, conditions, conditions.pcs)[-1] if here >= spec.min_workers else None
    run_s = None
    if one is not None:  # the last round, and with overlap the first one, has nothing to hide behind
        run_s = first_download_s(conditions) + one.compute_s + one.sync_s + (spec.rounds - 1) * one.round_s
    return Estimate(
        workers=workers,
        k_steps=spec.k_steps,
        local_steps=samples // spec.batch,
        samples_per_round=per_round,
        samples_total=samples,
        epochs=epochs,
        bytes_per_round=moved,
        bytes_total=moved * spec.rounds + first_download_bytes(n, workers),
        compute_s=one.compute_s if one else None,
        sync_s=one.sync_s if one else None,
        round_s=one.round_s if one else None,
        minutes=None if run_s is None else run_s / 60,
        verdict=_verdict(will_it_help(spec, conditions, samples)),
        hints=[Hint(code=code, sentence=sentence) for code, sentence in _hints(spec, conditions, epochs)],
    )


def _verdict(worth: Worth) -> Verdict:
    return Verdict(
        code=worth.code,
        sentence=worth.sentence,
        alone_s=worth.alone_s,
        speedups=list(worth.speedups),
        best_workers=worth.best_workers,
        leave_out=[LeaveOut(name=one.name, code=one.code, sentence=one.sentence) for one in worth.leave_out],
    )


def _hints(spec: RunSpec, conditions: Conditions, epochs: float) -> list[tuple[HintCode, str]]:
    hints: list[tuple[HintCode, str]] = []
    pcs = conditions.pcs
    if epochs < EPOCHS_MIN:
        sentence = f"The run sees only {epochs:.0%} of the examples, too few to learn from: take more rounds."
        hints.append(("UNDER_TRAINED", sentence))
    if epochs > EPOCHS_MAX:
        sentence = (
            f"The run goes over the data {epochs:.0f} times; over {EPOCHS_MAX:.0f} a model tends to learn it by heart: "
            "fewer rounds are enough, or watch the evaluation."
        )
        hints.append(("OVER_TRAINED", sentence))
    if len(pcs) < spec.min_workers:
        sentence = f"The run waits until {spec.min_workers} PCs are here; now there are {len(pcs)}."
        hints.append(("WAITS_FOR_PCS", sentence))
    if pcs and conditions.master_bytes_per_s is None and conditions.fixed_s is None:
        hints.append(
            ("LINK_NOT_MEASURED", "Not all links are measured yet: time for sending that is not known is left out.")
        )
    if any(not pc.measured for pc in pcs):
        sentence = "Not every PC has trained yet: its speed is worked out from a short test, so the minutes are rough."
        hints.append(("SPEED_NOT_MEASURED", sentence))
    return hints
