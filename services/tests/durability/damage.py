"""Damage of a checkpoint: every bit and every cut, and the archive as plain NumPy sees it."""

import zipfile
from pathlib import Path

from services.common.errors import CheckpointError
from services.master.shell.checkpoints import read, write
from services.tests.durability.scenarios import version


def damage_everywhere(folder: Path, step: int = 1) -> int:
    """Flip bits (each `step`-th) and cut the file everywhere; how many; AssertionError for one not noticed."""
    path = write(folder, version(1))
    whole = path.read_bytes()
    tried = 0
    for number in range(0, 8 * len(whole), step):
        damaged = bytearray(whole)
        damaged[number // 8] ^= 1 << number % 8
        _refuses(path, bytes(damaged), f"bit {number % 8} of byte {number // 8} of {len(whole)}")
        tried += 1
    for cut in range(0, len(whole), max(step // 8, 1)):
        _refuses(path, whole[:cut], f"cut at byte {cut} of {len(whole)}")
        tried += 1
    path.write_bytes(whole)
    read(path)
    return tried


def comment_of(path: Path) -> bytes:
    """The ZIP comment, as the standard library reads it."""
    with zipfile.ZipFile(path) as archive:
        return archive.comment


def _refuses(path: Path, raw: bytes, what: str) -> None:
    path.write_bytes(raw)
    try:
        read(path)
    except CheckpointError:
        return
    except Exception as error:
        raise AssertionError(f"{what}: {error!r} and no CheckpointError") from error
    raise AssertionError(f"{what}: not noticed")
