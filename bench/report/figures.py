"""What a line of the report says, from the parts of one file: pure functions, None where a figure is missing.

Who is compared with whom and in which words is in lines.py.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench import targets

Found = dict[str, Any]
Row = dict[str, Any]
SIZES = (10**5, 10**6, 10**7)
SIZE_OFF = 0.02  # a model of about so many parameters
KERNEL_SIZE = "16 MiB"
OPTIMIZERS = ("sgd", "momentum", "adamw")
ATTACKS = ("nan", "x-10", "flip")


@dataclass(frozen=True)
class Figures:
    """Of one line, with their units but without words. `met` is None where there is no target."""

    ours: str
    other: str = ""
    ratio: str = ""
    target: str = ""
    met: bool | None = None


def samples_per_s(found: Found, mbit: float, workers: int) -> Figures | None:
    """Against one PC that trains alone; stricter than against a cluster of one worker."""
    rows = {row["workers"]: row for row in _usual(found["scaling"], mbit)}
    if 0 not in rows or workers not in rows:
        return None
    ratio, least = rows[workers]["of_lone"], targets.SAMPLES_OF_ONE.get(workers)
    ours, alone = (f"{rows[count]['samples_per_s']:,.0f}" for count in (workers, 0))
    if least is None:
        return Figures(ours, alone, f"{ratio:.2f}")
    return Figures(ours, alone, f"{ratio:.2f}", f"{least:g}", ratio >= least)


def against_ddp(found: Found, mbit: float) -> Figures | None:
    """Gradients at every step against deltas now and then, on the same links."""
    theirs = _only(row for row in found["ddp"] if row["link"]["mbit"] == mbit and row["who"] == "DDP")
    ours = _only(row for row in _usual(found["ddp"], mbit) if row["who"] == "MAHE")
    if theirs is None or ours is None:
        return None
    rate, other = (f"{row['samples_per_s']:,.0f}" for row in (ours, theirs))
    least = targets.SAMPLES_OF_DDP
    return Figures(rate, other, f"{ours['of_ddp']:.1f}", f"{least:g}", ours["of_ddp"] >= least)


def time_to_loss(found: Found, mbit: float) -> Figures | None:
    """Two workers against a cluster of one, each with the arm and the learning rate that are best for it."""
    rows = {row["workers"]: row for row in found["time-to-loss"] if row["link"]["mbit"] == mbit}
    if not {1, 2} <= rows.keys():
        return None
    one_s, two_s = rows[1]["seconds"], rows[2]["seconds"]
    ours, other = (f"{seconds:.1f} s" if seconds is not None else "-" for seconds in (two_s, one_s))
    if one_s is None or two_s is None:
        return Figures(ours, other, "", "1", met=False)
    return Figures(ours, other, f"{one_s / two_s:.2f}", "1", one_s > two_s)


def fewer_bytes(found: Found) -> Figures | None:
    """What a worker sends and receives in a round, with all that lies around the payload."""
    rows = {row["encoding"]: row["wire_up"] + row["wire_down"] for row in found["wire"]}
    if not {"fp32", *targets.FEWER_BYTES} <= rows.keys():
        return None
    ratios = [rows["fp32"] / rows[encoding] for encoding in targets.FEWER_BYTES]
    ours = _series(f"{rows[encoding] / 1e6:.2f}" for encoding in targets.FEWER_BYTES)
    least = _series(f"{times:g}" for times in targets.FEWER_BYTES.values())
    met = all(ratio >= times for ratio, times in zip(ratios, targets.FEWER_BYTES.values(), strict=True))
    return Figures(f"{ours} MB", f"{rows['fp32'] / 1e6:.2f} MB", _series(f"{one:.2f}" for one in ratios), least, met)


def exchange(found: Found, encoding: str) -> Figures | None:
    """A million values from two workers and back, against Hivemind's 8 bit; the target is that of int4."""
    ours = _only(row for row in found["wire"] if row["encoding"] == encoding)
    theirs = _only(row for row in found["hivemind"] if row["compression"] == "8 bit")
    if ours is None or theirs is None or theirs["step_s"] is None:
        return None
    seconds, other = (f"{one:.3f} s" for one in (ours["exchange_s"], theirs["step_s"]))
    ratio = f"{theirs['step_s'] / ours['exchange_s']:.2f}"
    if encoding != "int4":
        return Figures(seconds, other, ratio)
    limit = targets.INT4_EXCHANGE_S
    return Figures(seconds, other, ratio, f"{limit:g} s", ours["exchange_s"] <= limit)


