"""How the result of a wrong prediction differs from the gold's, as rows and in words.

Worker processes import this module: standard library only.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from lm_eval_ext.sql.matching import unpaired
from lm_eval_ext.sql.permutation import same_rows_in_some_column_order, sorted_values
from lm_eval_ext.sql.values import Row, Rows, Value
from lm_eval_ext.text import counted, one_line

DifferenceKind = Literal["columns", "rows", "column_order", "order", "pairing"]
"""How two results differ: in the number of columns; in their rows; in nothing but the order of
columns; in nothing but the order of rows; or in nothing but which values stand together in a row.
"""

MAX_CELLS = 200_000
"""Cells of both results up to which rows are compared; beyond, a difference is one of sizes."""

_SHOWN = 60
"""Most characters of a value in a sentence."""


@dataclass(frozen=True)
class Difference:
    """How the result of a wrong prediction differs from the gold's.

    Attributes:
        kind: What differs.
        gold_columns: Columns of the gold's result.
        predicted_columns: Columns of the prediction's result.
        gold_rows: Rows of the gold's result; distinct ones under ``bird``.
        predicted_rows: Rows of the prediction's result; distinct ones under ``bird``.
        missing: Rows of the gold's result that the prediction's lacks.
        extra: Rows of the prediction's result that the gold's lacks.
        compared: Whether rows were compared, which too large results are not.
    """

    kind: DifferenceKind
    gold_columns: int
    predicted_columns: int
    gold_rows: int
    predicted_rows: int
    missing: Sequence[Row] = field(default=(), repr=False)
    extra: Sequence[Row] = field(default=(), repr=False)
    compared: bool = True

    def as_text(self) -> str:
        """Return the difference as one line for a reader."""
        match self.kind:
            case "columns":
                columns = counted(self.predicted_columns, "column")
                return f"{columns} instead of {self.gold_columns:,}"
            case "column_order":
                return "the right columns in another order"
            case "order":
                return "the right rows in another order"
            case "pairing":
                return "the right values, but others stand together in a row"
            case _:
                return self._rows_as_text()

    def _rows_as_text(self) -> str:
        missing, extra = len(self.missing), len(self.extra)
        if not self.predicted_rows:
            return f"no rows instead of {self.gold_rows:,}"
        if not self.gold_rows:
            return f"{counted(self.predicted_rows, 'row')} instead of none"
        if self.gold_rows == self.predicted_rows:
            return self._changes_as_text()
        sizes = f"{counted(self.predicted_rows, 'row')} instead of {self.gold_rows:,}"
        if not self.compared:
            return sizes
        if missing == self.gold_rows:
            return f"{sizes}: none right"
        counts = []
        if missing:
            counts.append(f"{missing:,} missing")
        if extra:
            counts.append(f"{extra:,} too many")
        return f"{sizes}: {', '.join(counts)}"

    def _changes_as_text(self) -> str:
        """Return the difference of results with as many rows."""
        if not self.compared:
            return f"{counted(self.gold_rows, 'row')}, but not all of them right"
        if self.gold_rows == self.gold_columns == self.predicted_columns == 1:
            (gold,) = self.missing[0]
            (predicted,) = self.extra[0]
            return f"{shown_value(predicted)} instead of {shown_value(gold)}"
        return f"{len(self.missing):,} of {counted(self.gold_rows, 'row')} wrong"


def shown_value(value: Value, limit: int = _SHOWN) -> str:
    """Return a value as one line: NULL, a number, 'text', or x'00' for a blob.

    Args:
        value: The value.
        limit: Most characters; a longer value loses its middle.
    """
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return f"'{one_line(value, limit=limit)}'"
    if isinstance(value, bytes):
        return f"x'{one_line(value[:limit].hex(), limit=limit)}'"
    return one_line(str(value), limit=limit)


def columns_differ(gold: Rows, predicted: Rows) -> Difference:
    """Return the difference of two results with different numbers of columns."""
    return Difference(
        "columns",
        gold_columns=len(gold.columns),
        predicted_columns=len(predicted.columns),
        gold_rows=len(gold.rows),
        predicted_rows=len(predicted.rows),
    )


def row_difference(
    gold: Rows,
    predicted: Rows,
    *,
    normal: Callable[[Row], Row] | None = None,
    tolerant: bool = False,
    otherwise: DifferenceKind = "order",
) -> Difference:
    """Return the difference of two results that are not equal.

    Args:
        gold: The gold's result.
        predicted: The prediction's result.
        normal: Returns what counts of a row; None: all its values in their order.
        tolerant: Whether floats may differ by rounding.
        otherwise: The kind of the difference if the rows are the same.
    """
    cells = len(gold.rows) * len(gold.columns) + len(predicted.rows) * len(predicted.columns)
    compared = cells <= MAX_CELLS
    missing: list[Row] = []
    extra: list[Row] = []
    if compared:
        missing, extra = unpaired(gold.rows, predicted.rows, tolerant=tolerant and normal is None)
    if normal is not None and missing and extra:
        # Only what is unequal as it is gets a normal form, since these take time.
        missing, extra = _unpaired_normal(missing, extra, normal, tolerant=tolerant)
    return Difference(
        "rows" if missing or extra or not compared else otherwise,
        gold_columns=len(gold.columns),
        predicted_columns=len(predicted.columns),
        gold_rows=len(gold.rows),
        predicted_rows=len(predicted.rows),
        missing=missing,
        extra=extra,
        compared=compared,
    )


def name_column_order(difference: Difference, gold: Rows, predicted: Rows) -> Difference:
    """Return the difference of two results, as one of column order if it is nothing else."""
    missing, extra = difference.missing, difference.extra
    if difference.kind != "rows" or not missing or len(gold.rows) != len(predicted.rows):
        return difference
    # Most results differ in more than the order of columns, which a single row shows.
    if sorted_values(missing[0]) not in {sorted_values(row) for row in extra}:
        return difference
    if same_rows_in_some_column_order(gold.rows, predicted.rows, max_extra_cells=MAX_CELLS):
        return replace(difference, kind="column_order")
    return difference


def _unpaired_normal(
    rows: list[Row], partners: list[Row], normal: Callable[[Row], Row], *, tolerant: bool
) -> tuple[list[Row], list[Row]]:
    """Return the rows without a partner, and the partners without a row, by their normal forms."""
    normal_rows = [normal(row) for row in rows]
    normal_partners = [normal(partner) for partner in partners]
    rows_left, partners_left = unpaired(normal_rows, normal_partners, tolerant=tolerant)
    return (
        _originals(rows_left, rows, normal_rows),
        _originals(partners_left, partners, normal_partners),
    )


def _originals(
    unpaired_normal_rows: list[Row], rows: list[Row], normal_rows: list[Row]
) -> list[Row]:
    """Return the rows whose normal forms were not paired."""
    if len(unpaired_normal_rows) == len(rows):
        return rows
    rows_by_normal: dict[Row, list[Row]] = defaultdict(list)
    for normal_row, row in zip(normal_rows, rows, strict=True):
        rows_by_normal[normal_row].append(row)
    return [rows_by_normal[row].pop() for row in unpaired_normal_rows]
