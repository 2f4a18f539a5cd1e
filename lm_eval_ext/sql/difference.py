"""How the result of a wrong prediction differs from the gold's, counted and in words.

Worker processes import this module: standard library only.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from lm_eval_ext.sql.values import Row

DifferenceKind = Literal["columns", "rows", "order", "pairing"]
"""How two results differ: in the number of columns; in their rows; in nothing but the order of
rows; or in nothing but which values stand together in a row."""


@dataclass(frozen=True)
class Difference:
    """How the result of a wrong prediction differs from the gold's.

    Attributes:
        kind: What differs.
        gold_columns: Columns of the gold's result.
        predicted_columns: Columns of the prediction's result.
        gold_rows: Rows of the gold's result.
        predicted_rows: Rows of the prediction's result.
        missing: Rows of the gold's result that the prediction's lacks.
        extra: Rows of the prediction's result that the gold's lacks.
    """

    kind: DifferenceKind
    gold_columns: int
    predicted_columns: int
    gold_rows: int
    predicted_rows: int
    missing: Sequence[Row] = field(default=(), repr=False)
    extra: Sequence[Row] = field(default=(), repr=False)

    def as_text(self) -> str:
        """Return the difference as one line for a reader."""
        match self.kind:
            case "columns":
                columns = with_noun(self.predicted_columns, "column")
                return f"{columns} instead of {self.gold_columns:,}"
            case "order":
                return "the right rows in another order"
            case "pairing":
                return "the right values, but others stand together in a row"
            case _:
                return self._rows_as_text()

    def _rows_as_text(self) -> str:
        missing, extra = len(self.missing), len(self.extra)
        if self.gold_rows == self.predicted_rows:
            return f"{missing:,} of {with_noun(self.gold_rows, 'row')} differ"
        if not self.predicted_rows:
            return f"no rows instead of {self.gold_rows:,}"
        if not self.gold_rows:
            return f"{with_noun(self.predicted_rows, 'row')} instead of none"
        sizes = f"{with_noun(self.predicted_rows, 'row')} instead of {self.gold_rows:,}"
        if missing == self.gold_rows:
            return sizes
        counts = []
        if missing:
            counts.append(f"{missing:,} missing")
        if extra:
            counts.append(f"{extra:,} too many")
        return f"{sizes}: {', '.join(counts)}"


def with_noun(number: int, noun: str) -> str:
    """Return a number with its noun: "1 row", "2 rows"."""
    ending = "" if number == 1 else "s"
    return f"{number:,} {noun}{ending}"


def unmatched(rows: Sequence[Row], partners: Sequence[Row]) -> list[Row]:
    """Return the rows that have no equal partner; each partner counts once."""
    surplus = Counter(rows) - Counter(partners)
    return list(surplus.elements())
