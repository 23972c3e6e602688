"""The closed rounds of one run, in order and each once, from events and lists that overlap and have gaps.

Pure. A round comes as a row when it is closed, and again with its evaluation or with the reason for having none: only
then it is told. Rounds are told in order by the master, so what is before a told one waits for nothing any more.
"""

from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]


@dataclass
class Ledger:
    """`last` is the newest round that was told."""

    last: int = 0
    _rows: dict[int, Row] = field(default_factory=dict)
    _texts: dict[int, str] = field(default_factory=dict)

    def note(self, row: Row, text: str = "") -> None:
        """A row, perhaps known before; `text` is its line in the log."""
        number = row.get("round")
        if not isinstance(number, int) or number <= self.last:
            return
        self._rows[number] = {**self._rows.get(number, {}), **row}
        if text or row.get("eval_loss") is not None:
            self._texts[number] = text or line_of(row)

    def take(self, *, everything: bool = False) -> list[tuple[Row, str]]:
        """The rounds that can be told now, each with its line; `everything`: nothing more will be known of any."""
        upto = max(self._rows if everything else self._texts, default=self.last)
        ready = sorted(number for number in self._rows if number <= upto)
        self.last = max(self.last, upto)
        rows = [self._rows.pop(number) for number in ready]
        return [(row, self._texts.pop(number, "") or line_of(row)) for number, row in zip(ready, rows, strict=True)]


def newest_told(snapshot: dict[str, Any], run: str) -> int | None:
    """The newest round that the log has told, for whoever begins to follow now; None if another run is current."""
    if (snapshot.get("run") or {}).get("id") != run:
        return None
    rows = snapshot.get("history") or []
    return max((int(row["round"]) for row in rows if row.get("eval_loss") is not None), default=0)


def line_of(row: Row) -> str:
    """The line of a round as the master writes it."""
    line = f"round={row['round']} workers={row.get('workers')}"
    if row.get("eval_loss") is not None:
        return f"{line} eval_loss={row['eval_loss']:.4f} eval_acc={row.get('eval_accuracy') or 0:.4f}"
    return line if row.get("train_loss") is None else f"{line} train_loss={row['train_loss']:.4f}"