def against_flower(found: Found) -> Figures | None:
    """Rounds without training, fp32 on both sides, two workers on this PC, at each of SIZES."""
    rows = _overheads(found["overhead"], "fp32")
    if rows is None or any(row["flower_s"] is None for row in rows):
        return None
    ratios, least = [row["faster_than_flower"] for row in rows], targets.FASTER_THAN_FLOWER
    met = all(ratio >= least for ratio in ratios)
    return Figures(
        _ms(rows, "mahe_s"), _ms(rows, "flower_s"), _series(f"{one:.2f}" for one in ratios), f"{least:g}", met
    )


def against_zeromq(found: Found, encoding: str) -> Figures | None:
    """The same against sockets that only carry as many bytes."""
    rows = _overheads(found["overhead"], encoding)
    if rows is None:
        return None
    ratios, most = [row["of_bare"] for row in rows], targets.OF_BARE_ZEROMQ
    met = all(ratio <= most for ratio in ratios)
    return Figures(_ms(rows, "mahe_s"), _ms(rows, "bare_s"), _series(f"{one:.1f}" for one in ratios), f"{most:g}", met)


def memory(found: Found) -> Figures | None:
    """What twice the workers cost the master, against one model."""
    rows = {row["workers"]: row for row in found["memory"]}
    if not {8, 16} <= rows.keys():
        return None
    more = rows[16]["growth_mib"] - rows[8]["growth_mib"]
    most = targets.MODELS_FOR_TWICE_THE_WORKERS * rows[8]["model_mib"]
    return Figures(f"{more:+.1f} MiB", target=f"{most:.1f} MiB", met=more <= most)


def kernel(found: Found, name: str, other: str) -> Figures | None:
    """One kernel against one other library, arrays of KERNEL_SIZE."""
    row = _only(row for row in found["rows"] if (row["kernel"], row["size"]) == (name, KERNEL_SIZE))
    if row is None or other not in row["us"]:
        return None
    took, theirs = (f"{row['us'][who] / 1000:.2f} ms" for who in ("ours", other))
    ratio = row["times_as_fast_as"][other]
    target = _only(one for one in row["targets"] if one["other"] == other)
    if target is None:
        return Figures(took, theirs, f"{ratio:.2f}")
    return Figures(took, theirs, f"{ratio:.2f}", f"{target['at_least']:g}", ratio >= target["at_least"])


def local_steps(found: Found, model: str) -> Figures | None:
    """Samples/s of one core against torch, with each of OPTIMIZERS."""
    rows = {row["optimizer"]: row for row in found["rows"] if row["model"] == model}
    if not set(OPTIMIZERS) <= rows.keys():
        return None
    shown = [rows[name] for name in OPTIMIZERS]
    ours, theirs = (_series(f"{row[of]:,.0f}" for row in shown) for of in ("samples_s", "torch_samples_s"))
    ratios, met = _series(f"{row['ratio']:.2f}" for row in shown), all(row["ratio"] >= row["target"] for row in shown)
    return Figures(ours, theirs, ratios, f"{shown[0]['target']:g}", met)


def quality(found: Found) -> Figures | None:
    """How far the loss is from fp32's with int8 and int4, in spreads of fp32 over its seeds; the worst data set."""
    judged = [row for row in found["encodings"] if row["target"] is not None]
    worst = {name: [row["off_by_spreads"] for row in judged if row["encoding"] == name] for name in ("int8", "int4")}
    if not all(worst.values()):
        return None
    most = judged[0]["target"]
    met = all(row["off_by_spreads"] <= most for row in judged)
    return Figures(_series(f"{max(one):.3f}" for one in worst.values()), target=f"{most:g}", met=met)


