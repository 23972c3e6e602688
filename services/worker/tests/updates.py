"""Shorthands for sessions whose replica follows updates: versions, updates and tasks of an int8 run."""

from typing import Any

from services.common.protocol import messages
from services.worker.core import commands as c
from services.worker.core import events as e
from services.worker.tests.driver import CHUNK_BYTES, Driver, has, message, ref, task

N = 10_000
UPDATE_BYTES = messages.encoded_bytes("int8", N)  # three chunks; the whole version has ten
WHOLE_BYTES = 4 * N


def version_digest(version: int) -> str:
    """Of the parameters."""
    return f"{version:032x}"


def update_digest(version: int) -> str:
    """Of the encoded update that leads to this version."""
    return f"{version + 0x1000:032x}"


def anchor(version: int = 0, run: str = "run-1") -> e.Anchor:
    """A version that a slot may hold."""
    return e.Anchor(run, version, version_digest(version))


def job(version: int, *, run: str = "run-1", shard: int = 0, **changes: Any) -> messages.Task:
    """A task on this version, in a run that sends int8."""
    given: dict[str, Any] = {"anchor_digest": version_digest(version), "n_parameters": N, "encoding": "int8"}
    return task(ref(version, run=run, shard=shard), **(given | changes))


def at(version: int = 0, **changes: Any) -> Driver:
    """A worker that has joined with this version in its slot."""
    worker = Driver(**({"anchor": anchor(version)} | changes))
    worker.join()
    return worker


def announce(worker: Driver, version: int, *, digest: str = "", run: str = "run-1") -> list[c.Command]:
    """UPDATE."""
    digest = digest or update_digest(version)
    return worker(messages.Update(term=worker.term, run=run, version=version, bytes=UPDATE_BYTES, digest=digest))


def piece(
    worker: Driver,
    index: int,
    *,
    of: int,
    what: messages.What = "update",
    digest: str = "",
    run: str = "run-1",
    chunk_bytes: int = CHUNK_BYTES,
) -> list[c.Command]:
    """One CHUNK of an update, or of a whole version."""
    total = UPDATE_BYTES if what == "update" else WHOLE_BYTES
    chunk = messages.Chunk(
        term=worker.term,
        what=what,
        run=run,
        version=of,
        index=index,
        count=-(-total // chunk_bytes),
        total_bytes=total,
        digest=digest or (update_digest(of) if what == "update" else version_digest(of)),
        crc32=0,
    )
    return worker(chunk, min(chunk_bytes, total - index * chunk_bytes))


def fetch(worker: Driver, *versions: int, digest: str = "", run: str = "run-1") -> list[c.Command]:
    """Updates are announced and come; what the last chunk led to."""
    commands: list[c.Command] = []
    for version in versions:
        announce(worker, version, digest=digest, run=run)
        for index in range(3):
            commands = piece(worker, index, of=version, digest=digest, run=run)
    return commands


def fetch_whole(worker: Driver, version: int) -> list[c.Command]:
    """A whole version comes; what the digest check led to."""
    for index in range(9):
        piece(worker, index, of=version, what="snapshot")
    assert has(piece(worker, 9, of=version, what="snapshot"), c.CheckAnchor)
    return worker(e.AnchorChecked(version_digest(version)))


def pulled(commands: list[c.Command]) -> tuple[str, str, int, list[int]]:
    """What the one PULL asks for."""
    pull = message(commands, messages.Pull)
    return pull.what, pull.run, pull.version, pull.want


def applying(version: int = 1) -> Driver:
    """A worker whose trainer applies the updates up to this version, for a task."""
    worker = at()
    fetch(worker, *range(1, version + 1))
    assert has(worker(job(version)), c.Train)
    return worker
