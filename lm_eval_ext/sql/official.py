"""The comparisons of two public benchmarks, Spider and BIRD, by their own rules.

``spider`` follows the test-suite evaluation of Zhong et al. (2020), taoyds/test-suite-sql-eval, on
one database; ``bird`` follows BIRD's evaluation program (Li et al. 2023). Both compare values as
Python does: an integer equals a float of the same value, and floats must be equal to the last bit.
docs/sql.md ("Semantics") lists what is not copied.

Worker processes import this module: standard library only.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lm_eval_ext.sql.difference import Difference, columns_differ, row_difference
from lm_eval_ext.sql.values import Row, Rows, Value

_TOKEN = re.compile(
    r"""
      '[^']*' | "[^"]*" | `[^`]*` | \[[^\]]{0,1000}\]
    | --[^\n]* | /\*.*?(?:\*/|\Z)
    | (?P<distinct> \bdistinct\b )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""What may hold the word DISTINCT, and the keyword itself. A quotation mark without a partner
matches nothing."""

_CURRENT_YEAR = re.compile(r"YEAR\s*\(\s*CURDATE\s*\(\s*\)\s*\)\s*", re.IGNORECASE)

_SPLIT_OPERATORS = {"> =": ">=", "< =": "<=", "! =": "!="}


def join_split_operators(sql: str) -> str:
    """Return a query as the official evaluator runs it with ``--keep_distinct``.

    Operators that a tokenizer has split are joined, and MySQL's ``YEAR(CURDATE())`` is 2020.
    """
    for split, joined in _SPLIT_OPERATORS.items():
        sql = sql.replace(split, joined)
    return _CURRENT_YEAR.sub("2020", sql)


def drop_distinct(sql: str) -> str:
    """Return a query as the official evaluator runs it by default: without any DISTINCT."""

    def without_keyword(match: "re.Match[str]") -> str:
        return "" if match["distinct"] else match.group()

    return _TOKEN.sub(without_keyword, join_split_operators(sql))


def mentions_order_by(gold: str) -> bool:
    """Return whether the order of rows matters: whether the gold says ORDER BY anywhere."""
    return "order by" in gold.lower()


@dataclass(frozen=True)
class SpiderExpected:
    """Spider's rule: the same multiset of rows after some permutation of the columns.

    If the gold says ORDER BY, the rows must come in its order, ties included. Two empty results
    are equal, whatever their columns.

    Attributes:
        result: The gold's result.
        ordered: Whether the order of rows matters.
    """

    result: Rows
    ordered: bool

    def matches(self, predicted: Rows) -> bool:
        """Return whether the prediction's result is correct."""
        if len(self.result.rows) != len(predicted.rows):
            return False
        if self.result.rows == predicted.rows:
            return True
        if len(self.result.columns) != len(predicted.columns):
            return False
        if self.ordered:
            gold_columns = Counter(zip(*self.result.rows, strict=True))
            return gold_columns == Counter(zip(*predicted.rows, strict=True))
        return same_rows_in_some_column_order(self.result.rows, predicted.rows)

    def difference(self, predicted: Rows) -> Difference:
        """Return how the result of a wrong prediction differs from the gold's."""
        if len(self.result.columns) != len(predicted.columns):
            return columns_differ(self.result, predicted)
        difference = row_difference(
            self.result, predicted, normal=sorted_values, otherwise="pairing"
        )
        if difference.kind != "pairing" or not self.ordered:
            return difference
        # The rows have the same values, so there is at least one on either side.
        if same_rows_in_some_column_order(self.result.rows, predicted.rows):
            return replace(difference, kind="order")
        return difference


@dataclass(frozen=True)
class BirdExpected:
    """BIRD's rule: the same set of rows; neither their order nor their number matters.

    Attributes:
        result: The gold's result.
        rows: Its distinct rows.
    """

    result: Rows
    rows: frozenset[Row]

    def matches(self, predicted: Rows) -> bool:
        """Return whether the prediction's result is correct."""
        return self.rows == set(predicted.rows)

    def difference(self, predicted: Rows) -> Difference:
        """Return how the result of a wrong prediction differs from the gold's."""
        if len(self.result.columns) != len(predicted.columns):
            return columns_differ(self.result, predicted)
        gold = self.result._replace(rows=list(self.rows))
        distinct = predicted._replace(rows=list(set(predicted.rows)))
        return row_difference(gold, distinct)


