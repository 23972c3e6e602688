"""Whole exchanges over slow links: bytes and time of each encoding against what the link allows, and hivemind's."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.targets import FEWER_BYTES, INT4_EXCHANGE_S, OF_LINK_LIMIT
from bench.wire import phases
from bench.wire.cluster import Cluster, Rounds, model_of, parameters_of
from bench.wire.links import Links, Rate
from services.common.protocol.encodings import Encoding, down_encoding, encoded_bytes

WORKERS = 2
MEMORY = "/dev/shm"  # noqa: S108 - a file system in memory is what is wanted
WARM = 2  # of hivemind's steps: at first the two look for each other
ROOT = Path(__file__).parents[2]
AVERAGER = Path(__file__).parent / "averager.py"
AVERAGER_PYTHON = ROOT / "build" / "bench-wire-hivemind-venv" / "bin" / "python"
START_S, GIVE_UP_S = 60.0, 300.0
Row = dict[str, Any]


def measure(links: Links, encodings: Sequence[Encoding], n: int, rounds: int, *, profile: bool) -> Iterator[Row]:
    """A row for each encoding; `links` has two workers."""
    rtt_s = links.rtt_ms() / 1000
    for encoding in encodings:
        with tempfile.TemporaryDirectory(dir=MEMORY, prefix="mahe-wire-") as home:
            with Cluster(Path(home), WORKERS, links, profile=profile) as cluster:
                found = cluster.run(encoding, n, rounds, lambda: [links.bytes_of(one) for one in range(WORKERS + 1)])
            row = _row(links, encoding, parameters_of(model_of(n)), found, rtt_s)
            if profile:
                row["phases"] = phases.describe(Path(home))
        yield row


def _row(links: Links, encoding: Encoding, n: int, found: Rounds, rtt_s: float) -> Row:
    up, down = encoded_bytes(encoding, n), encoded_bytes(down_encoding(encoding), n)
    wire = [
        [(after - before) / len(found.seconds) for before, after in zip(*ends, strict=True)]
        for ends in zip(found.first, found.last, strict=True)
    ]
    limit_s = links.rate.seconds(WORKERS * up) + links.rate.seconds(WORKERS * down) + rtt_s
    return {
        "encoding": encoding,
        "n": n,
        "payload_up": up,
        "payload_down": down,
        "wire_up": round(sum(sent for sent, _ in wire[1:]) / WORKERS),
        "wire_down": round(sum(received for _, received in wire[1:]) / WORKERS),
        "exchange_s": round(found.median_s, 4),
        "exchange_mean_s": round(found.mean_s, 4),
        "limit_s": round(limit_s, 4),
        "of_limit": round(found.median_s / limit_s, 3),
        "rounds_s": found.seconds,
    }


def targets(rows: list[Row], rate: Rate) -> Iterator[tuple[str, bool]]:
    """(sentence, met) of each target."""
    of = {row["encoding"]: row for row in rows}
    for encoding, times in FEWER_BYTES.items():
        if encoding in of and "fp32" in of:
            for way in ("up", "down"):
                for what in ("payload", "wire"):
                    ratio = of["fp32"][f"{what}_{way}"] / of[encoding][f"{what}_{way}"]
                    text = f"{encoding} {way}, {what}: {ratio:.2f}x fewer bytes than fp32, at least {times}"
                    yield text, ratio >= times
    if "int4" in of and rate == Rate():
        took = of["int4"]["exchange_s"]
        yield f"int4 exchange {took:.3f} s, at most {INT4_EXCHANGE_S}", took <= INT4_EXCHANGE_S
    for row in rows:
        text = f"{row['encoding']} exchange {row['of_limit']:.2f}x the link's limit, at most {OF_LINK_LIMIT}"
        yield text, row["of_limit"] <= OF_LINK_LIMIT


def table(rows: list[Row]) -> Iterator[str]:
    """For people."""
    yield "encoding     payload kB up/down      on the wire kB up/down   exchange s   limit s   of limit"
    for row in rows:
        yield (
            f"{row['encoding']:9}{row['payload_up'] / 1e3:11.1f} /{row['payload_down'] / 1e3:9.1f}"
            f"{row['wire_up'] / 1e3:15.1f} /{row['wire_down'] / 1e3:9.1f}{row['exchange_s']:13.3f}"
            f"{row['limit_s']:10.3f}{row['of_limit']:11.2f}"
        )


def hivemind(links: Links, n: int, rounds: int) -> Iterator[Row]:
    """Two PCs with hivemind in the workers' places; nothing when it is not installed."""
    if not AVERAGER_PYTHON.exists():
        return
    for compression in ("fp32", "8 bit"):
        with tempfile.TemporaryDirectory(dir=MEMORY, prefix="mahe-wire-") as folder:
            steps = _average(links, compression, n, rounds + WARM, Path(folder))[WARM:]
        whole = [one["seconds"] for one in steps if one["whole"]]
        found = Rounds(whole)
        yield {
            "compression": compression,
            "n": n,
            "steps": len(steps),
            "whole": len(whole),
            "step_s": round(found.median_s, 4) if whole else None,
            "rounds_s": [round(one, 4) for one in whole],
        }


def hivemind_table(rows: list[Row]) -> Iterator[str]:
    """For people."""
    for row in rows:
        took = f"{row['step_s']:.3f} s" if row["step_s"] is not None else "-"
        whole = f"{row['whole']} of {row['steps']} steps whole"
        yield f"hivemind, two PCs, no third: {row['compression']:6} {took}, {whole}"


def _average(links: Links, compression: str, n: int, rounds: int, folder: Path) -> list[dict[str, float]]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    env.pop("PYTHONPATH", None)
    places, out, log_path = folder / "places", folder / "steps.json", folder / "log"
    started: list[subprocess.Popen[bytes]] = []
    with log_path.open("w") as log:
        try:
            for number in (1, 2):
                to = out if number == 1 else folder / "other.json"
                words = [str(number), links.address(number), str(places), compression, str(n), str(rounds), str(to)]
                command = [str(AVERAGER_PYTHON), str(AVERAGER), *words]
                with links.inside(number):
                    started.append(subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True))
                deadline = time.monotonic() + START_S
                while not places.exists() and time.monotonic() < deadline:
                    time.sleep(0.1)
            deadline = time.monotonic() + GIVE_UP_S
            while not out.exists() and started[0].poll() is None and time.monotonic() < deadline:
                time.sleep(0.2)
            time.sleep(0.5)
        finally:
            for process in started:
                _kill_session(process)
    assert out.exists(), f"hivemind did not come to an end: {log_path.read_text()[-2000:]}"
    rows: list[dict[str, float]] = json.loads(out.read_text())
    return rows


def _kill_session(process: "subprocess.Popen[bytes]") -> None:
    """It and what it has started, which has process groups of its own."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            session = int(path.read_text().rpartition(")")[2].split()[3])
            if session == process.pid:
                os.kill(int(path.parent.name), 9)
        except (OSError, ValueError):
            continue
    process.wait()
