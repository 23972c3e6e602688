"""Rounds without training on loopback: MAHE beside Flower and bare ZeroMQ, and what the master's memory does."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.targets import FASTER_THAN_FLOWER, MODELS_FOR_TWICE_THE_WORKERS, OF_BARE_ZEROMQ
from bench.wire import bare, flower, phases
from bench.wire.cluster import Cluster, model_of, parameters_of
from bench.wire.exchange import MEMORY, ROOT, Row
from services.common.protocol.encodings import Encoding, down_encoding, encoded_bytes

ENCODINGS: tuple[Encoding, ...] = ("fp32", "int8")
ROUNDS = {10**5: 60, 10**6: 30, 10**7: 8}
MEMORY_WORKERS, MEMORY_N = (2, 4, 8, 16), 10**6  # four deltas may be staged: from then on it must not grow
DISK = ROOT / "build" / "bench-wire-disk"


def measure(sizes: Sequence[int], workers: Sequence[int], times: float, *, profile: bool) -> Iterator[Row]:
    """A row for each size, number of workers and encoding. `times`: so many times the usual number of rounds."""
    for size in sizes:
        rounds = max(3, round(times * next(count for limit, count in ROUNDS.items() if size <= 2 * limit)))
        n = parameters_of(model_of(size))
        for count in workers:
            with tempfile.TemporaryDirectory(dir=MEMORY, prefix="mahe-wire-") as folder:
                flower_s = flower.measure(count, n, rounds, Path(folder)).median_s if flower.available() else None
            for encoding in ENCODINGS:
                up, down = encoded_bytes(encoding, n), encoded_bytes(down_encoding(encoding), n)
                row = {
                    "n": n,
                    "workers": count,
                    "encoding": encoding,
                    "rounds": rounds,
                    "bare_s": round(bare.measure(count, up, down, rounds).median_s, 5),
                    "flower_s": None if flower_s is None else round(flower_s, 5),
                    **_ours(encoding, size, count, rounds, profile=profile),
                }
                row["of_bare"] = round(row["mahe_s"] / row["bare_s"], 2)
                row["faster_than_flower"] = None if flower_s is None else round(flower_s / row["mahe_s"], 2)
                yield row


def _ours(encoding: Encoding, size: int, workers: int, rounds: int, *, profile: bool) -> Row:
    """In memory, then with the master's folder on the disk."""
    row: Row = {}
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="mahe-wire-") as home:
        with Cluster(Path(home), workers, profile=profile) as cluster:
            found = cluster.run(encoding, size, rounds)
        row["mahe_s"], row["mahe_mean_s"] = round(found.median_s, 5), round(found.mean_s, 5)
        row["cpu_ms"] = found.cpu_ms
        if profile:
            row["phases"] = phases.describe(Path(home))
    DISK.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=MEMORY, prefix="mahe-wire-") as home,
        tempfile.TemporaryDirectory(dir=DISK) as disk,
        Cluster(Path(home), workers, master=Path(disk) / "master") as cluster,
    ):
        row["mahe_disk_s"] = round(cluster.run(encoding, size, rounds).median_s, 5)
    return row


def memory(times: float) -> Iterator[Row]:
    """The master's memory by the number of workers, in MiB: before the run, at its peak, after it."""
    rounds = max(3, round(times * ROUNDS[MEMORY_N]))
    for workers in MEMORY_WORKERS:
        with (
            tempfile.TemporaryDirectory(dir=MEMORY, prefix="mahe-wire-") as home,
            Cluster(Path(home), workers) as cluster,
        ):
            before = _memory_mib(cluster.pids["master"])
            cluster.run("fp32", MEMORY_N, rounds)
            after = _memory_mib(cluster.pids["master"])
        yield {
            "workers": workers,
            "model_mib": round(4 * parameters_of(model_of(MEMORY_N)) / 2**20, 1),
            "joined_mib": before["VmRSS"],
            "peak_mib": after["VmHWM"],
            "after_mib": after["VmRSS"],
            "growth_mib": round(after["VmHWM"] - before["VmRSS"], 1),
        }


def _memory_mib(pid: int) -> dict[str, float]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    words = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith(("VmHWM", "VmRSS"))}
    return {name: round(int(kib) / 1024, 1) for name, kib in words.items()}


def targets(rows: list[Row], grown: list[Row]) -> Iterator[tuple[str, bool]]:
    """(sentence, met) of each target."""
    for row in rows:
        what = f"{row['n']:,} {row['encoding']}, {row['workers']} workers"
        if row["encoding"] == "fp32" and row["faster_than_flower"] is not None:
            ratio = row["faster_than_flower"]
            yield (
                f"{what}: {ratio:.2f}x as fast as Flower, at least {FASTER_THAN_FLOWER:g}",
                ratio >= FASTER_THAN_FLOWER,
            )
        yield f"{what}: {row['of_bare']:.2f}x bare ZeroMQ, at most {OF_BARE_ZEROMQ}", row["of_bare"] <= OF_BARE_ZEROMQ
    if grown:
        first, last = grown[-2:]
        more = last["growth_mib"] - first["growth_mib"]
        text = f"{last['workers']} workers cost the master {more:.1f} MiB more than {first['workers']}"
        yield f"{text}, a model is {first['model_mib']} MiB", more <= MODELS_FOR_TWICE_THE_WORKERS * first["model_mib"]


def table(rows: list[Row]) -> Iterator[str]:
    """For people."""
    yield "parameters   workers encoding   MAHE ms   on disk   bare ZeroMQ   Flower   of bare   faster than Flower"
    for row in rows:
        yield (
            f"{row['n']:10,}{row['workers']:10} {row['encoding']:8}{_ms(row['mahe_s'])}{_ms(row['mahe_disk_s'])}"
            f"{_ms(row['bare_s']):>14}{_ms(row['flower_s'])}{row['of_bare']:10.2f}"
            f"{row['faster_than_flower'] or 0:15.2f}"
        )


def cpu_line(row: Row) -> str:
    """For people: processor time of a round, which needs no quiet PC."""
    parts = ", ".join(f"{kind} {used:.1f}" for kind, used in row["cpu_ms"].items())
    return f"  processor ms a round, all workers together: {parts}"


def memory_table(grown: list[Row]) -> Iterator[str]:
    """For people."""
    yield "workers   master MiB: joined   peak   after   growth"
    for row in grown:
        yield (
            f"{row['workers']:7}{row['joined_mib']:21.1f}{row['peak_mib']:7.1f}{row['after_mib']:8.1f}"
            f"{row['growth_mib']:9.1f}"
        )


def _ms(seconds: Any) -> str:
    return f"{'-':>10}" if seconds is None else f"{seconds * 1000:10.1f}"
