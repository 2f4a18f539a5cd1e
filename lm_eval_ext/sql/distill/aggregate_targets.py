"""Rows that make an average, or a number computed from it, equal to an existing value.

``pay > (SELECT avg(pay) FROM people)`` and ``>=`` differ only if somebody earns exactly the
average. The average depends on a new row's value, in steps finer than those of the floating point
numbers around it, so some value gives the exact bits.
"""

import math
from dataclasses import replace

from sqlglot import exp

from lm_eval_ext.sql.distill.attempt import AggregateTarget, Values
from lm_eval_ext.sql.distill.hints import operator_of
from lm_eval_ext.sql.distill.inserting import Added, RefusedError
from lm_eval_ext.sql.distill.query import Query, Scope
from lm_eval_ext.sql.distill.row_builder import RowBuilder
from lm_eval_ext.sql.distill.solving import extended, solve
from lm_eval_ext.sql.parsing import parts_of, to_sql
from lm_eval_ext.sql.values import Value

_NEAREST = 8
"""Compared values nearest to the number, of which one becomes the target."""
_REPAIRS = 4
"""Tries to restore the targets of a table."""
_STEPS = 8
"""Changes to a row until it equals the number that depends on it."""
_PASSES = 3
_SOLUTIONS = 10
"""Lists of whole numbers that are tried."""
_LARGEST = 2.0**50
"""Bound of the values that are tried."""
_EXTRA_ROWS = (0, 0, 1, 2, 4)
"""Further rows of which one number is drawn; with them the solution lies nearer."""

# Chances per decision (attempt.py says what a change entails).
_EVEN = 0.5
_BEYOND = 0.2
"""Values outside the column's present range are allowed."""
_ELSEWHERE = 0.3
"""A new row has any value instead of one close to the number."""
_MET = 0.6
"""A row is put where the number is; otherwise the number is moved to a row."""
_TOWARDS = 0.5
"""Further rows pull the number towards its target."""
_ANY_ROW = 0.3
"""Values of rows that do not satisfy the other conditions become targets as well."""


def comparisons(query: Query) -> list[AggregateTarget]:
    """Returns a gold's comparisons with a subquery's average or sum; their targets are not set."""
    found: list[AggregateTarget] = []
    for scope in query.scopes:
        for node in (node for part in scope.parts for node in part.walk()):
            if operator_of(node) is None:
                continue
            for one, other in ((node.this, node.expression), (node.expression, node.this)):
                right = other.unnest()
                inner = query.scope_of(right) if isinstance(right, exp.Select) else None
                if inner is None or not inner.outputs or right.find(exp.Avg, exp.Sum) is None:
                    continue
                cells = query.cells(one, scope)
                computed = query.cells(inner.outputs[0], inner)
                if cells and computed and computed[0][0] == inner.number:
                    sql = to_sql(right)
                    found.append(AggregateTarget(sql, 0.0, query, scope, one, inner, computed[0]))
    return found


def add_target(builder: RowBuilder) -> None:
    """Adds rows that make one more of a gold's computed numbers equal to a value.

    Targets that earlier attempts reached on the same table are kept by one more row for each.

    Raises:
        RefusedError: There is no such comparison, or no values were found.
    """
    places = builder.query.cached("comparisons", comparisons)
    if not places:
        raise RefusedError("no comparison with a computed number")
    rng = builder.rng
    target = rng.choice(places)
    if _is_spread(builder, target):
        _reach_whole(builder, target)
        return
    if rng.random() < _MET:
        _meet(builder, target)
        return
    if rng.random() < _EVEN:  # otherwise an existing row may serve
        builder.build(target.scope, _at(builder, target))
    others = [
        t
        for t in builder.attempt.targets.values()
        if t.table == target.table and t.sql != target.sql
    ]
    _reach(builder, [_retargeted(builder, target), *_some_retargeted(builder, others)])


def _meet(builder: RowBuilder, target: AggregateTarget) -> None:
    """Adds a row whose own value equals the number, which may depend on the row.

    A row at the average hardly moves it, so a few steps suffice. Numbers over rows of another
    kind stay as they are.
    """
    compared = target.compared.unnest()
    grouped = isinstance(compared, exp.AggFunc)
    cell = builder.query.cell((compared.this if grouped else compared).unnest(), target.scope)
    if cell is None:
        raise RefusedError("no column is compared")
    shape = builder.shapes[target.query.table_of(cell), cell[2]]
    number = _number(builder, target.sql)
    presets: Values = {cell: _plain(shape.rounded(number))}
    if grouped:
        presets |= builder.fresh_groups(target.scope)
    start = len(builder.inserter.added)
    builder.build(target.scope, presets)
    name = target.query.table_of(cell)
    rows = [a for a in builder.inserter.added[start:] if a.table.name.lower() == name]
    for _ in range(_STEPS if rows else 0):
        number = _number(builder, target.sql)
        if (builder.inserter.read(rows[0]) or {}).get(cell[2]) == number:
            builder.attempt.new_targets.append(replace(target, target=number))
            return
        builder.inserter.update(rows[0], cell[2], _plain(shape.rounded(number)))
    raise RefusedError("no row at the number")


