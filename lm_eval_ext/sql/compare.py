"""Rules by which a prediction's result equals the gold's, named and versioned.

``reference`` is the rule of MAGNIFICo's authors, for comparison with published numbers; ``strict``
is equality by the meaning of SQL; ``sets`` forgives what either of them forgives, and is used on
rows that this package made. ``spider``, ``spider-distinct`` and ``bird`` are the rules of two
public benchmarks (:mod:`lm_eval_ext.sql.official`).

Worker processes import this module: standard library only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from lm_eval_ext.errors import OptionError
from lm_eval_ext.sql.difference import Difference, columns_differ, name_column_order, row_difference
from lm_eval_ext.sql.matching import can_pair_all, close, close_rows
from lm_eval_ext.sql.official import (
    BirdExpected,
    SpiderExpected,
    drop_distinct,
    join_split_operators,
    mentions_order_by,
)
from lm_eval_ext.sql.ordering import Order, order_of
from lm_eval_ext.sql.values import Failure, Row, Rows, Value


@dataclass(frozen=True)
class Gold:
    """A gold query with its result, and a function for further queries on its database.

    Attributes:
        sql: The query, as it was run.
        result: Its result.
        run: Runs another query on the same database.
    """

    sql: str
    result: Rows
    run: Callable[[str], Rows | Failure]


class Expected(Protocol):
    """A gold's result, prepared for comparison with predictions."""

    def matches(self, predicted: Rows) -> bool:
        """Return whether the prediction's result is correct."""

    def difference(self, predicted: Rows) -> Difference:
        """Return how the result of a wrong prediction differs from the gold's."""


def as_written(sql: str) -> str:
    """Return a query as it is."""
    return sql


@dataclass(frozen=True)
class Semantics:
    """A rule for comparing results.

    Attributes:
        name: What users choose it by.
        version: Rises whenever any verdict could change; part of signatures.
        prepare: Called once per gold.
        suite_rule: The name of the rule for databases of a suite (:mod:`lm_eval_ext.sql.suite`).
        rewrite: Returns the text that is run for a query, of a gold or of a prediction.
    """

    name: str
    version: int
    prepare: Callable[[Gold], Expected]
    suite_rule: str
    rewrite: Callable[[str], str] = as_written

    @property
    def signature(self) -> str:
        """Name and version, as ``strict-v1``."""
        return f"{self.name}-v{self.version}"


@dataclass(frozen=True)
class ReferenceExpected:
    """The rule of MAGNIFICo's authors, read from their evaluation program.

    Correct if there are as many rows, and at each position the *sets* of the row's values are
    equal. So the order of rows matters even if the gold asks for none; the order of columns and
    repeated values within a row never do. Floats must be equal to the last bit, and integers equal
    floats of the same value.

    docs/sql.md ("Semantics") lists what is not copied from their program.

    Attributes:
        result: The gold's result.
    """

    result: Rows

    def matches(self, predicted: Rows) -> bool:
        """Return whether the prediction's result is correct."""
        rows = self.result.rows
        return len(rows) == len(predicted.rows) and all(
            gold == row or set(gold) == set(row)
            for gold, row in zip(rows, predicted.rows, strict=True)
        )

    def difference(self, predicted: Rows) -> Difference:
        """Return how the result of a wrong prediction differs from the gold's."""
        if len(predicted.columns) != len(self.result.columns):
            return columns_differ(self.result, predicted)
        return row_difference(self.result, predicted, normal=exact_value_set)


class TiedRows(NamedTuple):
    """Positions of a result, and the rows that may stand there in any order.

    Attributes:
        start: The first position.
        end: The position after the last one.
        rows: At least as many rows as positions; more where a LIMIT cuts through tied rows.
    """

    start: int
    end: int
    rows: list[Row]


@dataclass(frozen=True)
class StrictExpected:
    """Multiset of rows, ordered where the gold orders, with tolerance for ties and floats.

    - As many columns, in the same order (their names do not matter); as many rows. Values are
      compared by :func:`~lm_eval_ext.sql.matching.close`.
    - Where the gold's outermost query has no ORDER BY, rows may come in any order.
    - Where it has one, rows of the same sort key may come in any order, and if LIMIT or OFFSET
      cuts through such rows, any of them is accepted. For this the gold is run once more without
      its LIMIT and with its sort keys (:mod:`lm_eval_ext.sql.ordering`); the result must be
      consistent with the gold's.
    - Where that cannot be derived (a compound query that sorts by an expression, a computed
      LIMIT, DISTINCT with a sort key that is not selected, an alias within a sort expression,
      random()), rows must come exactly in the gold's order.
    - Not covered: a LIMIT without ORDER BY, and ties that a *sub*query's LIMIT cuts through.
      There only the rows that SQLite gives for the gold are accepted. Sort keys that are result
      columns are compared byte by byte, whatever their collation.

    Attributes:
        result: The gold's result.
        groups: The rows that may stand at each position, in order.
        as_sets: Whether rows count as the sets of their values (``sets``); then the rows of
            ``groups`` are value sets.
    """

    result: Rows
    groups: Sequence[TiedRows]
    as_sets: bool = False

    def matches(self, predicted: Rows) -> bool:
        """Return whether the prediction's result is correct."""
        size = self.groups[-1].end if self.groups else 0
        if len(predicted.rows) != size:
            return False
        if not self.as_sets and len(predicted.columns) != len(self.result.columns):
            return False
        rows = predicted.rows
        if self.as_sets:
            rows = [value_set(row) for row in rows]
        return all(_stand_at(group, rows) for group in self.groups)

    def difference(self, predicted: Rows) -> Difference:
        """Return how the result of a wrong prediction differs from the gold's.

        A row that a tie allows is not counted as wrong.
        """
        if len(predicted.columns) != len(self.result.columns):
            return columns_differ(self.result, predicted)
        if self.as_sets:
            return row_difference(self.result, predicted, normal=value_set, tolerant=True)
        difference = row_difference(self.result, predicted, tolerant=True)
        return name_column_order(difference, self.result, predicted)


