"""How long a round takes on given PCs, and how many bytes it moves: a model by arithmetic, no clock, no measuring.

Star topology: every delta goes into the master's one link, every update comes out of it. What is measured comes in as
`Conditions`; not for what a run amounts to (`estimate`), nor for which PCs are worth it (`worth`).
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from services.common.protocol.encodings import down_encoding, encoded_bytes
from services.common.protocol.pacing import is_worth_hiding, steps_wanted
from services.common.protocol.spec import RunSpec

# The master's own work in a round without compute and on a link that is no limit: table, fold, outer step, checkpoint,
# announcing. Fitted to bench/results/wire.json, "overhead", int8: 24, 66 and 477 ms with 2 workers at 0.1, 1 and 10
# million parameters; the parts per delta are the difference of its processor time with 4 workers.
FIXED_S = 0.017
FIXED_S_PER_PARAMETER = 3.6e-8
FIXED_S_PER_DELTA = 1.6e-3
FIXED_S_PER_DELTA_AND_PARAMETER = 4.8e-9
# What a worker does between two rounds and cannot overlap: following the update, encoding its delta. From the same
# file, processor time of the trainer: 6, 24 and 184 ms at 0.1, 1 and 10 million parameters.
HANDOVER_S = 0.005
HANDOVER_S_PER_PARAMETER = 1.8e-8
LINK_BYTES_MIN = 524_288
"""Of a round: how long fewer bytes took says nothing about the link."""


@dataclass(frozen=True)
class Pc:
    """One PC that can train."""

    name: str
    samples_per_s: float
    """Of the run's model; more than 0."""
    bytes_per_s: float | None = None
    """What its link to the master carries, one way at a time; None: not measured, taken as no limit."""
    measured: bool = True
    """Whether `samples_per_s` is from training; else it is from the micro-benchmark, and rougher."""


@dataclass(frozen=True)
class Conditions:
    """What a run will meet: data, model, PCs and links."""

    n_train: int
    """Examples in the training part of the data set."""
    n_parameters: int
    pcs: tuple[Pc, ...]
    """Those present; their order has no meaning."""
    bytes_per_s: float | None = None
    """What the master's link carries, both ways together; None: not measured, see `master_bytes_per_s`."""
    fixed_s: float | None = None
    """The master's own work in a round; None: as measured for the constants of this module."""

    @property
    def master_bytes_per_s(self) -> float | None:
        """The master's link: measured, else the fastest of the PCs' where each is measured; None: no limit."""
        known = [pc.bytes_per_s for pc in self.pcs if pc.bytes_per_s is not None]
        if self.bytes_per_s is None and len(known) == len(self.pcs):
            return max(known, default=None)
        return self.bytes_per_s


@dataclass(frozen=True)
class RoundTime:
    """One round, in samples, bytes and seconds."""

    samples: int
    """Of all PCs together."""
    bytes: int
    """Deltas up and updates down, of all PCs together."""
    compute_s: float
    transfer_s: float
    fixed_s: float
    """The master's own work."""
    round_s: float
    """From one round's begin to the next one's."""

    @property
    def sync_s(self) -> float:
        """From the last local step to the next version on every PC."""
        return self.transfer_s + self.fixed_s

    @property
    def samples_per_s(self) -> float:
        """What the cluster trains."""
        return self.samples / self.round_s


def round_samples(spec: RunSpec, workers: int) -> int:
    """Samples of one round with so many workers."""
    return spec.k_steps * spec.batch * (spec.units if spec.balance == "units" else workers)


def round_bytes(spec: RunSpec, n_parameters: int, workers: int) -> int:
    """Bytes of one round, both directions: a delta for each shard or unit up, the update to each worker down."""
    deltas = spec.units if spec.balance == "units" else workers
    return deltas * _up(spec, n_parameters) + workers * _down(spec, n_parameters)


def default_fixed_s(n_parameters: int, deltas: int) -> float:
    """The master's own work in a round of so many deltas, from the benchmark that the constants name."""
    per_delta = FIXED_S_PER_DELTA + FIXED_S_PER_DELTA_AND_PARAMETER * n_parameters
    return FIXED_S + FIXED_S_PER_PARAMETER * n_parameters + per_delta * deltas


