"""`mahe uninstall`: lists every path that MAHE wrote on this PC, with its size, asks, and removes it.

Only names that MAHE gives are touched: a MAHE_HOME that holds other things keeps them.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from services.common.errors import SettingsError
from services.common.host.machine import home
from services.launch import places
from services.launch.lines import confirm, say
from services.launch.processes import ROOT

LOCKED = ("master", "console", places.DEMO)
IN_HOME = ("master", "worker", "console", places.DEMO, places.LOGS, places.UP_FILE)
IN_CHECKOUT = ("build", "services/common/kernels/lib", ".venv")  # .venv, in which we may run, last


@dataclass(frozen=True)
class Found:
    """One path that MAHE wrote, and its size."""

    path: Path
    bytes: int


def run_uninstall(*, yes: bool) -> int:
    """0: removed, or nothing was there; 1: the person said no, or something stayed. Raises MaheError NOBODY_TO_ASK."""
    found = find(home(), ROOT)
    for one in found:
        say("UNINSTALL", f"{one.path} ({size(one.bytes)})")
    if not found:
        say("UNINSTALL", "MAHE wrote nothing on this PC")
        return 0
    total = size(sum(one.bytes for one in found))
    if not yes and not confirm(f"Remove these, {total}, for good?", "mahe uninstall --yes"):
        say("UNINSTALL", "nothing was removed")
        return 1
    check_idle(home())
    return remove(found, home())


def find(home_folder: Path, root: Path) -> list[Found]:
    """Every path that MAHE wrote in its home and, where it runs from a checkout, beside its sources."""
    paths = [home_folder / name for name in IN_HOME]
    if home_folder.is_dir() and not any(home_folder.iterdir()):
        paths = [home_folder]
    if (root / "pyproject.toml").is_file():  # else `root` is somebody's site-packages
        paths += [root / name for name in IN_CHECKOUT]
    return [Found(path, weigh(path)) for path in paths if path.is_symlink() or path.exists()]


def check_idle(home_folder: Path) -> None:
    """Raises SettingsError while a service of MAHE holds one of the folders."""
    holders = [home_folder / name for name in LOCKED]
    holders += sorted((home_folder / "worker").glob("slot-*"))
    for folder in holders:
        if places.held(folder):
            raise SettingsError(f"MAHE is running on {folder}; stop it, then ask again", code="DATA_DIR_LOCKED")


def remove(found: list[Found], home_folder: Path) -> int:
    """Remove them; 1 when something stayed, each named with its reason."""
    stayed = 0
    for one in found:
        try:
            if one.path.is_symlink() or one.path.is_file():
                one.path.unlink()
            else:
                shutil.rmtree(one.path)
        except OSError as error:
            stayed += 1
            say("ERROR", f"{one.path} stays ({error.strerror or error}); remove it by hand")
        else:
            say("UNINSTALL", f"removed {one.path}")
    if home_folder.is_dir() and not any(home_folder.iterdir()):
        home_folder.rmdir()
    return 1 if stayed else 0


def weigh(path: Path) -> int:
    """Bytes of a file or of all files in a folder; links are not followed."""
    if path.is_symlink() or path.is_file():
        return path.lstat().st_size
    return sum(one.lstat().st_size for one in path.rglob("*") if one.is_symlink() or not one.is_dir())


def size(count: int) -> str:
    """Bytes for people."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
