"""Lists as the API gives them: `{items, next_cursor}`, at most `limit` items, and on with `cursor`.

A cursor is the key of the last item given, so that nothing is left out or told twice when the list grows meanwhile.
Not for the stream of events: that has ids of its own.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field

from services.common.errors import quoted
from services.common.protocol.limits import PAGE_ITEMS, PAGE_ITEMS_MAX
from services.console.problems import Problem

CURSOR_CHARACTERS_MAX = 200
DIGITS_MAX = 15  # a count, so that it is below 2**53

Limit = Annotated[int, Query(ge=1, le=PAGE_ITEMS_MAX, description="Items at most")]
Cursor = Annotated[
    str | None,
    Query(max_length=CURSOR_CHARACTERS_MAX, description="`next_cursor` of the page before; none: the first page"),
]
LIMIT = PAGE_ITEMS


class ListPage(BaseModel):
    """One page of a list."""

    items: list[dict[str, Any]] = Field(description="The items, in the order of the list")
    next_cursor: str | None = Field(description="`cursor` of the next page; null: this is the last one")


def page_of(name: str, answer: Mapping[str, Any]) -> ListPage:
    """A page that the master cut: its `items`, and `next`, the key after which it goes on."""
    following = answer.get("next")
    cursor = None if following is None else _write(name, str(following))
    return ListPage(items=answer.get("items", []), next_cursor=cursor)


def cut(name: str, items: Sequence[dict[str, Any]], key: str, limit: int, cursor: str | None) -> ListPage:
    """A page of a list that is known whole, in the order of its items' `key`: all words, or all counts."""
    items = sorted(items, key=lambda item: _order(str(item[key])))
    if cursor is not None:
        after = _read(name, cursor)
        items = [item for item in items if _order(str(item[key])) > _order(after)]
    following = str(items[limit - 1][key]) if len(items) > limit else None
    return page_of(name, {"items": items[:limit], "next": following})


def after_of(name: str, cursor: str | None) -> int | None:
    """The count in a cursor; None when there is no cursor. Raises Problem BAD_CURSOR."""
    if cursor is None:
        return None
    text = _read(name, cursor)
    if not _is_count(text):
        raise _bad(cursor)
    return int(text)


def _write(name: str, key: str) -> str:
    return base64.urlsafe_b64encode(f"{name}:{key}".encode()).decode().rstrip("=")


def _read(name: str, cursor: str) -> str:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise _bad(cursor) from None
    head, _, key = text.partition(":")
    if head != name or not key:
        raise _bad(cursor)
    return key


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX


def _order(key: str) -> tuple[int, int, str]:
    return (0, int(key), "") if _is_count(key) else (1, 0, key)


def _bad(cursor: str) -> Problem:
    text = f"cursor is {quoted(cursor)}, which is not a next_cursor of this list; begin without one"
    return Problem(text, code="BAD_CURSOR", errors=[{"field": "cursor", "code": "BAD_CURSOR", "message": text}])
