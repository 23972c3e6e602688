"""Lines for the person at the terminal: `[KIND] message` on standard output, at once."""

from services.common.host.logs import clean_text


def say(kind: str, message: str) -> None:
    """One line."""
    show(f"[{kind}] {clean_text(message)}")


def say_error(sentence: str, kind: str = "ERROR") -> None:
    """Why it did not work: may have several lines (the end of a log), each cleaned."""
    first, *more = sentence.split("\n")
    say(kind, first)
    for line in more:
        show(clean_text(line))


def show(text: str) -> None:
    """Text as it is. Lost where the output is full, which is no reason to stop what runs.

    Raises BrokenPipeError when nobody reads any more, as in `mahe demo | head`.
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError:
        return
