"""A child whose libraries write all kinds of things to its standard output, before and after its one message."""

import sys

from services.common.host.children import LINE_BYTES_MAX, tell_parent

CHATTER = (
    b"loading...",
    b"",
    b"3",
    b"null",
    b"NaN",
    b'"t"',
    b'["t"]',
    b"{}",
    b'{"kind": "done"}',
    b'{"t": 5}',
    b'{"t": null}',
    b'{"t": "done"',
    b"\xff\xfe\x00",
    b'{"t": "\xff"}',
    b'{"t": "half a pair: \\ud800"}',
    b"[" * 200_000,
    b'{"t":' * 100_000,
    b"9" * 5000,
    b"x" * (2 * LINE_BYTES_MAX + 1),
)


def main() -> None:
    for chatter in CHATTER:
        sys.stdout.buffer.write(chatter + b"\n")
    sys.stdout.buffer.write(b"10 %\r20 %")
    tell_parent({"t": "done", "reason": "the file /data/\udcff \U0001f600"})
    sys.stdout.buffer.write(b"no end of line")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
