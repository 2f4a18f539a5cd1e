"""Rows that bring an average, or what is computed of it, onto a value that is there."""

from dataclasses import dataclass, replace

from sqlglot import exp

from lm_eval_ext.sql.distill.inserting import Added, RefusedError
from lm_eval_ext.sql.distill.planning import conjuncts, operator_of
from lm_eval_ext.sql.distill.row_builder import Witness
from lm_eval_ext.sql.distill.scopes import Cell, Query, Scope
from lm_eval_ext.sql.distill.solving import solve
from lm_eval_ext.sql.parsing import to_sql
from lm_eval_ext.sql.values import Value

_NEAREST = 8
_REPAIRS = 4
_LARGEST = 2.0**50


@dataclass(frozen=True)
class Held:
    """A number that a subquery computes, and the value that it is to be equal to.

    Attributes:
        sql: The subquery.
        target: The value.
        query: The gold that it is part of.
        scope: The SELECT that compares with it.
        compared: What is compared with it: a column, or a group's own average.
        inner: Its own SELECT.
        computed: The cell of which it computes the number.
    """

    sql: str
    target: float
    query: Query
    scope: Scope
    compared: exp.Expr
    inner: Scope
    computed: Cell

    @property
    def table(self) -> str:
        """The table whose rows the number follows."""
        return self.query.table_of(self.computed)


def comparisons(query: Query) -> list[Held]:
    """Returns the comparisons of a column with a number that is computed; targets are not set."""
    found: list[Held] = []
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
                    found.append(Held(sql, 0.0, query, scope, one, inner, computed[0]))
    return found


def balance(witness: Witness) -> None:
    """Adds rows over which a subquery computes a number, such that it is equal to a value.

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
    held = rng.choice(places)
    if rng.random() < 0.5:  # noqa: PLR2004 (a row that is there may serve, too)
        witness.build(held.scope)
    others = [h for h in witness.held.values() if h.table == held.table and h.sql != held.sql]
    _bring(witness, [_aimed(witness, held), *_some_aimed(witness, others)])


def repair(witness: Witness, tables: set[str]) -> None:
    """Brings numbers back onto values after rows were added to some tables.

    Raises:
        RefusedError: It cannot be done.
    """
    held = [h for h in witness.held.values() if h.table in tables]
    connection, added = witness.runner.connection, witness.inserter.added
    for table in sorted({h.table for h in held if _number(witness, h.sql) != h.target}):
        for left in reversed(range(_REPAIRS)):
            start = len(added)
            connection.execute("SAVEPOINT bring")
            try:
                _bring(witness, _some_aimed(witness, [h for h in held if h.table == table]))
                break
            except RefusedError:
                connection.execute("ROLLBACK TO bring")
                del added[start:]
                if not left:
                    raise
            finally:
                connection.execute("RELEASE bring")


def _some_aimed(witness: Witness, goals: list[Held]) -> list[Held]:
    """Lets some numbers have another target than before: what matters is that there is one."""
    return [g if witness.rng.random() < 0.5 else _aimed(witness, g) for g in goals]  # noqa: PLR2004


def _aimed(witness: Witness, held: Held) -> Held:
    return replace(held, target=_target(witness.on(held.query), held, _number(witness, held.sql)))


def _bring(witness: Witness, goals: list[Held]) -> None:
    """Adds a row for each number, and finds the values at which all are equal to their targets."""
    rng = witness.rng
    rows: list[tuple[Added, str]] = []
    begin: list[float] = []
    limits = [_limits(witness, goal) for goal in goals]
    extra = rng.choice((0, 0, 1, 2, 4))  # so that the others need not lie far out
    for number, (goal, (low, high)) in enumerate(zip(goals, limits, strict=True)):
        for _ in range(extra if number == 0 else 0):
            witness.on(goal.query).build(goal.inner, {goal.computed: rng.uniform(low, high)})
        begin.append(rng.uniform(low, high))
        start = len(witness.inserter.added)
        witness.on(goal.query).build(goal.inner, {goal.computed: begin[-1]})
        new = [a for a in witness.inserter.added[start:] if a.table.name.lower() == goal.table]
        if not new:
            raise RefusedError("no row to balance with")
        rows.append((new[0], goal.computed[2]))

    def set_and_ask(values: list[float]) -> list[float]:
        for (row, column), value in zip(rows, values, strict=True):
            whole = float(value).is_integer()
            witness.inserter.update(row, column, int(value) if whole else value)
        return [_number(witness, goal.sql) - goal.target for goal in goals]

    # A new largest value would be the answer to many a gold: mostly, they stay within.
    beyond = 1.0 if rng.random() < 0.2 else 0.0  # noqa: PLR2004
    wide = [(low - beyond * (high - low), high + beyond * (high - low)) for low, high in limits]
    solve(set_and_ask, begin, wide, rng)
    witness.balanced += goals


def _number(witness: Witness, sql: str) -> float:
    found = witness.values_of(sql)
    if not found or not isinstance(found[0], int | float):
        raise RefusedError("no number")
    return found[0]


def _limits(witness: Witness, goal: Held) -> tuple[float, float]:
    low, high = witness.pools.edges(goal.table, goal.computed[2])
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        raise RefusedError("no numbers")
    return max(low, -_LARGEST), min(high, _LARGEST)


def _target(witness: Witness, held: Held, now: float) -> float:
    """Draws one of the compared values that are nearest to the number as it is."""
    texts = held.query.noted("compared", lambda _: {})
    key = (held.scope.number, to_sql(held.compared))
    if key not in texts:
        texts[key] = _values_compared(held)
    values: list[Value] = witness.values_of(texts[key])
    cells = held.query.cells(held.compared, held.scope)
    if not values or witness.rng.random() < 0.3:  # noqa: PLR2004
        values += [row.get(c[2]) for c in cells for row in witness.rows_of(held.query.table_of(c))]
    numbers = sorted(
        {value for value in values if isinstance(value, int | float)},
        key=lambda value: (abs(value - now), value),
    )
    if not numbers:
        raise RefusedError("no value to balance on")
    return witness.rng.choice(numbers[:_NEAREST])


def _values_compared(held: Held) -> str:
    """Returns a query for the values compared, of rows that fulfil the other conditions."""
    select = held.scope.select.copy()
    for part in ("having", "order", "limit", "offset", "distinct"):
        select.set(part, None)
    if held.compared.find(exp.AggFunc) is None:
        select.set("group", None)
    where = select.args.get("where")
    if where is not None:
        others = [part for part in conjuncts([where.this]) if part.find(exp.Avg, exp.Sum) is None]
        select.set("where", exp.Where(this=exp.and_(*others)) if others else None)
    select.set("expressions", [held.compared.copy()])
    return to_sql(select)
