"""The lines of the performance table: what is said, where its figures come from, beside whom.

Each text that is shown has its Chinese in words.py; a test looks that none is forgotten. `{}` is where a number goes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench.report import figures as of
from bench.report.figures import Figures, Found

AS_FAST, AS_LONG, AS_SOON, FEWER_BYTES = "{}x as fast", "{}x as long", "{}x as soon", "{}x fewer bytes"
AT_LEAST, AT_MOST, MORE_THAN = "at least {}", "at most {}", "more than {}"
ALONE, GLOO, ONE = "one PC alone", "PyTorch DDP, gloo", "1 worker"
HIVEMIND_8, BARE = "Hivemind, 8 bit", "bare ZeroMQ"
EVERY_STEP_SYNC, PLAIN_MEAN = "synchronised at every step", "plain mean"
CHECKED = "a round of MAHE also encrypts, checks each delta and is over only when its checkpoint is written"
ADDED_UP = "there nothing is added up, checked or written"
MEMORY_BOUND = "both wait for memory"
OVER_SOON = "one PC ends it in seconds, and before the start the page says that no second one is needed"
SLOWED = "Rounds, from the first that feels a PC half as fast, to one that fits it"


@dataclass(frozen=True)
class Source:
    """Parts of one file of a benchmark, and the verb of make that measures them."""

    benchmark: str
    parts: tuple[str, ...]
    verb: str


@dataclass(frozen=True)
class Line:
    """One line of the table; `other` is whom MAHE is compared with, `why` is said when the target is missed."""

    what: str
    source: Source
    figures: Callable[[Found], Figures | None]
    other: str = ""
    ratio: str = "{}"
    target: str = AT_LEAST
    why: str = ""


SCALING, DDP, LOSS, UNEQUAL, ESTIMATE = (
    Source("speed", (part,), "bench-speed") for part in ("scaling", "ddp", "time-to-loss", "unequal", "estimate")
)
WIRE, HIVEMIND, OVERHEAD, MEMORY = (
    Source("wire", parts, "bench-wire") for parts in (("wire",), ("wire", "hivemind"), ("overhead",), ("memory",))
)
ENCODINGS, EVERY_STEP, POISON = (
    Source("learning", (part,), "bench-wire") for part in ("encodings", "every-step", "poison-cluster")
)
KERNELS, TRAINER = Source("kernels", ("rows",), "bench-kernels"), Source("trainer", ("rows",), "bench-trainer")


def _kernel(what: str, name: str, library: str, other: str, why: str = "") -> Line:
    return Line(what, KERNELS, partial(of.kernel, name=name, other=library), other, AS_FAST, why=why)


LINES = (
    *(
        Line(what, SCALING, partial(of.samples_per_s, mbit=100, workers=workers), ALONE, AS_FAST)
        for what, workers in (
            ("Samples/s, 1 worker, 100 Mbit/s", 1),
            ("Samples/s, 2 workers, 100 Mbit/s", 2),
            ("Samples/s, 4 workers, 100 Mbit/s", 4),
        )
    ),
    Line("Samples/s, 2 PCs, 100 Mbit/s", DDP, partial(of.against_ddp, mbit=100), GLOO, AS_FAST),
    Line("Samples/s, 2 PCs, 10 Mbit/s", DDP, partial(of.against_ddp, mbit=10), GLOO, AS_FAST),
    *(
        Line(what, LOSS, partial(of.time_to_loss, mbit=mbit), ONE, AS_SOON, MORE_THAN, OVER_SOON)
        for what, mbit in (
            ("Time to the same loss, 2 workers, 100 Mbit/s", 100),
            ("Time to the same loss, 2 workers, 10 Mbit/s", 10),
        )
    ),
    Line("Time that PCs of speed 1, 1/2, 1/4 and 1/4 spend computing", UNEQUAL, of.utilisation),
    Line("Time of their round; divided perfectly by speed it is 1", UNEQUAL, of.divided, target=AT_MOST),
    Line(SLOWED, UNEQUAL, of.recovered, target=AT_MOST),
    Line("Error of the minutes estimated before a run, lowest / highest", ESTIMATE, of.estimate, target=AT_MOST),
    Line("Bytes of a worker in a round of 1 million values, int8 / int4", WIRE, of.fewer_bytes, "fp32", FEWER_BYTES),
    Line(
        "Exchange of 1 million values, int8, 100 Mbit/s",
        HIVEMIND,
        partial(of.exchange, encoding="int8"),
        HIVEMIND_8,
        AS_FAST,
    ),
    Line(
        "Exchange of 1 million values, int4, 100 Mbit/s",
        HIVEMIND,
        partial(of.exchange, encoding="int4"),
        HIVEMIND_8,
        AS_FAST,
        AT_MOST,
    ),
    Line(
        "Round without training, 2 workers, fp32, 0.1 / 1 / 10 million values",
        OVERHEAD,
        of.against_flower,
        "Flower",
        AS_FAST,
        why=CHECKED,
    ),
    *(
        Line(what, OVERHEAD, partial(of.against_zeromq, encoding=encoding), BARE, AS_LONG, AT_MOST, ADDED_UP)
        for what, encoding in (
            ("The same, fp32, against the sockets alone", "fp32"),
            ("The same, int8, against the sockets alone", "int8"),
        )
    ),
    Line("Memory of the master, 16 workers instead of 8", MEMORY, of.memory, target=AT_MOST),
    _kernel("AdamW step of 4 million values", "adamw", "torch", "torch", MEMORY_BOUND),
    _kernel("Weighted sum of 4 million values", "axpy", "torch", "torch"),
    _kernel("4 million values to int8", "int8 quantise", "numpy", "NumPy"),
    *(
        Line(what, TRAINER, partial(of.local_steps, model=model), "torch", AS_FAST)
        for what, model in (
            ("Samples/s of one core, 1 million parameters, SGD / momentum / AdamW", "784-1024-192-10"),
            ("Samples/s of one core, 9,000 parameters, SGD / momentum / AdamW", "64-64-64-10"),
        )
    ),
    Line(
        "How far the loss of int8 / int4 is from fp32's, in spreads over seeds", ENCODINGS, of.quality, target=AT_MOST
    ),
    Line("MNIST accuracy, rounds of 50 local steps, int4", EVERY_STEP, of.every_step, EVERY_STEP_SYNC, FEWER_BYTES),
    Line(
        "Digits accuracy while 2 of 8 workers send NaN / -10 times / flipped deltas",
        POISON,
        of.poison,
        PLAIN_MEAN,
        "{} points below no poison",
        AT_MOST,
    ),
)
