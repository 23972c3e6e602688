"""Runs one service in this process and ends it when its launcher is gone: `python -m services.launch.leash MODULE`.

The launcher holds the other end of standard input. Its end, by closing or by any kind of death (also SIGKILL), is the
order to stop: the service gets its usual signal, and after STOP_S this process and all that it started are killed.
A launcher that stops in good order writes FAREWELL first and sweeps up itself; an end without it means that it died.
Not for services that a person starts by hand: those run without a leash.
"""

import contextlib
import os
import runpy
import signal
import sys
import threading
import time

STOP_S = 5.0
FAREWELL = b"."


def main() -> None:
    """Put on the leash, then be the service named in the first argument."""
    module = sys.argv[1]
    sys.argv[:] = sys.argv[1:]
    launcher = os.getppid()
    abandoned = threading.Event()
    threading.Thread(target=_hold, args=(_take_input(), abandoned), name="leash", daemon=True).start()
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        # A dead launcher's pipe ends before we get another parent, so the parent's number alone may come too late.
        if abandoned.is_set() or os.getppid() != launcher:  # else the launcher sweeps up, and reads our exit code
            _kill_all()


def _take_input() -> int:
    """The leash as a descriptor of our own; whatever inherits standard input from here on reads an empty one."""
    leash = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return leash


def _hold(leash: int, abandoned: threading.Event) -> None:
    said = b""
    with contextlib.suppress(OSError):
        while word := os.read(leash, 512):
            said += word
    if said != FAREWELL:
        abandoned.set()
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGINT)
    else:
        main_thread = threading.main_thread().ident
        assert main_thread is not None
        signal.pthread_kill(main_thread, signal.SIGTERM)  # so that the main thread's system call is interrupted
    time.sleep(STOP_S)
    _kill_all()


def _kill_all() -> None:
    """End what this service started and has left, and this process."""
    if sys.platform == "win32":
        os._exit(1)  # a job of its own is not needed: what a service starts watches its standard input
    elif os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    else:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
