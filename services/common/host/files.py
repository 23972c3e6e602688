"""Durable files, private files, and the kernel lock that gives a folder one owner (also after kill -9)."""

import contextlib
import errno
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from services.common.errors import SettingsError
from services.common.host.failpoints import failpoint

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

NO_FILE_LOCKS = "NO_FILE_LOCKS"
_HELD = {errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK}  # EACCES: Windows; NFS and SMB on Linux


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` durable (a no-op on Windows, where NTFS journals them)."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(folder: Path, mode: int = 0o777) -> None:
    """Create a folder, and those above it, so that they stay: a synced file is lost with a folder that is not.

    One after the other: who fails leaves none behind whose name is not synced, for nobody would sync it later.
    """
    missing = [one for one in (folder, *folder.parents) if not one.is_dir()]
    for one in reversed(missing):
        try:
            one.mkdir(mode=mode if one == folder else 0o777)
        except FileExistsError:  # another process was quicker; it may not have synced the name yet
            made = False
        else:
            made = True
        try:
            sync_folder(one.parent)
        except PermissionError:
            pass  # a folder may let us make names in it and not open it
        except OSError:
            if made:
                with contextlib.suppress(OSError):
                    one.rmdir()
            raise


Content = bytes | Callable[[IO[bytes]], None]
"""The bytes of a file, or what writes them."""


def write_durably(path: Path, data: Content, *, private: bool = False, what: str = "file") -> None:
    """Replace `path` so that after a crash it holds either the old bytes or the new: temp, fsync, rename, fsync folder.

    `private` makes it 0600; `what` names its failpoints. Raises OSError; then the temporary file is gone and the old
    one stands, unless it was the folder that could not be synced: then the new one is there, and may be gone again.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    failpoint(f"{what}.before-write")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o644)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if callable(data):
                data(file)
            else:
                file.write(data)
            file.flush()
            failpoint(f"{what}.before-fsync")
            os.fsync(file.fileno())
        failpoint(f"{what}.before-rename")
        temporary.replace(path)
    except OSError:
        remove(temporary)
        raise
    failpoint(f"{what}.before-folder-fsync")
    sync_folder(path.parent)
    failpoint(f"{what}.written")


def keep_private(path: Path, data: bytes, what: str) -> None:
    """As `write_durably`, 0600, for what a service cannot start without; raises SettingsError with the next step."""
    try:
        write_durably(path, data, private=True, what=what)
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be written ({error.strerror or error}); free the disk, or let this user write there",
            code="DATA_DIR_UNUSABLE",
        ) from None


def remove(path: Path) -> bool:
    """Remove a file if that can be done; False when it stays: on Windows nobody can remove one that is open."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def sweep(folder: Path) -> None:
    """Remove what `write_durably` had half written when it was killed; only for who alone writes in this folder."""
    for path in folder.glob(".*.tmp"):
        remove(path)


def make_folder(folder: Path) -> Path:
    """Create a data folder (0700) and check that it can be written; raises SettingsError with the next step."""
    try:
        make_folders(folder, 0o700)
        with tempfile.TemporaryFile(dir=folder):  # of its own name: several processes may start in one folder
            pass
    except OSError as error:
        raise SettingsError(
            f"the folder {folder} cannot be written ({error.strerror or error}); free it or set MAHE_HOME",
            code="DATA_DIR_UNUSABLE",
        ) from None
    return folder


class FolderLock:
    """A kernel lock on `folder/lock`: held by at most one process, gone with it however it dies.

    `setting` names the variable that chooses another folder, for the sentence of an error.
    """

    def __init__(self, folder: Path, setting: str = "MAHE_HOME") -> None:
        self._path = folder / "lock"
        self._setting = setting
        self._file: IO[bytes] | None = None

    def acquire(self) -> bool:
        """True when this process holds the lock now, False when another does; SettingsError when none can hold it."""
        file = self._open()
        try:
            if sys.platform == "win32":
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if error.errno in _HELD:
                return False
            raise SettingsError(
                f"the folder {self._path.parent} does not support file locks ({error.strerror or error}): set "
                f"{self._setting} to a folder on a local disk",
                code=NO_FILE_LOCKS,
            ) from None
        self._file = file
        return True

    def release(self) -> None:
        """Let the lock go; safe to call twice."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> IO[bytes]:
        try:
            return self._path.open("ab")
        except OSError as error:
            raise SettingsError(
                f"{self._path} cannot be opened ({error.strerror or error}); let this user write it, or set "
                f"{self._setting} to another folder",
                code="DATA_DIR_UNUSABLE",
            ) from None
