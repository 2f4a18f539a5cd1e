"""Rules by which a prediction's result equals the gold's, named and versioned.

``reference`` is the rule of MAGNIFICo's authors, for comparison with published numbers; ``strict``
is equality by the meaning of SQL; ``sets`` forgives what either of them forgives, and is used on
rows that this package made. Worker processes import this module: standard library only.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lm_eval_ext.errors import OptionError
from lm_eval_ext.sql.difference import Difference, unmatched
from lm_eval_ext.sql.ordering import Order, order_of
from lm_eval_ext.sql.values import Failure, Row, Rows, Value

RELATIVE, ABSOLUTE, ZERO = 1e-9, 1e-12, 5e-14
"""Tolerances for two numbers of which at least one is a float. Adding 100,000 floats in another
order changes a sum by about 1e-11, relative to the sum or, near zero, to its terms: so the absolute
one holds where one of the two is as good as zero. Rounding that a query asks for (``round(x, 6)``)
still counts as a difference."""


def close(a: Value, b: Value) -> bool:
    """Whether two values are equal, with tolerance if one of them is a float.

    Integers equal floats of the same value; decimals are equal by all their digits. A text never
    equals a number or a blob; NULL equals NULL.
    """
    if type(a) is float or type(b) is float:
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            near_zero = ABSOLUTE if min(abs(a), abs(b)) < ZERO else 0.0
            return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=near_zero)
        return False
    return type(a) is type(b) and a == b


def close_rows(a: Row, b: Row) -> bool:
    """Whether two rows are equal value by value, in the order of the columns."""
    return len(a) == len(b) and all(map(close, a, b))


def among(rows: Sequence[Row], others: Sequence[Row]) -> bool:
    """Whether each row can be paired with a different one of the others that equals it.

    With as many rows as others, this is equality of multisets. Rows that are exactly equal are
    paired first, the rest by a maximum matching: equality with tolerance is not transitive, so
    that neither sorting nor rounding can decide it.
    """
    wanted, left = Counter(rows), Counter(others)
    wanted, left = wanted - left, left - wanted
    if not wanted:
        return True
    candidates = _by_skeleton(left)
    return all(
        _all_paired(group, candidates.get(skeleton, []))
        for skeleton, group in _by_skeleton(wanted).items()
    )


def _by_skeleton(rows: "Counter[Row]") -> dict[tuple[object, ...], list[Row]]:
    """Groups rows by what must be exactly equal: the positions of numbers, and all other cells."""
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows.elements():
        groups[tuple(_NUMBER if isinstance(v, (int, float)) else v for v in row)].append(row)
    return groups


_NUMBER = object()


def _all_paired(rows: list[Row], others: list[Row]) -> bool:
    """Whether a matching of close rows covers all of ``rows`` (augmenting paths)."""
    numbers = [i for i, value in enumerate(rows[0]) if isinstance(value, (int, float))]
    if not numbers or len(rows) > len(others):
        return False  # equal rows were paired before
    column = max(numbers, key=lambda i: len({row[i] for row in others}))  # the most selective
    others = sorted(others, key=lambda row: _at(row, column))
    keys = [_at(row, column) for row in others]

    def partners(row: Row) -> list[int]:
        x = _at(row, column)
        # Wider than isclose, which measures from the larger of the two.
        reach = 0.0 if math.isinf(x) else 2 * max(abs(x) * RELATIVE, ABSOLUTE)
        near = range(bisect_left(keys, x - reach), bisect_right(keys, x + reach))
        return [i for i in near if close_rows(row, others[i])]

    edges = [partners(row) for row in rows]
    owner: dict[int, int] = {}
    return all(_augment(start, edges, owner) for start in range(len(rows)))


def _augment(start: int, edges: list[list[int]], owner: dict[int, int]) -> bool:
    """Gives ``start`` a partner, moving earlier pairs if necessary (breadth-first search)."""
    came_from: dict[int, int] = {}
    partner_of_row: dict[int, int] = {}
    queue = deque([start])
    while queue:
        row = queue.popleft()
        for other in edges[row]:
            if other in came_from:
                continue
            came_from[other] = row
            if other in owner:
                partner_of_row[owner[other]] = other
                queue.append(owner[other])
                continue
            free: int | None = other
            while free is not None:  # move partners along the path
                taker = came_from[free]
                owner[free], free = taker, partner_of_row.get(taker)
            return True
    return False


def _at(row: Row, column: int) -> float:
    value = row[column]
    return float(value) if isinstance(value, (int, float)) else math.nan


@dataclass(frozen=True)
class Gold:
    """A gold query with its result, and a function for further queries on its database."""

    sql: str
    result: Rows
    run: Callable[[str], Rows | Failure]


class Expected(Protocol):
    """A gold's result, prepared for comparison with predictions."""

    def matches(self, predicted: Rows) -> bool:
        """Whether the prediction's result is correct."""

    def difference(self, predicted: Rows) -> Difference:
        """Return how the result of a wrong prediction differs from the gold's."""


@dataclass(frozen=True)
class Semantics:
    """A rule for comparing results.

    Attributes:
        name: What users choose it by.
        version: Rises whenever any verdict could change; part of signatures.
        prepare: Called once per gold.
        suite_rule: The name of the rule for databases of a suite (:mod:`lm_eval_ext.sql.suite`).
    """

    name: str
    version: int
    prepare: Callable[[Gold], Expected]
    suite_rule: str

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
    """

    result: Rows

    def matches(self, predicted: Rows) -> bool:
        """Whether the prediction's result is correct."""
        rows = self.result.rows
        return len(rows) == len(predicted.rows) and all(
            gold == row or set(gold) == set(row)
            for gold, row in zip(rows, predicted.rows, strict=True)
        )

    def difference(self, predicted: Rows) -> Difference:
        """Return how the result of a wrong prediction differs from the gold's."""
        return _difference(self.result, predicted, value_set)


