"""PyTorch's DistributedDataParallel over gloo on the same links, which exchanges gradients at every step; and MAHE.

`python -m bench.speed.ddp` is one of its processes, `measure` starts them. torch is imported only there.
"""

import importlib.util
import itertools
import os
import signal
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

from bench.speed import mnist, trial
from bench.speed.arms import COMMON, HIDDEN, Arm, Setting, name_of
from bench.speed.figures import samples_per_s
from bench.targets import SAMPLES_OF_DDP
from bench.wire.links import DEVICE, Links

Row = dict[str, Any]
PROCESSES = 2
PORT = 29555
WARM = 3
STEPS, STEPS_QUICK = 20, 3
LIMIT_S = 600.0


def available() -> bool:
    """Whether torch is installed."""
    return importlib.util.find_spec("torch") is not None


def measure(net: Links, arms: Sequence[Arm], setting: Setting) -> Iterator[Row]:
    """DDP, then each arm of MAHE with as many workers."""
    steps = STEPS_QUICK if setting.quick else STEPS
    jobs = [{"rank": rank, "address": net.address(1), "steps": steps} for rank in range(PROCESSES)]
    trial.say(f"  DDP over gloo, {PROCESSES} processes, {WARM} + {steps} steps")
    took = trial.beside("bench.speed.ddp", jobs, setting.cores, net, LIMIT_S)
    theirs = PROCESSES * COMMON["batch"] / statistics.median(took)
    row = {"link": vars(net.rate), "workers": PROCESSES}
    yield {**row, "who": "DDP", "samples_per_s": round(theirs, 1), "steps_s": took}
    for arm in arms:
        with trial.trial(net, [setting.cores] * PROCESSES) as one:
            ours = samples_per_s(one.counted(arm, setting.rounds))
        ratio = round(ours / theirs, 1)
        yield {**row, "who": "MAHE", "arm": arm, "samples_per_s": round(ours, 1), "of_ddp": ratio}


def line(row: Row) -> str:
    """For people."""
    if row["who"] == "DDP":
        return f"  DDP: {row['samples_per_s']:,.0f} samples/s"
    return f"  MAHE, {name_of(row['arm'])}: {row['samples_per_s']:,.0f} samples/s, {row['of_ddp']:.1f}x DDP"


def targets(rows: list[Row]) -> Iterator[tuple[str, bool]]:
    """(sentence, met) of each target."""
    for row in rows:
        if row["who"] == "MAHE":
            what = f"{row['link']['mbit']:g} Mbit/s, {name_of(row['arm'])}, {row['workers']} workers"
            yield f"{what}: {row['of_ddp']:.1f}x DDP, at least {SAMPLES_OF_DDP:g}", row["of_ddp"] >= SAMPLES_OF_DDP


def train(told: dict[str, Any]) -> list[float]:
    """Seconds of each counted step of this process."""
    # ruff: noqa: PLC0415 - only where it is installed, and in its own process
    import torch
    from torch import distributed, nn

    os.environ.update(GLOO_SOCKET_IFNAME=DEVICE, MASTER_ADDR=told["address"], MASTER_PORT=str(PORT))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    distributed.init_process_group("gloo", rank=told["rank"], world_size=PROCESSES)
    layers: list[Any] = []
    for inputs, outputs in itertools.pairwise([mnist.INPUTS, *HIDDEN]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers, nn.Linear(HIDDEN[-1], mnist.CLASSES)))
    optimizer = torch.optim.SGD(model.parameters(), lr=COMMON["inner"]["lr"])
    own = slice(told["rank"], None, PROCESSES)
    images, labels = (torch.from_numpy(array[own]).split(COMMON["batch"]) for array in mnist.examples(0, mnist.N))
    took = []
    for x, y in list(zip(images, labels, strict=True))[: WARM + told["steps"]]:
        began = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        took.append(round(time.perf_counter() - began, 4))
    return took[WARM:]


if __name__ == "__main__":
    own_job = trial.job()
    trial.answer(own_job, train(own_job))
    signal.pause()
