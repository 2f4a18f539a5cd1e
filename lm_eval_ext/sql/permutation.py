"""Whether two results are the same up to the order of their columns.

Worker processes import this module: standard library only.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from lm_eval_ext.sql.values import Row, Value


def sorted_values(row: Row) -> Row:
    """Return the values of a row in a fixed order."""
    return tuple(sorted(row, key=_sort_key))


def _sort_key(value: Value) -> tuple[str, str]:
    if isinstance(value, (int, float)):
        # An integer and a float that are equal have the same key.
        return "number", repr(float(value))
    return type(value).__name__, repr(value)


MAX_EXTRA_CELLS = 10_000_000
"""Cells that a search may read beside twice those of the result: a few seconds."""


def same_rows_in_some_column_order(
    gold: Sequence[Row], predicted: Sequence[Row], *, max_extra_cells: int = MAX_EXTRA_CELLS
) -> bool:
    """Return whether some permutation of the predicted columns gives the gold's multiset of rows.

    The columns of the gold are assigned one after the other; as soon as the rows of the assigned
    columns differ, another column is tried. A result whose columns are so alike that this takes too
    long counts as different; the limit is a number of cells, not of seconds.

    Args:
        gold: Rows, at least one.
        predicted: As many rows with as many columns.
        max_extra_cells: Cells that the search may read beside twice those of the result.
    """
    if Counter(gold) == Counter(predicted):
        return True
    search = _PermutationSearch(
        list(zip(*gold, strict=True)),
        list(zip(*predicted, strict=True)),
        cells_left=2 * len(gold) * len(gold[0]) + max_extra_cells,
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