def _stand_at(group: TiedRows, rows: list[Row]) -> bool:
    """Return whether the rows at the positions of a group may stand there."""
    if group.end - group.start == 1 == len(group.rows):
        return close_rows(rows[group.start], group.rows[0])
    return can_pair_all(rows[group.start : group.end], group.rows)


_SORTED_EXACTLY: list[set[type]] = [{str}, {int}]
"""The types of a row's values that can be sorted as they are, without tolerance."""


def value_set(row: Row) -> Row:
    """Return the distinct values of a row in a fixed order; numbers that are close count once."""
    types = set(map(type, row))
    if types in _SORTED_EXACTLY:
        return tuple(sorted(set(row)))  # type: ignore[type-var]
    numbers = sorted({value for value in row if isinstance(value, (int, float))})
    apart: list[int | float] = []
    for position, number in enumerate(numbers):
        if position == 0 or not close(numbers[position - 1], number):
            apart.append(number)
    no_numbers = {value for value in row if not isinstance(value, (int, float))}
    return (*apart, *sorted(no_numbers, key=repr))


def exact_value_set(row: Row) -> Row:
    """Return the distinct values of a row in a fixed order."""
    values = set(row)
    try:
        return tuple(sorted(values))  # type: ignore[type-var]
    except TypeError:  # of several types; an order within each type is enough
        pass
    numbers = [value for value in values if isinstance(value, (int, float))]
    no_numbers = [value for value in values if not isinstance(value, (int, float))]
    return (*sorted(numbers), *sorted(no_numbers, key=repr))


def _prepare_reference(gold: Gold) -> ReferenceExpected:
    return ReferenceExpected(gold.result)


def _prepare_strict(gold: Gold) -> StrictExpected:
    result = gold.result
    order = order_of(gold.sql, result.columns)
    if order is None:
        return StrictExpected(result, [TiedRows(0, len(result.rows), result.rows)])
    if order.helper is not None:
        ranked = gold.run(order.helper)
        if isinstance(ranked, Rows):
            expected = StrictExpected(result, _groups(order, ranked.rows))
            complete = len(ranked.columns) == len(result.columns) + order.added
            if complete and expected.matches(result):
                return expected
    exact_order = [
        TiedRows(position, position + 1, [row]) for position, row in enumerate(result.rows)
    ]
    return StrictExpected(result, exact_order)


def _prepare_sets(gold: Gold) -> StrictExpected:
    """Prepare as ``strict`` does, but let each row count as its set of values."""
    groups = [
        TiedRows(start, end, [value_set(row) for row in rows])
        for start, end, rows in _prepare_strict(gold).groups
    ]
    return StrictExpected(gold.result, groups, as_sets=True)


def _groups(order: Order, rows: list[Row]) -> list[TiedRows]:
    """Split all sorted rows where the sort key changes, within the gold's LIMIT."""
    last = len(rows)
    if order.limit is not None:
        last = min(last, order.offset + order.limit)
    groups: list[TiedRows] = []
    start = 0
    while start < last:
        key = _sort_key(order, rows[start])
        end = start + 1
        while end < len(rows) and _sort_key(order, rows[end]) == key:
            end += 1
        if end > order.offset:
            tied = [row[: len(row) - order.added] for row in rows[start:end]]
            group_start = max(start, order.offset) - order.offset
            group_end = min(end, last) - order.offset
            groups.append(TiedRows(group_start, group_end, tied))
        start = end
    return groups


def _sort_key(order: Order, row: Row) -> list[Value]:
    return [row[column] for column in order.key_columns]


def _prepare_spider(gold: Gold) -> SpiderExpected:
    return SpiderExpected(gold.result, ordered=mentions_order_by(gold.sql))


def _prepare_bird(gold: Gold) -> BirdExpected:
    return BirdExpected(gold.result, frozenset(gold.result.rows))


_ALL = (
    # The rule of MAGNIFICo's authors: as many rows, and at each position the same set of values
    Semantics("reference", 1, _prepare_reference, suite_rule="sets"),
    # Multiset of rows, in the gold's order where it has one; ties and float noise allowed
    Semantics("strict", 2, _prepare_strict, suite_rule="strict"),
    # As strict, but neither the order of columns nor repeated values in a row matter
    Semantics("sets", 1, _prepare_sets, suite_rule="sets"),
    # Spider's official evaluator: any order of columns, no DISTINCT
    Semantics("spider", 1, _prepare_spider, suite_rule="spider", rewrite=drop_distinct),
    # The same with --keep_distinct
    Semantics(
        "spider-distinct",
        1,
        _prepare_spider,
        suite_rule="spider-distinct",
        rewrite=join_split_operators,
    ),
    # BIRD's evaluator: sets of rows
    Semantics("bird", 1, _prepare_bird, suite_rule="bird"),
)

SEMANTICS = {semantics.name: semantics for semantics in _ALL}
"""All semantics by name."""


def find_semantics(name: str) -> Semantics:
    """Return a semantics by its name.

    Raises:
        OptionError: The name is unknown.
    """
    if name not in SEMANTICS:
        raise OptionError(f"unknown semantics {name!r}; choose one of: {', '.join(SEMANTICS)}")
    return SEMANTICS[name]
