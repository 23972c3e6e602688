"""Lines for the person at the terminal: `[KIND] message` on standard output, at once."""

from services.common.host.logs import clean_text


def say(kind: str, message: str) -> None:
    """One line."""
    print(f"[{kind}] {clean_text(message)}", flush=True)


def say_error(sentence: str, kind: str = "ERROR") -> None:
    """Why it did not work: may have several lines (the end of a log), each cleaned."""
    first, *more = sentence.split("\n")
    say(kind, first)
    for line in more:
        print(clean_text(line), flush=True)
