"""What ZeroMQ alone needs for a round's chunks: ROUTER and DEALERs under CURVE, each in a process of its own.

Every worker sends its chunks, then each gets as many back, and so on; no credits, no sums, no files.
`python -m bench.wire.bare ROLE ...` is how the processes are started; `measure` starts them.
"""

import itertools
import json
import os
import secrets
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import zmq

from bench.wire.cluster import WARM, Rounds
from services.common.protocol.limits import CHUNK_BYTES
from services.tests.system.cluster import free_port

HEADER = b'{"t":"DELTA_CHUNK","term":1,"ref":{"run":"r","round":1,"base_version":0,"shard":0,"lease":"l"},"crc32":1}'
GIVE_UP_S = 300
ROOT = Path(__file__).parents[2]
Socket = "zmq.Socket[bytes]"


@dataclass(frozen=True)
class Plan:
    """What is exchanged. Keys are Z85; `up` and `down` are bytes of one worker in a round."""

    workers: int
    up: int
    down: int
    rounds: int
    endpoint: str
    public: str
    secret: str


def measure(workers: int, up: int, down: int, rounds: int) -> Rounds:
    """Median and mean of a round."""
    public, secret = (key.decode() for key in zmq.curve_keypair())
    plan = Plan(workers, up, down, rounds + WARM, f"tcp://127.0.0.1:{free_port()}", public, secret)
    words = json.dumps(asdict(plan))
    command = [sys.executable, "-m", "bench.wire.bare"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    others = [subprocess.Popen([*command, "worker", words], env=env) for _ in range(workers)]
    try:
        done = subprocess.run(
            [*command, "master", words], env=env, stdout=subprocess.PIPE, text=True, check=True, timeout=GIVE_UP_S
        )
    finally:
        for process in others:
            process.kill()
            process.wait()
    return Rounds(json.loads(done.stdout)[WARM:])


def master(plan: Plan) -> list[float]:
    """Seconds of each round: all chunks up, then all down."""
    socket = zmq.Context(io_threads=2).socket(zmq.ROUTER)
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.curve_server = True
    socket.curve_publickey, socket.curve_secretkey = plan.public.encode(), plan.secret.encode()
    socket.bind(plan.endpoint)
    routes: set[bytes] = set()
    while len(routes) < plan.workers:
        routes.add(socket.recv_multipart()[0])
    update, ends = secrets.token_bytes(plan.down), []
    for _ in range(plan.rounds + 1):
        for route in routes:
            _send(socket, update, [route])
        for _ in range(plan.workers * -(-plan.up // CHUNK_BYTES)):
            socket.recv_multipart(copy=False)
        ends.append(time.perf_counter())
    return [after - before for before, after in itertools.pairwise(ends)]


def worker(plan: Plan) -> None:
    """Until it is killed."""
    socket = zmq.Context().socket(zmq.DEALER)
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.ROUTING_ID, b"\x01" + secrets.token_bytes(15))
    socket.curve_publickey, socket.curve_secretkey = zmq.curve_keypair()
    socket.curve_serverkey = plan.public.encode()
    socket.connect(plan.endpoint)
    socket.send(b"here")
    delta = secrets.token_bytes(plan.up)
    while True:
        for _ in range(-(-plan.down // CHUNK_BYTES)):
            socket.recv_multipart(copy=False)
        _send(socket, delta, [])


def _send(socket: "zmq.Socket[bytes]", whole: bytes, front: list[bytes]) -> None:
    view = memoryview(whole)
    for start in range(0, len(view), CHUNK_BYTES):
        socket.send_multipart([*front, HEADER, view[start : start + CHUNK_BYTES]], copy=False)


if __name__ == "__main__":
    given = Plan(**json.loads(sys.argv[2]))
    if sys.argv[1] == "master":
        print(json.dumps(master(given)))
    else:
        worker(given)
