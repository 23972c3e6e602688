"""The system's own dialog for a folder, as a child process: one at a time, and killed when nobody waits for it.

It opens on the screen of this PC. Not for whether a model may be written in that folder: the master checks each path.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import urlsplit

from services.console.problems import Problem
from services.console.settings import ConsoleSettings, is_loopback

DIALOG_S = 240.0  # Firefox gives up a request without an answer after 300 s
KILL_S = 2.0
OUTPUT_BYTES_MAX = 64 * 1024
SAID_MAX = 200
TITLE = "MAHE"
FOLDER_VARIABLE = "DIALOG_FOLDER"
OTHERWISE = "type the path, or choose from GET /api/v1/folders"

# Both end with code 0 and say nothing when the dialog is cancelled. No part of a request is ever in them.
APPLESCRIPT = f"""on run argv
    set startFolder to missing value
    try
        set startFolder to (POSIX file (item 1 of argv)) as alias
    end try
    try
        tell me to activate
    end try
    try
        if startFolder is missing value then
            set chosen to choose folder with prompt "{TITLE}"
        else
            set chosen to choose folder with prompt "{TITLE}" default location startFolder
        end if
        return POSIX path of chosen
    on error number -128
        return ""
    end try
end run"""
POWERSHELL = "; ".join(  # UTF-8 as bytes: what the console's code page would make of it is not known
    [
        "$ErrorActionPreference = 'Stop'",
        "Add-Type -AssemblyName System.Windows.Forms",
        "$dialog = New-Object System.Windows.Forms.FolderBrowserDialog",
        f"$dialog.Description = '{TITLE}'",
        f"$dialog.SelectedPath = $env:{FOLDER_VARIABLE}",
        "$owner = New-Object System.Windows.Forms.Form -Property @{TopMost = $true}",
        "if ($dialog.ShowDialog($owner) -eq 'OK') { $bytes = [Text.Encoding]::UTF8.GetBytes($dialog.SelectedPath)",
        "[Console]::OpenStandardOutput().Write($bytes, 0, $bytes.Length) }",
    ]
)


@dataclass(frozen=True)
class Program:
    """What opens a dialog. It ends with 0 and the folder on its output; with a code of `cancelled` when cancelled."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cancelled: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        """For sentences."""
        return PurePosixPath(self.argv[0]).name


def find_program(
    begin: str, settings: ConsoleSettings, env: Mapping[str, str], platform: str = sys.platform
) -> Program:
    """The program of this system, to open at the folder `begin`. Raises Problem NO_DIALOG with the reason.

    A `begin` that is no whole path is left out: it would be taken from the console's own folder, or as an option.
    """
    _check_screen(settings, env, platform)
    path_of = PureWindowsPath if platform == "win32" else PurePosixPath
    if not (begin.isprintable() and path_of(begin).is_absolute()):
        begin = ""
    for name, arguments in _commands(begin, platform):
        found = shutil.which(name, path=env.get("PATH"))
        if found:
            if platform in {"win32", "darwin"}:
                return Program((found, *arguments), {**env, FOLDER_VARIABLE: begin})
            return Program((found, *arguments), _in_utf8(env), frozenset({1}))
    names = " or ".join(name for name, _ in _commands(begin, platform))
    raise _no_dialog(f"there is no {names} on this PC", f"install one and press again, or {OTHERWISE}")


def _commands(begin: str, platform: str) -> list[tuple[str, list[str]]]:
    if platform == "win32":
        return [("powershell", ["-NoLogo", "-NoProfile", "-NonInteractive", "-STA", "-Command", POWERSHELL])]
    if platform == "darwin":
        return [("osascript", ["-e", APPLESCRIPT, begin])]
    inside = [f"--filename={begin.rstrip('/')}/"] if begin else []
    return [
        ("zenity", ["--file-selection", "--directory", f"--title={TITLE}", *inside]),
        ("kdialog", ["--title", TITLE, "--getexistingdirectory", *([begin] if begin else [])]),
    ]


def _in_utf8(env: Mapping[str, str]) -> Mapping[str, str]:
    """In another locale zenity writes `?` for what that has no letter for, and so names another folder."""
    locale = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    return env if "utf" in locale.lower() else {**env, "LC_ALL": "", "LC_CTYPE": "C.UTF-8"}


def _check_screen(settings: ConsoleSettings, env: Mapping[str, str], platform: str) -> None:
    """Raises Problem NO_DIALOG unless the screen here is that of the page, and the disk here that of the master."""
    master = urlsplit(settings.master).hostname if settings.master else "localhost"
    if not is_loopback(settings.bind):  # as it is in a container
        raise _no_dialog(f"the page is served on {settings.bind}: it may be open on another PC than this one")
    if not is_loopback(master or ""):
        raise _no_dialog(f"the master is at {settings.master}, and the folders of this PC are not its own")
    if platform == "win32" and "SESSIONNAME" not in env:  # a service, or a program that it has started
        raise _no_dialog("the console does not run in a session with a desktop")
    if platform in {"win32", "darwin"} and "SSH_CONNECTION" in env:
        raise _no_dialog("the console was started over SSH")
    if platform not in {"win32", "darwin"} and not (env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")):
        raise _no_dialog("the console has no screen (neither DISPLAY nor WAYLAND_DISPLAY is set)")


@dataclass
class FolderDialog:
    """The dialog of one console. Belongs to one event loop."""

    _open: bool = False
    _closing: asyncio.Event = field(default_factory=asyncio.Event)

    def close(self) -> None:
        """The console stops: an open dialog goes away and no other opens."""
        self._closing.set()

    async def pick(self, program: Program, gone: Callable[[], Awaitable[None]]) -> str:
        """The folder that a person chose; empty: cancelled, or `gone` returned, as nobody listens any more.

        Raises Problem: DIALOG_OPEN, DIALOG_TIMEOUT after DIALOG_S, STOPPING, NO_DIALOG, FOLDER_UNUSABLE.
        """
        self._check_closing()
        if self._open:
            raise Problem(f"{program.name} waits for an answer already; look for its window", code="DIALOG_OPEN")
        self._open = True
        asking = asyncio.create_task(_ask(program))
        others = [asyncio.ensure_future(gone()), asyncio.ensure_future(self._closing.wait())]
        try:
            await asyncio.wait([asking, *others], timeout=DIALOG_S, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
        finally:
            for task in (asking, *others):
                task.cancel()
            await asyncio.gather(asking, *others, return_exceptions=True)  # until the child is gone
            self._open = False
        self._check_closing()
        if others[0].done() and not others[0].cancelled():
            return ""
        raise Problem(
            f"nobody answered the dialog in {DIALOG_S:g} s, and it was closed; press again", code="DIALOG_TIMEOUT"
        )

    def _check_closing(self) -> None:
        if self._closing.is_set():
            raise Problem("the console stops; try again when it is back", code="STOPPING")


async def _ask(program: Program) -> str:
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NO_WINDOW
    try:
        process = await asyncio.create_subprocess_exec(
            *program.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=program.env,
            start_new_session=True,
            creationflags=flags,
        )
    except OSError as error:
        raise _no_dialog(f"{program.argv[0]} cannot be started ({error.strerror or error})") from None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        output, errors, code = await asyncio.gather(_read(process.stdout), _read(process.stderr), process.wait())
    finally:
        if process.returncode is None:
            _kill(process)
            with suppress(TimeoutError):  # one that the system cannot end is not waited for
                await asyncio.wait_for(process.wait(), KILL_S)
    return _folder(program, code, output, errors)


async def _read(stream: asyncio.StreamReader) -> bytes:
    """All that comes, so that the child never waits; kept is the beginning."""
    kept = bytearray()
    while part := await stream.read(OUTPUT_BYTES_MAX):
        kept += part[: OUTPUT_BYTES_MAX - len(kept)]
    return bytes(kept)


def _kill(process: asyncio.subprocess.Process) -> None:
    """With its own children, where it may be a script around the program."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def _folder(program: Program, code: int, output: bytes, errors: bytes) -> str:
    """What a dialog that has ended says. Raises Problem."""
    if code in program.cancelled and b"display" not in errors.lower():  # GTK ends with 1 as well when it has no screen
        return ""
    if code != 0:
        said = errors.decode(errors="replace").strip().rpartition("\n")[2][:SAID_MAX]
        raise _no_dialog(f"{program.name} ended with code {code}{f' ({said})' if said else ''}")
    try:
        path = output.decode().removesuffix("\n")
    except UnicodeDecodeError:
        path = "\0"
    if not path.isprintable():
        raise Problem(
            "the name of this folder has characters that nobody can type; choose or make another one",
            code="FOLDER_UNUSABLE",
        )
    return path


def _no_dialog(reason: str, step: str = OTHERWISE) -> Problem:
    return Problem(f"no dialog can be opened: {reason}; {step}", code="NO_DIALOG")