def _plain(number: float) -> int | float:
    return int(number) if float(number).is_integer() else number


def _at(builder: RowBuilder, target: AggregateTarget) -> Values:
    """A value close to the number for the column that is compared with it, if it is a column."""
    cell = builder.query.cell(target.compared.unnest(), target.scope)
    if cell is None or builder.rng.random() < _ELSEWHERE:
        return {}
    number = _number(builder, target.sql)
    shape = builder.shapes[target.query.table_of(cell), cell[2]]
    near = shape.offered([math.floor(number), math.ceil(number), shape.rounded(number)])
    return {cell: builder.rng.choice(near)} if near else {}


def restore_targets(builder: RowBuilder, tables: set[str]) -> None:
    """Makes numbers equal to their targets again after rows were added to some tables.

    Raises:
        RefusedError: It was not possible.
    """
    targets = [t for t in builder.attempt.targets.values() if t.table in tables]
    connection, added = builder.runner.connection, builder.inserter.added
    for table in sorted({t.table for t in targets if _number(builder, t.sql) != t.target}):
        for left in reversed(range(_REPAIRS)):
            start = len(added)
            connection.execute("SAVEPOINT reach")
            try:
                wanted = [t for t in targets if t.table == table]
                spreads = [t for t in wanted if _is_spread(builder, t)]
                if spreads:
                    _reach_whole(builder, builder.rng.choice(spreads))
                elif left % 2:
                    _meet_all(builder, wanted)
                else:
                    _reach(builder, _some_retargeted(builder, wanted))
                break
            except RefusedError:
                connection.execute("ROLLBACK TO reach")
                del added[start:]
                if not left:
                    raise
            finally:
                connection.execute("RELEASE reach")


def _meet_all(builder: RowBuilder, targets: list[AggregateTarget]) -> None:
    """Adds a row at each number that has left its target, until none has."""
    now = {target.sql: target for target in targets}
    for _ in range(_PASSES):
        moved = [target for target in now.values() if _number(builder, target.sql) != target.target]
        if not moved:
            builder.attempt.new_targets += now.values()
            return
        for target in moved:
            _meet(builder.on(target.query), target)
            now[target.sql] = builder.attempt.new_targets[-1]
    raise RefusedError("numbers move each other")


def _is_spread(builder: RowBuilder, goal: AggregateTarget) -> bool:
    """Whether a number is computed from the standard deviation of whole numbers."""
    shape = builder.shapes[goal.table, goal.computed[2]]
    return shape.unit >= 1 and "stdev" in goal.sql.lower()


def _reach_whole(builder: RowBuilder, goal: AggregateTarget) -> None:
    """Adds rows of whole numbers, of which one equals mean less standard deviation."""
    rows = _new_rows(builder.on(goal.query), goal, goal.scope, {})
    select = goal.inner.select.copy()
    select.set("expressions", [next(select.find_all(exp.AggFunc)).this.copy()])
    numbers = builder.values_of(to_sql(select))
    first = (builder.inserter.read(rows[0]) or {}).get(goal.computed[2])
    if first in numbers:
        numbers.remove(first)
    whole = [number for number in numbers if isinstance(number, int)]
    found = extended(whole, builder.rng) if len(whole) == len(numbers) else []
    if not found:
        raise RefusedError("no whole numbers reach the target")
    for value in found[0][1:]:
        rows += _new_rows(builder.on(goal.query), goal, goal.inner, {goal.computed: value})
    for values in found[:_SOLUTIONS]:
        for row, value in zip(rows, values, strict=True):
            builder.inserter.update(row, goal.computed[2], value)
        if _number(builder, goal.sql) == values[0]:
            builder.attempt.new_targets.append(replace(goal, target=float(values[0])))
            return
    raise RefusedError("rounding misses the target")


def _new_rows(
    builder: RowBuilder, goal: AggregateTarget, scope: Scope, presets: Values
) -> list[Added]:
    """Adds a row of the target's table."""
    start = len(builder.inserter.added)
    builder.build(scope, presets)
    new = [a for a in builder.inserter.added[start:] if a.table.name.lower() == goal.table]
    if not new:
        raise RefusedError("no row for the target")
    return new[:1]


