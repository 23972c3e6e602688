"""What the documents say, as text: code spans, quoted messages, headings, parts between two comments.

Not for what they ought to say: that is facts.py.
"""

import re
from functools import cache

from services.tests.tidy.source import ROOT

README, README_ZH, CHANGELOG = "README.md", "README.zh-CN.md", "CHANGELOG.md"
GUIDE, GUIDE_ZH, DESIGN = "docs/USER_GUIDE.md", "docs/USER_GUIDE.zh-CN.md", "docs/DESIGN.md"
EXAMPLE, CONTRIBUTING = "deploy/example.env", "CONTRIBUTING.md"
CONTAINERS, CONTAINERS_ZH = "docs/CONTAINERS.md", "docs/CONTAINERS.zh-CN.md"
TRAINING, SCRIPTS, API = "docs/TRAINING.md", "docs/SCRIPTS.md", "docs/API.md"
MESSAGES, MESSAGES_ZH = "docs/MESSAGES.md", "docs/MESSAGES.zh-CN.md"
MESSAGE_HEADS = {"Message", "消息"}
Docs = dict[str, str]

_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


@cache
def documents() -> Docs:
    """Every document that is checked, by its path."""
    guides = (GUIDE, GUIDE_ZH, MESSAGES, MESSAGES_ZH, API, TRAINING, SCRIPTS, CONTAINERS, CONTAINERS_ZH)
    names = (README, README_ZH, CHANGELOG, *guides, DESIGN, EXAMPLE, CONTRIBUTING)
    return {name: (ROOT / name).read_text("utf-8") for name in names}


def part(path: str, name: str) -> re.Pattern[str]:
    """What stands between the comments `NAME: begin` and `NAME: end` of a document, as group 2."""
    before, after = (r"# ", "") if path == EXAMPLE else ("<!-- ", " -->")
    return re.compile(rf"({before}{name}: begin{after}\n\n)(.*?)(\n\n{before}{name}: end)", re.DOTALL)


def prose(text: str) -> str:
    """A document without its blocks of code."""
    return _FENCE.sub("", text)


def spans(text: str) -> list[str]:
    """What stands in backticks, in a line or, line by line, in a block."""
    fenced = [line.strip() for block in _FENCE.findall(text) for line in block.splitlines()[1:-1]]
    return fenced + [found[2].strip() for found in _SPAN.finditer(prose(text))]


def quoted(text: str) -> list[str]:
    """The messages in the first column of the tables of messages, without `[KIND]` and `(CODE)`."""
    found, inside = [], False
    for line in text.splitlines():
        cell = line.strip("| ")
        inside = line.startswith("|") and (inside or cell.partition(" | ")[0] in MESSAGE_HEADS)
        if inside and (span := _SPAN.match(cell)):
            found.append(re.sub(r"^\[[A-Z]+\] | \([A-Z_]+\)$", "", span[2].strip()))
    return found


def headings(text: str) -> list[str]:
    """The headings of a document, with their marks."""
    return re.findall(r"^#+ .+$", prose(text), re.MULTILINE)


def anchor(heading: str) -> str:
    """The anchor that a heading gets where Markdown is shown."""
    return re.sub(r"[^\w\- ]", "", heading.lstrip("#").strip().lower()).replace(" ", "-")
