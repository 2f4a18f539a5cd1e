"""Proposed groups of rows that may distinguish a gold from a near miss.

The sizes of groups matter where HAVING, LIMIT or an order by count depends on them.
"""

import random
from collections.abc import Callable

from sqlglot import exp

from lm_eval_ext.sql.distill.aggregate_targets import add_target, comparisons
from lm_eval_ext.sql.distill.attempt import Values
from lm_eval_ext.sql.distill.hints import literal, operator_of
from lm_eval_ext.sql.distill.inserting import RefusedError
from lm_eval_ext.sql.distill.query import Cell, Query, Scope
from lm_eval_ext.sql.distill.row_builder import RowBuilder
from lm_eval_ext.sql.distill.scratch_db import NoResultError
from lm_eval_ext.sql.parsing import to_sql
from lm_eval_ext.sql.values import Row

_LARGEST = 50
"""Most rows of one table that a group gets at once: copies stay small."""
_LARGEST_GROUPS = 5
_NEAR_GROUPS = 20
"""Groups considered: the largest ones, and those just below a size that HAVING names."""
_COMBINATIONS = (1, 1, 2, 2, 3)
"""How many shapes a proposal has."""

# Chances per decision (attempt.py says what a change entails).
_TARGETED = 0.3
"""A computed number is made equal to a value, where the gold compares with one."""
_OUTERMOST = 0.5
"""The rows are for the gold's outermost SELECT, otherwise for any."""
_UNLINKED = 0.3
"""Values already used are not shared with other SELECTs that are compared with theirs."""
_SHARED = 0.7
"""A value in results, groups and sort keys is the same in the row that just fails."""
_NEW_GROUP = 0.5
_FIRST_MISSES = 0.2
_OTHERS_MISS = 0.1
"""Rows of a group just fail: the first, and each of the others."""
_LAST_MISSES = 0.4
"""One row of a group just fails, so that only a near miss counts it."""
_SHAPE_WEIGHTS = (4, 2, 2, 2, 1, 1)
_SHAPE_WEIGHTS_WITH_HAVING = (2, 1, 1, 5, 3, 1)
"""Of the six shapes: one, near, missed, group, level, total."""
_TOTAL_NEW = 0.7
"""The group is a new one."""
_TOTALS = 3
"""A total is moved to one of so many first places."""
_TWO = 2


Group = tuple[int, Row]
"""A group's size, and the values that it is grouped by."""


def size_of(builder: RowBuilder, scope: Scope) -> int:
    """Draws a group's size among those at which the result may change."""
    sizes = [1, 2, 3, *bounds(scope) * 2]
    limit = scope.select.args.get("limit")
    if limit is not None and (bound := literal(limit.expression)) is not None:
        sizes += [n for n in (bound[0], bound[0] + 1) if isinstance(n, int)]  # type: ignore[operator]
    if scope.groups:
        counts = [count for count, _ in groups_of(builder, scope)[:2]]
        sizes += [n + extra for n in counts for extra in (0, 1)]
    fitting = [size for size in sizes if 1 <= size <= _LARGEST]
    return builder.rng.choice(fitting or [2])


def bounds(scope: Scope) -> list[int]:
    """Returns the group sizes that HAVING names, and the sizes beside them."""
    found: list[int] = []
    for part in scope.parts:
        bound = literal(part.args["expression"]) if operator_of(part) else None
        if bound is not None and isinstance(bound[0], int) and part.find(exp.Count):
            found += [bound[0] - 1, bound[0], bound[0] + 1]
    return found


def groups_of(builder: RowBuilder, scope: Scope) -> list[Group]:
    """Returns groups of a SELECT before HAVING, the largest first."""
    key = (builder.query.text, scope.number)
    if not scope.groups:
        return []
    if key not in builder.attempt.cache:
        texts = builder.query.cached("counts", lambda _: {})
        if scope.number not in texts:
            texts[scope.number] = _counting(scope)
        try:
            rows = builder.runner.rows(texts[scope.number])
        except NoResultError:
            rows = []
        builder.attempt.cache[key] = _some_groups(rows, bounds(scope))
    found: list[Group] = builder.attempt.cache[key]
    return found