def round_times(spec: RunSpec, conditions: Conditions, pcs: Sequence[Pc]) -> list[RoundTime]:
    """The round with the first 1, 2, ... len(pcs) of `pcs`.

    Blocking: compute + transfer + fixed. Overlapped: the longer of compute and transfer + fixed, and the handover.
    """
    n, link = conditions.n_parameters, conditions.master_bytes_per_s
    sums = list(accumulate(pc.samples_per_s for pc in pcs))
    slowest = list(accumulate((pc.samples_per_s for pc in pcs), min))
    own = list(accumulate((_link_s(1, pc.bytes_per_s) for pc in pcs), max))  # seconds a byte of the slowest link
    times = []
    for workers in range(1, len(pcs) + 1):
        samples, moved = round_samples(spec, workers), round_bytes(spec, n, workers)
        if spec.balance == "proportional":
            compute_s = samples / sums[workers - 1]
        elif spec.balance == "equal":
            compute_s = spec.k_steps * spec.batch / slowest[workers - 1]
        else:
            compute_s = _units_s(spec, pcs[:workers])
        transfer_s = max(_link_s(moved, link), moved / workers * own[workers - 1])
        deltas = spec.units if spec.balance == "units" else workers
        fixed_s = default_fixed_s(n, deltas) if conditions.fixed_s is None else conditions.fixed_s
        sync_s = transfer_s + fixed_s
        round_s = compute_s + sync_s
        if _overlaps(spec, compute_s, sync_s):
            round_s = max(compute_s, sync_s) + HANDOVER_S + HANDOVER_S_PER_PARAMETER * n
        times.append(RoundTime(samples, moved, compute_s, transfer_s, fixed_s, round_s))
    return times


def chosen_k_steps(spec: RunSpec, conditions: Conditions) -> int:
    """The local steps that the master will choose, with `k_auto`: doubled until they make up for the exchange."""
    k_steps = spec.k_steps
    if not spec.k_auto or spec.balance == "units" or not conditions.pcs:
        return k_steps
    time = round_times(spec, conditions, conditions.pcs)[-1]
    overlaps = _overlaps(spec, time.compute_s, time.sync_s)
    wanted = steps_wanted(k_steps, 1000 * time.sync_s, 1000 * time.compute_s / k_steps, overlaps=overlaps)
    while k_steps < min(wanted, spec.k_steps_max):
        k_steps = min(2 * k_steps, spec.k_steps_max)
    return k_steps


def first_download_bytes(n_parameters: int, workers: int) -> int:
    """Before round 1 every worker gets the model whole, as float32."""
    return workers * encoded_bytes("fp32", n_parameters)


def first_download_s(conditions: Conditions) -> float:
    """How long that takes over the master's link, or the slowest other one."""
    each = first_download_bytes(conditions.n_parameters, 1)
    own = max((_link_s(each, pc.bytes_per_s) for pc in conditions.pcs), default=0.0)
    return max(_link_s(each * len(conditions.pcs), conditions.master_bytes_per_s), own)


def own_link_s(spec: RunSpec, n_parameters: int, pc: Pc) -> float:
    """How long a PC's own link is busy with one delta and one update."""
    return _link_s(_up(spec, n_parameters) + _down(spec, n_parameters), pc.bytes_per_s)


def own_round_s(spec: RunSpec, n_parameters: int, pc: Pc) -> float:
    """What a PC needs for a median shard of its own: local steps, delta, update. The shorter, the more useful it is."""
    return spec.k_steps * spec.batch / pc.samples_per_s + own_link_s(spec, n_parameters, pc)


def split_sync(sync_s: float, spec: RunSpec, n_parameters: int, workers: int) -> tuple[float | None, float]:
    """A measured exchange of a run as (bytes/s of the master's link, fixed s): what is over the usual is the link's.

    Of few bytes it is not: then all is fixed, and nothing is known of the link.
    """
    fixed_s, moved = default_fixed_s(n_parameters, workers), round_bytes(spec, n_parameters, workers)
    if sync_s <= fixed_s or moved < LINK_BYTES_MIN:
        return None, sync_s
    return moved / (sync_s - fixed_s), fixed_s


def _up(spec: RunSpec, n_parameters: int) -> int:
    return encoded_bytes(spec.encoding, n_parameters)


def _down(spec: RunSpec, n_parameters: int) -> int:
    return encoded_bytes(down_encoding(spec.encoding), n_parameters)


def _link_s(moved: float, bytes_per_s: float | None) -> float:
    return 0.0 if bytes_per_s is None else moved / bytes_per_s


def _overlaps(spec: RunSpec, compute_s: float, sync_s: float) -> bool:
    if spec.balance == "units":  # carries nothing from round to round
        return False
    return is_worth_hiding(sync_s, compute_s) if spec.rounds_in_flight == "auto" else spec.rounds_in_flight > 1


def _units_s(spec: RunSpec, pcs: Sequence[Pc]) -> float:
    """When the last unit is done, each taken by whoever is free first."""
    each_s = [spec.k_steps * spec.batch / pc.samples_per_s for pc in pcs]
    free = [(0.0, one) for one in sorted(each_s)]  # (free at, seconds a unit); sorted, so it is a heap
    last_s = 0.0
    for _ in range(spec.units):
        at, one = free[0]
        heapq.heapreplace(free, (at + one, one))
        last_s = max(last_s, at + one)
    return last_s
