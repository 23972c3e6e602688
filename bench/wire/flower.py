"""Rounds of Flower without training, in its fastest mode: legacy gRPC, `start_server` and `start_client`.

In each round the server sends N float32 to each client, each sends N back, FedAvg makes the mean; nothing is written.
`python -m bench.wire.flower ROLE ...` is how the processes are started; `measure` starts them.
"""

import importlib.util
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bench.wire.cluster import WARM, Rounds
from services.tests.system.cluster import free_port

GIVE_UP_S = 900
ROOT = Path(__file__).parents[2]
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "GRPC_VERBOSITY": "ERROR",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def available() -> bool:
    """Whether it is installed."""
    return importlib.util.find_spec("flwr") is not None


def measure(workers: int, n: int, rounds: int, folder: Path) -> Rounds:
    """Seconds of each round, from the start of one to the start of the next."""
    out, port = folder / "flower.json", free_port()
    command = [sys.executable, "-m", "bench.wire.flower"]
    env = {**os.environ, **QUIET, "PYTHONPATH": str(ROOT)}
    given = [str(n), str(workers), str(rounds + WARM + 1), str(port), str(out)]
    with (folder / "flower.log").open("w") as log:
        server = subprocess.Popen([*command, "server", *given], env=env, stdout=log, stderr=log)
        clients = [
            subprocess.Popen([*command, "client", *given], env=env, stdout=log, stderr=log) for _ in range(workers)
        ]
        try:
            server.wait(GIVE_UP_S)
        finally:
            for process in (server, *clients):
                process.kill()
                process.wait()
    assert out.exists(), f"Flower did not come to an end: {(folder / 'flower.log').read_text()[-2000:]}"
    starts = json.loads(out.read_text())
    return Rounds([after - before for before, after in itertools.pairwise(starts)][WARM:])


def server(n: int, workers: int, rounds: int, port: int, out: Path) -> None:
    """Write when each round began."""
    # ruff: noqa: PLC0415 - only where it is installed, and in its own process
    from flwr.common import ndarrays_to_parameters
    from flwr.server import ServerConfig, start_server
    from flwr.server.strategy import FedAvg

    strategy = FedAvg(
        fraction_evaluate=0.0,
        min_fit_clients=workers,
        min_available_clients=workers,
        initial_parameters=ndarrays_to_parameters([np.zeros(n, np.float32)]),
    )
    starts, configure = [], strategy.configure_fit

    def configure_timed(server_round, parameters, client_manager):  # type: ignore[no-untyped-def]
        starts.append(time.perf_counter())
        return configure(server_round, parameters, client_manager)

    strategy.configure_fit = configure_timed
    start_server(server_address=f"127.0.0.1:{port}", config=ServerConfig(num_rounds=rounds), strategy=strategy)
    out.write_text(json.dumps(starts))


def client(n: int, port: int) -> None:
    """Always the same vector."""
    from flwr.client import NumPyClient, start_client

    answer = np.full(n, 1e-3, np.float32)
    one = NumPyClient()
    one.fit = lambda parameters, config: ([answer], 1, {})
    start_client(server_address=f"127.0.0.1:{port}", client=one.to_client(), insecure=True)


if __name__ == "__main__":
    role, size, count, total, at, path = sys.argv[1:]
    if role == "server":
        server(int(size), int(count), int(total), int(at), Path(path))
    else:
        client(int(size), int(at))