Group = tuple[int, int, list[Row]]
"""Start and end of a run of positions, and the rows that may stand there."""


@dataclass(frozen=True)
class StrictExpected:
    """Multiset of rows, ordered where the gold orders, with tolerance for ties and floats.

    - As many columns, in the same order (their names do not matter); as many rows. Values are
      compared by :func:`~lm_eval_ext.sql.compare.close`.
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
        columns: How many columns the gold has; None under ``sets``, where the rows of ``groups``
            are value sets.
        groups: One for each run of positions, in order.
        result: The gold's result.
    """

    columns: int | None
    groups: Sequence[Group]
    result: Rows

    def matches(self, predicted: Rows) -> bool:
        """Whether the prediction's result is correct."""
        size = self.groups[-1][1] if self.groups else 0
        if len(predicted.rows) != size:
            return False
        found = predicted.rows
        if self.columns is None:
            found = list(map(value_set, found))
        elif len(predicted.columns) != self.columns:
            return False
        return all(among(found[start:end], rows) for start, end, rows in self.groups)

    def difference(self, predicted: Rows) -> Difference:
        """Return how the result of a wrong prediction differs from the gold's."""
        if self.columns is None:
            return _difference(self.result, predicted, value_set)
        if len(predicted.columns) != self.columns:
            return _columns_differ(self.result, predicted)
        return _difference(self.result, predicted, _same_row)


def _same_row(row: Row) -> Row:
    return row


def _columns_differ(gold: Rows, predicted: Rows) -> Difference:
    return Difference(
        "columns",
        gold_columns=len(gold.columns),
        predicted_columns=len(predicted.columns),
        gold_rows=len(gold.rows),
        predicted_rows=len(predicted.rows),
    )


def _difference(gold: Rows, predicted: Rows, normal: Callable[[Row], Row]) -> Difference:
    """Return the difference of two results in rows, after a function has made each row normal."""
    gold_rows = list(map(normal, gold.rows))
    predicted_rows = list(map(normal, predicted.rows))
    missing = unmatched(gold_rows, predicted_rows)
    extra = unmatched(predicted_rows, gold_rows)
    return Difference(
        "rows" if missing or extra else "order",
        gold_columns=len(gold.columns),
        predicted_columns=len(predicted.columns),
        gold_rows=len(gold.rows),
        predicted_rows=len(predicted.rows),
        missing=missing,
        extra=extra,
    )


def value_set(row: Row) -> Row:
    """The distinct values of a row in a fixed order; numbers that are close count once."""
    numbers = sorted({value for value in row if isinstance(value, (int, float))})
    apart = [n for i, n in enumerate(numbers) if not i or not close(numbers[i - 1], n)]
    others = {value for value in row if not isinstance(value, (int, float))}
    return (*apart, *sorted(others, key=repr))


def _prepare_reference(gold: Gold) -> ReferenceExpected:
    return ReferenceExpected(gold.result)


def _prepare_strict(gold: Gold) -> StrictExpected:
    columns, rows = len(gold.result.columns), gold.result.rows
    order = order_of(gold.sql, gold.result.columns)
    if order is None:
        return StrictExpected(columns, [(0, len(rows), rows)], gold.result)
    if order.helper is not None:
        helped = gold.run(order.helper)
        if isinstance(helped, Rows):
            expected = StrictExpected(columns, _groups(order, helped.rows), gold.result)
            if len(helped.columns) == columns + order.added and expected.matches(gold.result):
                return expected
    return StrictExpected(columns, [(i, i + 1, [row]) for i, row in enumerate(rows)], gold.result)


def _prepare_sets(gold: Gold) -> StrictExpected:
    """As ``strict``, but each row counts as its set of values, as it does under ``reference``."""
    groups = _prepare_strict(gold).groups
    return StrictExpected(
        None, [(start, end, list(map(value_set, rows))) for start, end, rows in groups], gold.result
    )


def _groups(order: Order, rows: list[Row]) -> list[Group]:
    """Splits all sorted rows where the sort key changes, within the gold's LIMIT."""
    last = len(rows) if order.limit is None else min(len(rows), order.offset + order.limit)
    groups: list[Group] = []
    start = 0
    while start < last:
        key = [rows[start][i] for i in order.key_columns]
        end = start + 1
        while end < len(rows) and [rows[end][i] for i in order.key_columns] == key:
            end += 1
        if end > order.offset:
            tied = [row[: len(row) - order.added] for row in rows[start:end]]
            first = max(start, order.offset) - order.offset
            groups.append((first, min(end, last) - order.offset, tied))
        start = end
    return groups


SEMANTICS = {
    semantics.name: semantics
    for semantics in (
        # The authors': same number of rows, same set of values at each row position
        Semantics("reference", 1, _prepare_reference, suite_rule="sets"),
        # Multiset of rows, in the gold's order where it has one; ties and float noise allowed
        Semantics("strict", 2, _prepare_strict, suite_rule="strict"),
        # As strict, but neither the order of columns nor repeated values in a row matter
        Semantics("sets", 1, _prepare_sets, suite_rule="sets"),
    )
}
"""All semantics by name."""


def find_semantics(name: Any) -> Semantics:
    """Returns a semantics by its name.

    Raises:
        OptionError: The name is unknown.
    """
    if name not in SEMANTICS:
        raise OptionError(f"unknown semantics {name!r}; choose one of: {', '.join(SEMANTICS)}")
    return SEMANTICS[name]