def totals_of(builder: RowBuilder, scope: Scope, aggregate: exp.Expr) -> list[float]:
    """Returns an aggregate's numbers over the groups of a SELECT before HAVING, largest first."""
    key = (builder.query.text, scope.number, id(aggregate))
    if key not in builder.attempt.cache:
        texts = builder.query.cached("totals", lambda _: {})
        if key not in texts:
            texts[key] = _counting(scope, to_sql(aggregate))
        try:
            rows = builder.runner.rows(texts[key])
        except NoResultError:
            rows = []
        numbers = [row[0] for row in rows if isinstance(row[0], int | float)]
        builder.attempt.cache[key] = sorted(numbers, reverse=True)
    found: list[float] = builder.attempt.cache[key]
    return found


def _counting(scope: Scope, number: str = "count(*)") -> str:
    select = scope.select.copy()
    for part in ("order", "limit", "having", "distinct", "offset"):
        select.set(part, None)
    keys = ", ".join(to_sql(group) for group in scope.groups)
    select.set("expressions", [])
    body = to_sql(select).removeprefix("SELECT").lstrip().removeprefix("*").lstrip()
    return f"SELECT {number}, {keys} {body} ORDER BY {number} DESC"


def _some_groups(rows: list[Row], bounds: list[int]) -> list[Group]:
    low, high = min(bounds, default=0) - _LARGEST, max(bounds, default=-1)
    groups = [(size, row[1:]) for row in rows if isinstance(size := row[0], int)]
    near = [group for group in groups if low < group[0] <= high]
    return list(dict.fromkeys([*groups[:_LARGEST_GROUPS], *near[:_NEAR_GROUPS]]))


def propose(builder: RowBuilder, *, whole: bool = False) -> None:
    """Adds rows that satisfy or just fail a gold's conditions.

    Args:
        builder: Adds the rows.
        whole: Whether to add only one combination of rows that satisfies all conditions, as a
            gold with an empty result needs.

    Raises:
        RefusedError: They do not fit.
    """
    rng = builder.rng
    if not whole and rng.random() < _TARGETED and builder.query.cached("comparisons", comparisons):
        add_target(builder)
        return
    scopes = [scope for scope in builder.query.scopes if scope.tables]
    if not scopes:
        raise RefusedError("it reads no table")
    links = builder.query.cached("links", links_of)
    known: Values = {}
    for _ in range(1 if whole else rng.choice(_COMBINATIONS)):
        scope = scopes[0] if whole or rng.random() < _OUTERMOST else rng.choice(scopes)
        presets = _linked(links, known, scope, rng)
        weights = _SHAPE_WEIGHTS_WITH_HAVING if bounds(scope) else _SHAPE_WEIGHTS
        shape = rng.choices(_SHAPES, weights)[0]
        known.update(_single(builder, scope, presets) if whole else shape(builder, scope, presets))


def links_of(query: Query) -> list[tuple[Cell, Cell]]:
    """Returns pairs of cells of different SELECTs whose values are compared."""
    pairs: list[tuple[Cell, Cell]] = []
    for scope in query.scopes:
        for part in scope.parts:
            for node in part.find_all(exp.In):
                inner = query.scope_of(node.args["query"]) if node.args.get("query") else None
                if inner is not None and inner.outputs:
                    one = query.cell(node.this.unnest(), scope)
                    other = query.cell(inner.outputs[0], inner)
                    if one is not None and other is not None:
                        pairs.append((one, other))
    for operation in query.tree.find_all(exp.SetOperation):
        left, right = query.scope_of(operation.this), query.scope_of(operation.expression)
        if left is not None and right is not None:
            for one_output, other_output in zip(left.outputs, right.outputs, strict=False):
                one, other = query.cell(one_output, left), query.cell(other_output, right)
                if one is not None and other is not None:
                    pairs.append((one, other))
    return pairs


def _linked(
    links: list[tuple[Cell, Cell]], known: Values, scope: Scope, rng: random.Random
) -> Values:
    if rng.random() < _UNLINKED:
        return {}
    found: Values = {}
    for one, other in [*links, *[(b, a) for a, b in links]]:
        if one in known and other[0] == scope.number:
            found[other] = known[one]
    return found