def _some_retargeted(builder: RowBuilder, goals: list[AggregateTarget]) -> list[AggregateTarget]:
    """Chooses new targets for some numbers: any compared value serves."""
    return [g if builder.rng.random() < _EVEN else _retargeted(builder, g) for g in goals]


def _retargeted(builder: RowBuilder, target: AggregateTarget) -> AggregateTarget:
    return replace(
        target, target=_target(builder.on(target.query), target, _number(builder, target.sql))
    )


def _reach(builder: RowBuilder, goals: list[AggregateTarget]) -> None:
    """Adds a row for each number, with values at which all numbers equal their targets."""
    rng = builder.rng
    # Numbers that are equal now are computed from the same rows, and stay equal.
    leading: dict[float, AggregateTarget] = {}
    twins = [(g, leading.setdefault(_number(builder, g.sql), g)) for g in goals]
    goals = list(leading.values())
    rows: list[tuple[Added, str]] = []
    begin: list[float] = []
    shapes = [builder.shapes[goal.table, goal.computed[2]] for goal in goals]
    limits = [_limits(builder, goal) for goal in goals]
    extra = rng.choice(_EXTRA_ROWS)
    for number, (goal, (low, high)) in enumerate(zip(goals, limits, strict=True)):
        end = high if goal.target > _number(builder, goal.sql) else low
        for _ in range(extra if number == 0 else 0):
            some = rng.uniform(low, high)
            some = shapes[0].rounded((some + 3 * end) / 4 if rng.random() < _TOWARDS else some)
            builder.on(goal.query).build(goal.inner, {goal.computed: some})
        begin.append(shapes[number].rounded(rng.uniform(low, high)))
        presets: Values = {goal.computed: begin[-1]}
        (row,) = _new_rows(builder.on(goal.query), goal, goal.inner, presets)
        rows.append((row, goal.computed[2]))

    def set_and_ask(values: list[float]) -> list[float]:
        for (row, column), shape, value in zip(rows, shapes, values, strict=True):
            near = shape.rounded(value)
            builder.inserter.update(row, column, _plain(near))
        return [_number(builder, goal.sql) - goal.target for goal in goals]

    # A new largest value would change the answer to many golds.
    beyond = 1.0 if rng.random() < _BEYOND else 0.0
    wide = [(low - beyond * (high - low), high + beyond * (high - low)) for low, high in limits]
    solve(set_and_ask, begin, wide, [shape.unit for shape in shapes], rng)
    builder.attempt.new_targets += [
        replace(goal, target=first.target)
        for goal, first in twins
        if _number(builder, goal.sql) == first.target
    ]


def _number(builder: RowBuilder, sql: str) -> float:
    found = builder.values_of(sql)
    if not found or not isinstance(found[0], int | float):
        raise RefusedError("no number")
    return found[0]


def _limits(builder: RowBuilder, goal: AggregateTarget) -> tuple[float, float]:
    low, high = builder.pools.edges(goal.table, goal.computed[2])
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        raise RefusedError("no numbers")
    return max(low, -_LARGEST), min(high, _LARGEST)


def _target(builder: RowBuilder, target: AggregateTarget, now: float) -> float:
    """Draws one of the compared values nearest to the present number."""
    texts = target.query.cached("compared", lambda _: {})
    key = (target.scope.number, to_sql(target.compared))
    if key not in texts:
        texts[key] = _values_compared(target)
    values: list[Value] = builder.values_of(texts[key])
    cells = target.query.cells(target.compared, target.scope)
    if not values or builder.rng.random() < _ANY_ROW:
        values += [
            row.get(c[2]) for c in cells for row in builder.rows_of(target.query.table_of(c))
        ]
    numbers = sorted(
        {value for value in values if isinstance(value, int | float)},
        key=lambda value: (abs(value - now), value),
    )
    if not numbers:
        raise RefusedError("no value for a target")
    return builder.rng.choice(numbers[:_NEAREST])


def _values_compared(target: AggregateTarget) -> str:
    """Returns a query for the compared values of rows that satisfy the other conditions."""
    select = target.scope.select.copy()
    for part in ("having", "order", "limit", "offset", "distinct"):
        select.set(part, None)
    if target.compared.find(exp.AggFunc) is None:
        select.set("group", None)
    if parts := parts_of(select, "where"):
        others = [part.unnest() for part in parts if part.find(exp.Avg, exp.Sum) is None]
        select.set("where", exp.Where(this=exp.and_(*others)) if others else None)
    select.set("expressions", [target.compared.copy()])
    return to_sql(select)
