"""Every number that both ends of the wire must agree on: ports, sizes, timings and ZeroMQ options.

Reasons and measurements are in shared/research/zeromq.md section 1; the option tables are data so that this floor needs
no ZeroMQ: a shell applies them with `setsockopt(getattr(zmq, name), value)`.
"""

APP_VERSION = "0.1.0"  # of this MAHE; pyproject.toml says the same
PROTOCOL_VERSION = 1

PORT_WORKERS = 47820  # TCP, the one port that other PCs must reach
PORT_BEACON = 47821  # UDP, announce-only
PORT_CONTROL = 47822  # TCP, console to master, never published
PORT_CONSOLE = 47830  # HTTP, loopback

KIB = 1024
MIB = 1024 * KIB

HEADER_BYTES_MAX = 64 * KIB
SENTENCE_MAX = 1000  # characters
ENDPOINTS_MAX = 16
ENDPOINT_BYTES_MAX = 255  # its length is one byte of a join string
CHUNK_BYTES_MAX = MIB
CHUNK_BYTES = 256 * KIB  # until the link is measured: 0.25 s at 8 Mbit/s
WINDOW_CHUNKS = 4
FRAME_BYTES_MAX = CHUNK_BYTES_MAX + 64 * KIB
PARAMETERS_MAX = 100_000_000
WORKERS_MAX = 1000
UNITS_MAX = 1000  # in a round
UPLOADS_STAGED_MAX = 4
DOWNLOADS_SERVED_MAX = 16
RANGES_MAX = 256  # ranges of one shard in one TASK
PAGE_ITEMS = 50  # of a list, unless more or fewer are asked for
PAGE_ITEMS_MAX = 500

HEARTBEAT_MS = 2_000
SUSPECT_MS = 6_000
LOST_MS = 15_000
UPLOAD_STALL_MS = 5_000  # an upload below UPLOAD_STALL_BYTES in this time gives its place away
UPLOAD_STALL_BYTES = 64 * KIB
UPLOAD_DEAD_MS = 120_000  # an upload that has a place and sends nothing for so long is given up

CURVE_DOMAIN_WORKERS = "mahe-worker"
CURVE_DOMAIN_CONSOLE = "mahe-console"

SOCKET_OPTIONS: dict[str, int] = {
    "LINGER": 0,
    "SNDHWM": 1000,  # never the brake: credits are
    "RCVHWM": 1000,
    "MAXMSGSIZE": FRAME_BYTES_MAX,
    "HEARTBEAT_IVL": 5_000,
    "HEARTBEAT_TIMEOUT": 15_000,
    "HEARTBEAT_TTL": 20_000,
    "HANDSHAKE_IVL": 2_000,
    "TCP_KEEPALIVE": 1,
    "TCP_KEEPALIVE_IDLE": 30,
    "TCP_KEEPALIVE_INTVL": 10,
    "TCP_KEEPALIVE_CNT": 3,
}
ROUTER_OPTIONS: dict[str, int] = SOCKET_OPTIONS | {"ROUTER_MANDATORY": 1, "ROUTER_HANDOVER": 1}
DEALER_OPTIONS: dict[str, int] = SOCKET_OPTIONS | {"IMMEDIATE": 1, "CONNECT_TIMEOUT": 5_000, "RECONNECT_IVL_MAX": 0}
RECONNECT_IVL_RANGE_MS = (500, 2_000)  # drawn once per process: RECONNECT_IVL_MAX switches ZeroMQ's own jitter off
LIBZMQ_MIN = (4, 3, 4)
