"""Copies of checkpoints where people want their model: checked when a run is asked for, written by a thread of its own.

So a slow or lost disk holds nothing up but the copy. A copy is byte for byte the checkpoint, with its seal, which is
checked on the way; it replaces the file before it as a whole. Not for deciding when: that is `core/model_file`.
"""

import errno
import glob
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from services.common.errors import CheckpointError, MaheError, ProtocolError, quoted
from services.common.host.files import make_folders, remove, write_durably
from services.master.core.events import ModelCopied
from services.master.core.state import ModelFile
from services.master.shell.checkpoints import Vault, copy_sealed, read_meta
from services.master.shell.disk_answer import ANSWER_S, answer_of

SUFFIX = ".npz"
STOP_S = 5.0  # when the master ends, for the copy in work
JOBS_MAX = 32  # that wait; then the oldest is given up


@dataclass(frozen=True)
class Places:
    """Where models may lie: `data` is where a path begins that is not absolute; below `within`, if it is said."""

    data: Path
    within: Path | None = None

    def resolve(self, path: str) -> Path:
        """The file that is meant, in full, links followed. Raises ProtocolError BAD_SPEC when it may not be one."""
        try:
            found = (self.data / Path(path).expanduser()).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise _refused(path, f"cannot be looked up ({_why(error)}); name another file") from None
        if found.suffix != SUFFIX or not path.isprintable():
            raise _refused(path, f"must be the name of a file that ends in {SUFFIX}, such as models/digits{SUFFIX}")
        if self.within is not None and not found.is_relative_to(self.within.resolve()):
            raise _refused(path, f"must lie below {self.within}, the volume for data; name a file there")
        if found.is_relative_to((self.data / "runs").resolve()):
            raise _refused(path, "lies among the master's own checkpoints; name a file elsewhere")
        return found

    def check(self, path: str) -> Path:
        """The same, its folder made, and found to be one that can be written; a dead disk is waited for ANSWER_S."""
        try:
            return answer_of(lambda: self._check(path))
        except TimeoutError:
            raise _refused(path, f"is on a disk that does not answer in {ANSWER_S:g} s; name another file") from None

    def _check(self, path: str) -> Path:
        found = self.resolve(path)
        probe = found.with_name(f".{found.name}.{os.getpid()}.try")  # as long as the name under which it is written
        try:
            if found.is_dir():
                raise _refused(path, f"is a folder; name a file in it, such as {found.name}/mahe_model{SUFFIX}")
            make_folders(found.parent)
            probe.touch()
            probe.unlink()
        except OSError as error:
            text = f"cannot be written ({_why(error)}); let this user write in {found.parent}, or name another file"
            raise _refused(path, text) from None
        return found


@dataclass
class ModelCopies:
    """`post` takes what came of each copy. `pinned` are versions whose checkpoints must stay till they are copied."""

    places: Places
    vault: Vault
    post: Callable[[ModelCopied], None]
    _jobs: dict[str, tuple[int, str]] = field(default_factory=dict)  # by run: version and path; a newer one replaces
    _working: int | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _stopping: bool = False
    _thread: threading.Thread | None = None

    def copy(self, run: str, version: int, path: str) -> None:
        """Queue one; of each run only the newest is of interest."""
        with self._changed:
            self._jobs.pop(run, None)
            if len(self._jobs) == JOBS_MAX:
                given_up = next(iter(self._jobs))
                number, _ = self._jobs.pop(given_up)
                self.post(ModelCopied(given_up, number, "", "too many copies wait; is the disk slow?"))
            self._jobs[run] = (version, path)
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="model-copies", daemon=True)
            self._thread.start()

    def pinned(self) -> set[int]:
        """Called by the aggregation thread."""
        with self._changed:
            waiting = {version for version, _ in self._jobs.values()}
            return waiting if self._working is None else waiting | {self._working}

    def stop(self) -> None:
        """Finish what is queued, if that does not take too long; each copy is whole or not there."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(STOP_S)

    def copy_now(self, run: str, version: int, path: str) -> ModelCopied:
        """Make one copy; what came of it."""
        try:
            target = self.places.resolve(path)
            make_folders(target.parent)
            for stale in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
                remove(stale)  # of a master that was killed over it
            source = self.vault.path_of(run, version)

            def fill(file: IO[bytes]) -> None:
                try:
                    copy_sealed(source, file)
                except CheckpointError as error:
                    raise OSError(errno.EIO, error.sentence) from None

            write_durably(target, fill, what="model")
        except MaheError as error:
            return ModelCopied(run, version, "", error.sentence)
        except (OSError, ValueError) as error:
            text = f"{path} cannot be written: {_why(error)}; it is tried again with the next copy"
            return ModelCopied(run, version, "", text)
        return ModelCopied(run, version, str(target))

    def found(self, run: str, path: str) -> ModelFile:
        """What of this run lies at its path: after a restart."""
        try:
            return answer_of(lambda: self._look(run, path))
        except TimeoutError:
            return ModelFile()

    def _look(self, run: str, path: str) -> ModelFile:
        try:
            target = self.places.resolve(path)
            meta = read_meta(target)
        except MaheError:
            return ModelFile()
        if meta.get("run") != run or not isinstance(meta.get("version"), int):
            return ModelFile()
        return ModelFile(asked=meta["version"], version=meta["version"], file=str(target))

    def _work(self) -> None:
        while True:
            with self._changed:
                self._working = None
                self._changed.wait_for(lambda: self._stopping or self._jobs)
                if not self._jobs:
                    return
                run = next(iter(self._jobs))
                version, path = self._jobs.pop(run)
                self._working = version
            self.post(self.copy_now(run, version, path))


def _refused(path: str, text: str) -> ProtocolError:
    return ProtocolError(f"field model_path is {quoted(path)}: it {text}", code="BAD_SPEC")


def _why(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