def sorted_values(row: Row) -> Row:
    """Return the values of a row in a fixed order."""
    return tuple(sorted(row, key=_sort_key))


def _sort_key(value: Value) -> tuple[str, str]:
    kind = "number" if isinstance(value, (int, float)) else type(value).__name__
    return kind, repr(value)


_FREE_CELLS = 10_000_000
"""Cells that a search for a permutation may read beside twice those of the result: seconds."""


def same_rows_in_some_column_order(gold: Sequence[Row], predicted: Sequence[Row]) -> bool:
    """Return whether some permutation of the predicted columns gives the gold's multiset of rows.

    The columns of the gold are assigned one after the other; as soon as the rows of the assigned
    columns differ, another column is tried. A result whose columns are so alike that this takes too
    long counts as different; the limit is a number of cells, not of seconds.

    Args:
        gold: Rows, at least one.
        predicted: As many rows with as many columns.
    """
    if Counter(gold) == Counter(predicted):
        return True
    search = _PermutationSearch(
        list(zip(*gold, strict=True)),
        list(zip(*predicted, strict=True)),
        cells_left=2 * len(gold) * len(gold[0]) + _FREE_CELLS,
    )
    start = [0] * len(gold)
    return search.extend(start, start, position=0)


@dataclass
class _PermutationSearch:
    """A depth-first search for the predicted column that is each column of the gold.

    Attributes:
        gold_columns: The values of each column of the gold.
        predicted_columns: The values of each predicted column.
        cells_left: Cells that the search may still read.
        assigned: The predicted columns in use.
    """

    gold_columns: list[tuple[Value, ...]]
    predicted_columns: list[tuple[Value, ...]]
    cells_left: int
    assigned: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        gold_contents = [_content(column) for column in self.gold_columns]
        predicted_contents = [_content(column) for column in self.predicted_columns]
        self._candidates = [
            [index for index, content in enumerate(predicted_contents) if content == gold_content]
            for gold_content in gold_contents
        ]
        # Columns that can be only one, or that tell many rows apart, are assigned first.
        self._order = sorted(
            range(len(self.gold_columns)),
            key=lambda index: (len(self._candidates[index]), -len(gold_contents[index])),
        )

    def extend(self, gold_classes: list[int], predicted_classes: list[int], position: int) -> bool:
        """Assign the remaining columns of the gold.

        Args:
            gold_classes: For each row of the gold a number that is the same for rows that are
                equal in the columns assigned so far.
            predicted_classes: The same numbers for the predicted rows.
            position: How many columns are assigned.
        """
        if position == len(self._order):
            return True
        gold_index = self._order[position]
        tried: set[tuple[Value, ...]] = set()
        for candidate in self._candidates[gold_index]:
            column = self.predicted_columns[candidate]
            if candidate in self.assigned or column in tried:
                continue
            tried.add(column)
            self.cells_left -= 2 * len(column)
            if self.cells_left < 0:
                return False
            numbers: dict[tuple[int, Value], int] = {}
            finer_gold = _refine(gold_classes, self.gold_columns[gold_index], numbers)
            finer_predicted = _refine(predicted_classes, column, numbers)
            if Counter(finer_gold) != Counter(finer_predicted):
                continue
            self.assigned.add(candidate)
            if self.extend(finer_gold, finer_predicted, position + 1):
                return True
            self.assigned.remove(candidate)
        return False


def _content(column: Sequence[Value]) -> frozenset[tuple[Value, int]]:
    """Return the values of a column, with how often each occurs."""
    return frozenset(Counter(column).items())


def _refine(
    classes: list[int], column: Sequence[Value], numbers: dict[tuple[int, Value], int]
) -> list[int]:
    """Return a number for each row that is the same for equal rows, with one more column.

    Args:
        classes: The numbers without the column.
        column: The values of the column.
        numbers: The number by class and value; new ones are added.
    """
    return [numbers.setdefault(pair, len(numbers)) for pair in zip(classes, column, strict=True)]
