"""Opening the page in the browser of whoever sits here, where there is one."""

import os
import sys
import threading
import webbrowser


def in_ci() -> bool:
    """Whether an automaton runs us: CI is set, and not to "false" or "0"."""
    return os.environ.get("CI", "").lower() not in {"", "0", "false"}


def has_display() -> bool:
    """Whether a browser window could appear."""
    if sys.platform in {"win32", "darwin"}:
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_page(url: str, wanted: bool) -> bool:
    """Open the page unless not wanted, in CI or without a display; True when a browser was asked to."""
    if not wanted or in_ci() or not has_display():
        return False
    # Some browsers hold the caller until they are closed.
    threading.Thread(target=webbrowser.open, args=(url,), name="browser", daemon=True).start()
    return True