def _single(builder: RowBuilder, scope: Scope, presets: Values) -> Values:
    return builder.build(scope, presets)


def _near(builder: RowBuilder, scope: Scope, presets: Values) -> Values:
    """One combination that satisfies the conditions, and a similar one that just fails."""
    values = builder.build(scope, presets)
    rng = builder.rng
    shown = _some_cells(builder, scope, [*scope.outputs, *scope.groups, *scope.orders], values)
    shared = {cell: value for cell, value in shown.items() if rng.random() < _SHARED}
    builder.build(scope, presets | shared, miss=True)
    return values


def _missed(builder: RowBuilder, scope: Scope, presets: Values) -> Values:
    return builder.build(scope, presets, miss=True)


def _group(builder: RowBuilder, scope: Scope, presets: Values) -> Values:
    """Several in one group, of a size at which HAVING, LIMIT or the order may change."""
    rng = builder.rng
    if rng.random() < _NEW_GROUP:
        presets = presets | builder.fresh_groups(scope)
    values = builder.build(scope, presets, miss=rng.random() < _FIRST_MISSES)
    shared = _some_cells(builder, scope, scope.groups or scope.outputs, values)
    for _ in range(size_of(builder, scope) - 1):
        builder.build(scope, presets | shared, miss=rng.random() < _OTHERS_MISS)
    return values


def _level(builder: RowBuilder, scope: Scope, presets: Values) -> Values:
    """Rows for an existing group, so that it has as many as a larger one, or one more."""
    rng = builder.rng
    counts = groups_of(builder, scope)
    cells = [builder.query.cell(group.unnest(), scope) for group in scope.groups]
    if not counts or None in cells:
        return _group(builder, scope, presets)
    sizes = {count for count, _ in counts} | set(bounds(scope))
    choices = [
        (size - count + extra, keys)
        for count, keys in counts
        for size in sorted(sizes)
        for extra in (0, 1)
        if 0 < size - count + extra <= _LARGEST
    ]
    if not choices:
        return _group(builder, scope, presets)
    needed, keys = rng.choice(choices)
    shared = dict(presets)
    for cell, key in zip(cells, keys, strict=True):
        assert cell is not None
        shared[cell] = key
    values: Values = {}
    last = rng.random() < _LAST_MISSES
    for number in range(needed):
        values = builder.build(scope, shared, miss=last and number == 0)
    return values


def _total(builder: RowBuilder, scope: Scope, presets: Values) -> Values:
    """One row in a group, with a number that moves the group's total among the largest ones."""
    rng = builder.rng
    found = [
        (node, cell)
        for term in scope.orders
        for node in term.find_all(exp.Sum, exp.Avg, exp.Max, exp.Min)
        if (cell := builder.query.cell(node.this.unnest(), scope)) is not None
    ]
    if not scope.groups or not found:
        return _group(builder, scope, presets)
    node, cell = rng.choice(found)
    totals = totals_of(builder, scope, node)
    if len(totals) < _TWO:
        return _group(builder, scope, presets)
    first = rng.randrange(min(len(totals) - 1, _TOTALS))
    high, low = totals[first], totals[first + 1]
    wanted = rng.choice([(high + low) / 2, high + max(1, (high - low) / 2), high, low])
    shape = builder.shapes[builder.query.table_of(cell), cell[2]]
    near = shape.rounded(wanted)
    value = int(near) if float(near).is_integer() else near
    if rng.random() < _TOTAL_NEW:
        presets = presets | builder.fresh_groups(scope)
    return builder.build(scope, presets | {cell: value})


_SHAPES: tuple[Callable[[RowBuilder, Scope, Values], Values], ...] = (
    _single, _near, _missed, _group, _level, _total,
)  # fmt: skip


def _some_cells(
    builder: RowBuilder, scope: Scope, expressions: list[exp.Expr], values: Values
) -> Values:
    cells = [cell for e in expressions for cell in builder.query.cells(e, scope)]
    return {cell: values[cell] for cell in cells if cell in values}
