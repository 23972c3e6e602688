"""What goes wrong, drawn from the seed: fault after fault, each for a while, on the network, the PCs, the disk."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from services.common.protocol import control
from services.tests.simulation.disk import USUAL_MS
from services.tests.simulation.network import Trouble

if TYPE_CHECKING:
    from services.tests.simulation.cluster import Cluster

Fault = Callable[["Cluster"], None]
DAY_MS = 86_400_000
JUMP_DAYS = 30
CALLS_MAX = 12  # that order what reaches the disk: those of two rounds


def _worker_for(cluster: "Cluster") -> str:
    return cluster.world.chance.choice(sorted(cluster.slots))


def _lasts(cluster: "Cluster", low_s: float = 1, high_s: float = 40) -> float:
    return cluster.world.chance.uniform(low_s, high_s) * 1000


def _trouble(**values: object) -> Fault:
    """For a while, on one worker's wire."""

    def fault(cluster: "Cluster") -> None:
        trouble = cluster.troubles[_worker_for(cluster)]
        for name, value in values.items():
            setattr(trouble, name, value)
        cluster.world.after(_lasts(cluster), partial(_heal, trouble, tuple(values)))

    return fault


def _heal(trouble: Trouble, names: tuple[str, ...]) -> None:
    for name in names:
        setattr(trouble, name, getattr(Trouble(), name))


