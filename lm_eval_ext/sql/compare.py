"""When is a prediction's result the gold's? Named, versioned answers.

``reference`` is the headline: what the authors of MAGNIFICo did, so that numbers compare with
published ones. ``strict`` is what a careful reader of SQL would call the same result.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from lm_eval_ext.errors import OptionError
from lm_eval_ext.sql.ordering import Order, order_of
from lm_eval_ext.sql.tolerance import among
from lm_eval_ext.sql.values import Failure, Row, Rows


@dataclass(frozen=True)
class Gold:
    """A gold query that ran, and the means to ask its database more."""

    sql: str
    result: Rows
    run: Callable[[str], Rows | Failure]


class Expected(Protocol):
    """What a semantics has learnt from a gold, to hold predictions against."""

    def matches(self, predicted: Rows) -> bool:
        """Whether the prediction's result is right."""


@dataclass(frozen=True)
class Semantics:
    """A rule for comparing results.

    Attributes:
        name: What users choose it by.
        version: Rises whenever any verdict could change; goes into signatures.
        summary: One line for a reader.
        prepare: Called once per gold.
    """

    name: str
    version: int
    summary: str
    prepare: Callable[[Gold], Expected]

    @property
    def signature(self) -> str:
        """Name and version, as ``strict-v1``."""
        return f"{self.name}-v{self.version}"


@dataclass(frozen=True)
class ReferenceExpected:
    """The authors' rule (fact sheet, "The authors' evaluator").

    Right if there are as many rows, and at each position the *sets* of the row's values are
    equal. So the order of rows matters even where the gold asks for none; the order of columns
    and repeated values within a row never do; floats must be equal to the last bit, and
    integers equal floats of the same value.

    Not copied from the authors' program, since no model is to gain or lose by it: a gold that
    raises was compared as if it had 6 rows (here: gold_error); the file was opened for writing
    and committed; stdev was not registered, so golds with it raised; a prediction that is no
    query at all (empty, only a comment) counted as an empty result (here: prediction_error).
    """

    rows: list[Row]

    def matches(self, predicted: Rows) -> bool:
        """Whether the prediction's result is right."""
        if len(self.rows) != len(predicted.rows):
            return False
        return all(
            gold == row or set(gold) == set(row)
            for gold, row in zip(self.rows, predicted.rows, strict=True)
        )


@dataclass(frozen=True)
class StrictExpected:
    """Multiset of rows; ordered where the gold orders; ties and float noise allowed for.

    - As many columns, in the same order (their names do not matter); as many rows. Values are
      compared by :func:`~lm_eval_ext.sql.tolerance.close`.
    - Where the gold's outermost query has no ORDER BY, rows may come in any order.
    - Where it has one, rows of the same sort key may come in any order, and where LIMIT or
      OFFSET cuts through such rows, any of them will do. For this the gold is run once more
      without its LIMIT and with its sort keys (:mod:`lm_eval_ext.sql.ordering`), and what
      comes must fit the gold's own result.
    - Where that cannot be derived (a compound query that sorts by an expression, a LIMIT that
      is computed, DISTINCT with a sort key that is not selected, an alias within a sort
      expression, random()), rows must stand exactly as the gold's.
    - Not covered: a LIMIT without ORDER BY, or ties that a *sub*query's LIMIT cuts through:
      there the rows that SQLite happens to give for the gold are taken for the right ones.
      Sort keys that are result columns are compared byte by byte, whatever their collation.

    Attributes:
        columns: How many columns the gold has.
        groups: For each run of positions the rows that may stand there, in any order.
    """

    columns: int
    groups: tuple[tuple[int, int, list[Row]], ...]

    def matches(self, predicted: Rows) -> bool:
        """Whether the prediction's result is right."""
        size = self.groups[-1][1] if self.groups else 0
        if len(predicted.columns) != self.columns or len(predicted.rows) != size:
            return False
        return all(among(predicted.rows[start:end], rows) for start, end, rows in self.groups)


def _prepare_reference(gold: Gold) -> Expected:
    return ReferenceExpected(gold.result.rows)


def _prepare_strict(gold: Gold) -> Expected:
    columns, rows = len(gold.result.columns), gold.result.rows
    order = order_of(gold.sql, gold.result.columns)
    if order is None:
        return StrictExpected(columns, ((0, len(rows), rows),))
    if order.helper is not None:
        helped = gold.run(order.helper)
        if isinstance(helped, Rows):
            expected = StrictExpected(columns, _groups(order, helped.rows))
            if len(helped.columns) == columns + order.added and expected.matches(gold.result):
                return expected
    return StrictExpected(columns, tuple((i, i + 1, [row]) for i, row in enumerate(rows)))


def _groups(order: Order, rows: list[Row]) -> tuple[tuple[int, int, list[Row]], ...]:
    """Cuts all sorted rows where the sort key changes, and lays the gold's LIMIT over them."""
    last = len(rows) if order.limit is None else min(len(rows), order.offset + order.limit)
    groups: list[tuple[int, int, list[Row]]] = []
    start = 0
    while start < last:
        key = [rows[start][i] for i in order.key_columns]
        end = start + 1
        while end < len(rows) and [rows[end][i] for i in order.key_columns] == key:
            end += 1
        if end > order.offset:
            tied: list[Row] = [row[: len(row) - order.added] for row in rows[start:end]]
            first = max(start, order.offset) - order.offset
            groups.append((first, min(end, last) - order.offset, tied))
        start = end
    return tuple(groups)


SEMANTICS = {
    semantics.name: semantics
    for semantics in (
        Semantics(
            "reference",
            1,
            "the authors': same number of rows, same set of values at each row position",
            _prepare_reference,
        ),
        Semantics(
            "strict",
            1,
            "multiset of rows, in the gold's order where it has one; ties and float noise allowed",
            _prepare_strict,
        ),
    )
}
"""All semantics by name."""


def find_semantics(name: Any) -> Semantics:
    """Returns a semantics by its name.

    Raises:
        OptionError: There is none of that name.
    """
    if name not in SEMANTICS:
        raise OptionError(f"unknown semantics {name!r}; choose one of: {', '.join(SEMANTICS)}")
    return SEMANTICS[name]