def every_step(found: Found) -> Figures | None:
    """Accuracy after rounds of local steps, and bytes, against synchronisation at every step; equal samples."""
    rows = {row["arm"]: row for row in found["every-step"] if "arm" in row}
    verdict = _only(row for row in found["every-step"] if "fewer_bytes" in row)
    if not {"rounds", "every step"} <= rows.keys() or verdict is None:
        return None
    ours, other = (f"{100 * rows[arm]['accuracy']:.1f} %" for arm in ("rounds", "every step"))
    least, points = targets.FEWER_BYTES_THAN_EVERY_STEP, targets.POINTS_BELOW_EVERY_STEP
    met = verdict["fewer_bytes"] >= least and verdict["gap_points"] <= points
    return Figures(ours, other, f"{verdict['fewer_bytes']:.0f}", f"{least:g}", met)


def poison(found: Found) -> Figures | None:
    """Accuracy with the default rule, against the plain mean, for each of ATTACKS; met: also named the right ones."""
    rows = {(row["rule"], row["attack"]): row for row in found["poison-cluster"]}
    if not {(rule, attack) for rule in ("clip", "mean") for attack in ATTACKS} <= rows.keys():
        return None
    ours, other = (
        _series(f"{100 * statistics.fmean(rows[rule, attack]['accuracies']):.1f}" for attack in ATTACKS)
        for rule in ("clip", "mean")
    )
    clipped = [rows["clip", attack] for attack in ATTACKS]
    below = _series(f"{row['points_below_clean_mean']:.1f}" for row in clipped)
    return Figures(f"{ours} %", f"{other} %", below, f"{clipped[0]['target']:g}", all(row["held"] for row in clipped))


def utilisation(found: Found) -> Figures:
    """The mean over the workers of the share of time in which each computes."""
    mean, least = found["unequal"][0]["utilisation_mean"], targets.UTILISATION
    return Figures(f"{100 * mean:.1f} %", target=f"{100 * least:g} %", met=mean >= least)


def divided(found: Found) -> Figures:
    """A round's time by that of one divided perfectly by speed in which nothing is sent."""
    ratio, most = found["unequal"][0]["of_divided"], targets.OF_DIVIDED
    ours = "-" if ratio is None else f"{ratio:.2f}"
    return Figures(ours, target=f"{most:g}", met=ratio is not None and ratio <= most)


def recovered(found: Found) -> Figures:
    """Rounds until the division fits again after the fastest worker has become half as fast."""
    after, most = found["unequal"][0]["recovered_after"], targets.ROUNDS_TO_RECOVER
    return Figures("-" if after is None else f"{after}", target=f"{most}", met=after is not None and after <= most)


def estimate(found: Found) -> Figures:
    """The range of the errors of the minutes foretold, over all settings."""
    off, most = [row["off"] for row in found["estimate"]], targets.ESTIMATE_WITHIN
    met = all(abs(one) <= most for one in off)
    return Figures(f"{min(off):+.0%} / {max(off):+.0%}", target=f"{most:.0%}", met=met)


def _usual(rows: Sequence[Row], mbit: float) -> list[Row]:
    """On this link, as people get it: overlap and local steps chosen by the master."""
    return [row for row in rows if row["link"]["mbit"] == mbit and row.get("arm", {}).get("k_auto")]


def _overheads(rows: Sequence[Row], encoding: str) -> list[Row] | None:
    """Those of two workers, one for each of SIZES; None when one is missing."""
    of_two = [row for row in rows if row["workers"] == 2 and row["encoding"] == encoding]
    found = [_only(row for row in of_two if abs(row["n"] / size - 1) <= SIZE_OFF) for size in SIZES]
    whole = [row for row in found if row is not None]
    return whole if len(whole) == len(SIZES) else None


def _only(rows: Iterable[Row]) -> Row | None:
    return next(iter(rows), None)


def _ms(rows: Sequence[Row], of: str) -> str:
    times = [1000 * row[of] for row in rows]
    return f"{_series(f'{one:,.0f}' if one >= 100 else f'{one:.3g}' for one in times)} ms"


def _series(texts: Iterable[str]) -> str:
    return " / ".join(texts)