def swizzle_clog(cluster: "Cluster") -> None:
    """Links stop one by one and go again in another order (FoundationDB)."""
    names = sorted(cluster.slots)
    cluster.world.chance.shuffle(names)
    names = names[: max(1, len(names) // 2)]
    for order, name in enumerate(names):
        cluster.world.after(order * 1_000, partial(_block, cluster.troubles[name], True))
    cluster.world.chance.shuffle(names)
    start_ms = len(names) * 1_000 + _lasts(cluster)
    for order, name in enumerate(names):
        cluster.world.after(start_ms + order * 500, partial(_block, cluster.troubles[name], False))


def _block(trouble: Trouble, blocked: bool) -> None:
    trouble.up_blocked = trouble.down_blocked = blocked


def break_wire(cluster: "Cluster") -> None:
    """A reset connection."""
    wires = cluster.network.wires
    if wires:
        cluster.network.break_wire(wires[cluster.world.chance.choice(sorted(wires))])


def crash_worker(cluster: "Cluster") -> None:
    """kill -9, and a restart on the same slot."""
    name = _worker_for(cluster)
    cluster.crash_worker(name)
    cluster.world.after(_lasts(cluster), lambda: cluster.start_worker(name))


def crash_three(cluster: "Cluster") -> None:
    """A batch at one time: one after the other is not stressful enough (Ray)."""
    for _ in range(3):
        crash_worker(cluster)


def kill_trainer(cluster: "Cluster") -> None:
    """Only the trainer dies."""
    worker = cluster.workers.get(_worker_for(cluster))
    if worker is not None:
        worker.kill_trainer()


def freeze_trainer(cluster: "Cluster") -> None:
    """SIGSTOP of the trainer, up to longer than any deadline."""
    pace = cluster.paces[_worker_for(cluster)]
    pace.frozen = True
    cluster.world.after(_lasts(cluster, 1, 300), lambda: setattr(pace, "frozen", False))


def sleep_worker(cluster: "Cluster") -> None:
    """A suspended PC."""
    name = _worker_for(cluster)
    cluster.paces[name].asleep = True

    def wake() -> None:
        cluster.paces[name].asleep = False
        if name in cluster.workers:
            cluster.workers[name].wake()

    cluster.world.after(_lasts(cluster, 1, 120), wake)


def slow_worker(cluster: "Cluster") -> None:
    """A PC that does something else, too."""
    pace = cluster.paces[_worker_for(cluster)]
    pace.slowness = cluster.world.chance.choice([0.05, 0.3, 3.0])  # it does not add up: 0.1 samples/s trains nothing
    cluster.world.after(_lasts(cluster, 5, 120), lambda: setattr(pace, "slowness", 1.0))


def bad_deltas(cluster: "Cluster") -> None:
    """A PC whose numbers are not finite, or that lies."""
    pace = cluster.paces[_worker_for(cluster)]
    which = cluster.world.chance.choice(["nan", "lie"])
    setattr(pace, which, 0.5)
    cluster.world.after(_lasts(cluster), lambda: setattr(pace, which, 0.0))


def full_slot(cluster: "Cluster") -> None:
    """A worker's disk is full."""
    slot = cluster.slots[_worker_for(cluster)]
    slot.full = True
    cluster.world.after(_lasts(cluster, 5, 120), lambda: setattr(slot, "full", False))


def lose_residual(cluster: "Cluster") -> None:
    """What a worker's encoding had left over is gone or damaged."""
    slot = cluster.slots[_worker_for(cluster)]
    slot.residual = cluster.world.chance.choice([b"", slot.residual[:-1], bytes(len(slot.residual))])


def lose_anchor(cluster: "Cluster") -> None:
    """A bit of a worker's anchor flips on its disk, or the file is gone."""
    slot = cluster.slots[_worker_for(cluster)]
    if slot.anchor and cluster.world.chance.random() < 0.7:
        slot.anchor[cluster.world.chance.randrange(len(slot.anchor))] ^= 1 << cluster.world.chance.randrange(8)
    else:
        slot.anchor = bytearray()


def lose_update(cluster: "Cluster") -> None:
    """A byte of an update flips on a worker's disk, or the master forgets its log."""
    slot = cluster.slots[_worker_for(cluster)]
    if slot.updates and cluster.world.chance.random() < 0.7:
        raw = slot.updates[cluster.world.chance.choice(sorted(slot.updates))]
        raw[cluster.world.chance.randrange(len(raw))] ^= 1 << cluster.world.chance.randrange(8)
    elif cluster.master is not None:
        cluster.master.reactor.effects.downloads.forget_updates()


def clone(cluster: "Cluster") -> None:
    """A copy of a worker's slot is started elsewhere: two agents with one key."""
    name = _worker_for(cluster)
    cluster.start_clone(name)
    cluster.world.after(_lasts(cluster), lambda: cluster.stop_clone(name))


def crash_master(cluster: "Cluster") -> None:
    """kill -9, and a restart on the same folder."""
    cluster.crash_master()
    cluster.world.after(_lasts(cluster, 0.1, 30), cluster.start_master)


def cut_power(cluster: "Cluster") -> None:
    """The master's PC loses its power, at once or in the middle of a write, and with it what was not synced."""
    if cluster.world.chance.random() < 0.25:
        cluster.cut_power()
    else:
        cluster.disk.cut_before(cluster.world.chance.randint(1, CALLS_MAX))


def jump_clock(cluster: "Cluster") -> None:
    """Somebody, or a time service, sets the wall clock of all PCs; nothing may depend on it."""
    cluster.world.jumped_ms += cluster.world.chance.randint(-JUMP_DAYS * DAY_MS, JUMP_DAYS * DAY_MS)


def sleep_master(cluster: "Cluster") -> None:
    """A suspended PC, or a loop that stands still."""
    master = cluster.master
    if master is None:
        return
    master.asleep = True
    cluster.world.after(_lasts(cluster, 1, 60), lambda: setattr(master, "asleep", False))


def full_disk(cluster: "Cluster") -> None:
    """The master's disk is full."""
    cluster.disk.full = True
    cluster.world.after(_lasts(cluster, 1, 30), lambda: setattr(cluster.disk, "full", False))


def slow_disk(cluster: "Cluster") -> None:
    """The master's disk is very slow."""
    cluster.disk.slow_ms = 3_000
    cluster.world.after(_lasts(cluster), lambda: setattr(cluster.disk, "slow_ms", USUAL_MS))


def slow_evaluator(cluster: "Cluster") -> None:
    """The evaluator is slow and dies at times."""
    master = cluster.master
    if master is None:
        return
    master.evaluation_ms, master.evaluator_deaths = 20_000, 0.3
    cluster.world.after(_lasts(cluster), lambda: cluster.heal_evaluator())  # noqa: PLW0108 - another master by then


def pause_run(cluster: "Cluster") -> None:
    """The operator pauses, and goes on a little later."""
    if cluster.ask(lambda run: control.PauseRun(run=run)):
        cluster.world.after(_lasts(cluster, 1, 20), cluster.resume)


def stop_run(cluster: "Cluster") -> None:
    """The operator stops; another run is started by the cluster's keeper."""
    cluster.ask(lambda run: control.StopRun(run=run))


FAULTS: tuple[tuple[int, Fault], ...] = (
    (8, _trouble(drop=0.2)),
    (4, _trouble(duplicate=0.3)),
    (4, _trouble(delay_ms=3_000)),
    (4, _trouble(reorder=0.3)),
    (3, _trouble(corrupt=0.3)),
    (3, _trouble(up_blocked=True)),
    (3, _trouble(down_blocked=True)),
    (3, _trouble(up_blocked=True, down_blocked=True)),
    (2, swizzle_clog),
    (5, break_wire),
    (10, crash_worker),
    (2, crash_three),
    (5, kill_trainer),
    (5, freeze_trainer),
    (5, sleep_worker),
    (5, slow_worker),
    (5, bad_deltas),
    (3, full_slot),
    (3, lose_residual),
    (3, lose_anchor),
    (3, lose_update),
    (2, clone),
    (8, crash_master),
    (4, cut_power),
    (2, jump_clock),
    (3, sleep_master),
    (3, full_disk),
    (3, slow_disk),
    (3, slow_evaluator),
    (2, pause_run),
    (1, stop_run),
)
