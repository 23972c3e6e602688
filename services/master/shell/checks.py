"""What INIT looks at, one function for each: kernels, data folder, data sets, addresses, clock.

Each takes well under a second and changes nothing. Not for what `mahe doctor` asks before anything is started.
"""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from services.common.errors import DatasetError, KernelError, MaheError
from services.common.host.files import sync_folder
from services.common.host.machine import FREE_MIB_WARN
from services.common.kernels.cases import CASES
from services.common.kernels.library import library
from services.common.kernels.selftest import quick_differences
from services.common.learning import build_model, catalog, load

PROBE_BYTES = 1 << 16
CLOCK_BACK_S = 60
RELEASED_S = 1_767_225_600  # 2026-01-01: no clock that is right says less
_OF_THIS_PC = ("tcp://127.", "tcp://localhost:", "tcp://[::1]:")

Level = Literal["ok", "warn", "error"]


@dataclass(frozen=True)
class Check:
    """What one check found. `code` and `values` let the page say it in other words than `text`, the English ones.

    With one that `blocks`, no new run may start.
    """

    code: str
    level: Level
    text: str
    values: Mapping[str, Any] = field(default_factory=dict)
    blocks: bool = False


Look = Callable[[], Check]


def all_checks(folder: Path, endpoints: list[str], *, advertised: bool) -> dict[str, Look]:
    """The checks in order, each by what it looks at."""
    return {
        "the kernels": kernels,
        "the data folder": partial(data_folder, folder),
        "the data sets": datasets,
        "the addresses": partial(addresses, endpoints, advertised=advertised),
        "the clock": partial(clock, folder),
    }


def kernels() -> Check:
    """Every kernel on the tier in use against NumPy, bit for bit, on a few lengths."""
    tier, found = "", []
    try:
        opened = library()
        tier, found = opened.tier(), quick_differences(opened)
    except KernelError as error:
        found = [error.sentence]
    values = {"tier": tier, "kernels": len(CASES), "wrong": len(found)}
    if found:
        text = f"{found[0]}; no run can start: set MAHE_KERNEL=scalar or run `make kernels`, and restart the master"
        return Check("KERNELS_WRONG", "error", text, {**values, "first": found[0]}, blocks=True)
    return Check("KERNELS", "ok", f"kernels: {tier}; {len(CASES)} tested, all with the bits of NumPy", values)


def data_folder(folder: Path) -> Check:
    """Whether what is written there reaches the disk, how long that takes, and how much room is left."""
    shown = str(folder).encode(errors="replace").decode()
    began = time.monotonic()
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
        sync_folder(folder)
        free_mib = shutil.disk_usage(folder).free // 2**20
    except OSError as error:
        reason = error.strerror or str(error)
        text = f"the data folder {shown} cannot be written ({reason}); free the disk, or let this user write there"
        return Check("DISK_UNWRITABLE", "error", text, {"folder": shown, "reason": reason})
    sync_ms = round(1000 * (time.monotonic() - began))
    values = {"folder": shown, "free_mib": free_mib, "sync_ms": sync_ms}
    if free_mib < FREE_MIB_WARN:
        return Check("DISK_LOW", "warn", f"only {free_mib} MiB free at {shown}: large models need more", values)
    text = f"data folder {shown}: {free_mib // 1024} GiB free, a write is on the disk after {sync_ms} ms"
    return Check("DISK", "ok", text, values)


def datasets() -> Check:
    """Whether each data set of the catalog can be read, is what its card says, and has a model to start with."""
    names = []
    for card in catalog():
        dataset, name = load(card["descriptor"]), str(card["name"])
        dimensions, classes = dataset.x_train.shape[1], dataset.classes
        build_model(card["recommended"]["model"], dimensions, classes)
        if (dimensions, classes, len(dataset.y_train)) != (card["dimensions"], card["classes"], card["train"]):
            raise DatasetError(f"the data set {name} is not what the catalog says of it; install MAHE again")
        names.append(name)
    text = f"{len(names)} data sets: {', '.join(names)}"
    return Check("DATASETS", "ok", text, {"count": len(names), "names": names})


def addresses(endpoints: list[str], *, advertised: bool) -> Check:
    """Whether join strings name an address that other PCs can reach; that none does may be meant, if it was said."""
    values = {"endpoints": endpoints}
    if all(one.startswith(_OF_THIS_PC) for one in endpoints):
        if advertised:
            return Check("ADDRESSES_LOCAL", "ok", "only workers on this PC can join, as MAHE_ADVERTISE says", values)
        text = "only workers on this PC can join; to let others in, name this PC's addresses in MAHE_ADVERTISE"
        return Check("ADDRESSES_LOCAL", "warn", text, values)
    return Check("ADDRESSES", "ok", f"other PCs join at {', '.join(endpoints)}", values)


def clock(folder: Path) -> Check:
    """Whether this PC's clock has been set back since the folder was written: join strings expire by it."""
    now_s, written_s = int(time.time()), RELEASED_S
    for one in folder.iterdir():
        with contextlib.suppress(OSError):  # gone in this moment
            written_s = max(written_s, int(one.stat().st_mtime))
    values = {"time_ms": 1000 * now_s, "behind_s": max(0, written_s - now_s)}
    if written_s - now_s > CLOCK_BACK_S:
        text = f"the clock says {_utc(now_s)}, but it was {_utc(written_s)} before: set it, join strings expire by it"
        return Check("CLOCK_BACK", "warn", text, values)
    return Check("CLOCK", "ok", f"the clock says {_utc(now_s)}", values)


def _utc(time_s: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(time_s))


def looked(what: str, look: Look) -> Check:
    """What a check found; one that fails by itself is an error, too, and ends nothing."""
    try:
        return look()
    except MaheError as error:
        return Check(error.code, "error", error.sentence, {"what": what})
    except Exception as error:  # noqa: BLE001 - a bug in a check must not end everybody's training
        reason = f"{type(error).__name__}: {error}"
        text = f"{what} could not be checked ({reason}); please report it"
        return Check("CHECK_FAILED", "error", text, {"what": what, "reason": reason})
