"""One of two PCs that average a vector by hivemind: `python averager.py`, in hivemind's environment, apart from MAHE.

Of each step it notes how long it took and whether the result was whole: hivemind's `step` also succeeds when the other
PC's part is missing. With NumPy 2.4 or newer it always is for 8 bit: hivemind 1.1.12 makes an int of an array there.
"""

import argparse
import json
import time
from pathlib import Path

import hivemind
import torch
from hivemind import compression
from hivemind.averaging import DecentralizedAverager

COMPRESSIONS = {"fp32": "NoCompression", "8 bit": "Uniform8BitQuantization"}
GROUP = 2
STEP_S = 40.0
ERROR_MAX = 0.2  # root mean square, in standard deviations of the values: 8 bit gives 0.03, half a result 0.5


def main() -> None:
    """Average so many times, write what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("number", type=int)
    parser.add_argument("host")
    parser.add_argument("places", type=Path, help="the first writes here where it can be found")
    parser.add_argument("compression", choices=COMPRESSIONS)
    parser.add_argument("n", type=int)
    parser.add_argument("rounds", type=int)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    known = given.places.read_text().split() if given.number > 1 else []
    dht = hivemind.DHT(initial_peers=known, start=True, host_maddrs=[f"/ip4/{given.host}/tcp/0"])
    if not known:
        draft = given.places.with_suffix(".draft")
        draft.write_text("\n".join(map(str, dht.get_visible_maddrs())))
        draft.replace(given.places)
    averager = DecentralizedAverager(
        [torch.zeros(given.n)],
        dht,
        prefix="mahe-wire",
        target_group_size=GROUP,
        min_group_size=GROUP,
        min_matchmaking_time=1.0,
        compression=getattr(compression, COMPRESSIONS[given.compression])(),
        start=True,
    )
    time.sleep(2)
    values = [torch.randn(given.n, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2)]
    rows = [step(averager, values[given.number - 1], sum(values) / GROUP) for _ in range(given.rounds)]
    given.out.write_text(json.dumps(rows))
    time.sleep(2)
    averager.shutdown()
    dht.shutdown()


def step(averager: DecentralizedAverager, own: torch.Tensor, expected: torch.Tensor) -> dict[str, float]:
    """One average of both PCs' values: its seconds and the error of what came out."""
    with averager.get_tensors() as tensors:
        tensors[0].copy_(own)
    began = time.perf_counter()
    try:
        done = averager.step(timeout=STEP_S) is not None
    except Exception as why:  # noqa: BLE001 - whatever it is, it is told and the next step tried
        print(repr(why)[:200], flush=True)
        done = False
    seconds = time.perf_counter() - began
    with averager.get_tensors() as tensors:
        error = float((tensors[0] - expected).square().mean().sqrt())
    return {"seconds": seconds, "error": error, "whole": done and error < ERROR_MAX}


if __name__ == "__main__":
    main()
