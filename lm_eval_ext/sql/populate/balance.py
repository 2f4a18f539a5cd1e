"""Rows that bring an average, or what is computed of it, onto a value that is there."""

import random
from collections.abc import Callable

from lm_eval_ext.sql.parsing import to_sql
from lm_eval_ext.sql.populate.inserting import Added, RefusedError
from lm_eval_ext.sql.populate.planning import operator_of
from lm_eval_ext.sql.populate.scopes import Cell, Query, Scope
from lm_eval_ext.sql.populate.witness import Witness
from lm_eval_ext.sql.values import Value

_NEWTON = 8
_ROUNDS = _NEWTON + 80
_NEAREST = 8
_LARGEST = 2.0**50


def comparisons(query: Query) -> list[tuple[Scope, Cell, Scope, Cell, str]]:
    """Returns comparisons of a column with a number computed by a subquery.

    Each as the SELECT and the cell that is compared, the subquery's SELECT, the cell of which it
    computes the number, and its text.
    """
    from sqlglot import exp

    found: list[tuple[Scope, Cell, Scope, Cell, str]] = []
    for scope in query.scopes:
        for node in (node for part in scope.parts for node in part.walk()):
            if operator_of(node) is None:
                continue
            for one, other in ((node.this, node.expression), (node.expression, node.this)):
                right = other.unnest()
                inner = query.scope_of(right) if isinstance(right, exp.Select) else None
                if inner is None or not inner.outputs or right.find(exp.AggFunc) is None:
                    continue
                cells = query.cells(one, scope)
                computed = query.cells(inner.outputs[0], inner)
                if cells and computed and computed[0][0] == inner.number:
                    found.append((scope, cells[0], inner, computed[0], to_sql(right)))
    return found


def balance(witness: Witness) -> None:
    """Adds a row over which a subquery computes a number, such that it is equal to a value.

    ``pay > (SELECT avg(pay) FROM people)`` and ``>=`` differ only if somebody earns exactly the
    average. The average follows the new row's value, in steps finer than those of the floating
    point numbers around it, so some value gives the very bits. Numbers that were brought onto
    values before, for other golds, are kept there by one more row for each.

    Raises:
        RefusedError: There is no such comparison, or no values were found.
    """
    places = witness.query.noted("comparisons", comparisons)
    if not places:
        raise RefusedError("no comparison with a number that is computed")
    rng = witness.rng
    scope, cell, inner, computed, sql = rng.choice(places)
    if rng.random() < 0.5:  # noqa: PLR2004 (a row that is there may serve, too)
        witness.build(scope)
    now = _number(witness, sql)
    goals = {sql: _target(witness, cell, now)}
    table = witness.query.table_of(computed)
    for other, (tables, target) in witness.held.items():
        if table in tables and other != sql and rng.random() < 0.9:  # noqa: PLR2004
            goals[other] = target
    rows: list[Added] = []
    for number in range(len(goals)):
        start = len(witness.inserter.added)
        witness.build(inner, {computed: now + number})
        rows += [a for a in witness.inserter.added[start:] if a.table.name.lower() == table][:1]
    if len(rows) < len(goals):
        raise RefusedError("no row to balance with")

    def set_and_ask(values: list[float]) -> list[float]:
        for row, value in zip(rows, values, strict=True):
            whole = float(value).is_integer()
            witness.inserter.update(row, computed[2], int(value) if whole else value)
        return [_number(witness, text) - target for text, target in goals.items()]

    apart = max(abs(now), 1.0) * rng.choice((0.25, 0.5, 1.0, 2.0, 4.0))
    begin = [now + apart * (number - (len(rows) - 1) / 2) for number in range(len(rows))]
    solve(set_and_ask, begin, rng)
    witness.balanced = (sql, witness.query.tables, goals[sql])


def solve(ask: Callable[[list[float]], list[float]], x: list[float], rng: random.Random) -> None:
    """Finds values at which all errors are exactly zero: Newton's way, then by trial.

    Args:
        ask: Returns the errors at given values, as many as values.
        x: Where to begin.
        rng: Draws the last bits.

    Raises:
        RefusedError: None were found.
    """
    errors = ask(x)
    slopes = None
    for number in range(_ROUNDS):
        if not any(errors):
            return
        if number < _NEWTON:
            slopes = _slopes(ask, x, errors)
        assert slopes is not None
        step = _linear([list(row) for row in slopes], errors)
        x = [value - move for value, move in zip(x, step, strict=True)]
        if number >= _NEWTON:  # as near as it gets: now the last bits, by chance
            x = [v + rng.uniform(-1, 1) * max(abs(v), 1.0) * 2.0 ** -rng.randint(44, 52) for v in x]
        if max(map(abs, x)) > _LARGEST:
            break
        errors = ask(x)
    if any(errors):
        raise RefusedError("not balanced")


def _slopes(
    ask: Callable[[list[float]], list[float]], x: list[float], errors: list[float]
) -> list[list[float]]:
    """Returns by how much each error changes with each value, an error's slopes together."""
    columns = []
    for i in range(len(x)):
        h = max(abs(x[i]), 1.0) * 2.0**-10
        moved = ask([value + h * (i == j) for j, value in enumerate(x)])
        columns.append([(m - e) / h for m, e in zip(moved, errors, strict=True)])
    return [list(row) for row in zip(*columns, strict=True)]


def _linear(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solves a small system of linear equations by elimination."""
    n = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(n):
        best = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[best] = rows[best], rows[i]
        if abs(rows[i][i]) < 2.0**-60:
            raise RefusedError("the numbers do not follow the rows")
        for k in range(n):
            if k != i:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[n] / row[i] for i, row in enumerate(rows)]


def _number(witness: Witness, sql: str) -> float:
    found = witness.values_of(sql)
    if not found or not isinstance(found[0], int | float):
        raise RefusedError("no number")
    return found[0]


def _target(witness: Witness, cell: Cell, now: float) -> float:
    values: list[Value] = [
        row.get(cell[2]) for row in witness.rows_of(witness.query.table_of(cell))
    ]
    numbers = sorted(
        {value for value in values if isinstance(value, int | float)},
        key=lambda value: (abs(value - now), value),
    )
    if not numbers:
        raise RefusedError("no value to balance on")
    return witness.rng.choice(numbers[:_NEAREST])
