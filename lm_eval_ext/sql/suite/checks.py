"""Whether a database may judge a gold: it runs, is determined, and right rewrites agree with it.

A pair of gold and database that fails is not used; nothing is repaired.
"""

import contextlib
import datetime
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from sqlglot import exp

from lm_eval_ext.sql.compare import SEMANTICS, Expected, Gold, StrictExpected
from lm_eval_ext.sql.parsing import (
    UnparsedQuery,
    conjuncts,
    parse,
    resolve,
    sources,
    table_of,
    to_sql,
)
from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.schema import Column, Schema
from lm_eval_ext.sql.values import Failure, Rows
from lm_eval_ext.text import one_line

STEPS = 4_000_000
"""Instructions of SQLite's virtual machine that one query may take, about 0.2 s. They are counted
instead of timed, so that a slow machine decides the same."""

_TICK = 10_000
_MOST_ROWS = 100_000


class Runner:
    """Runs queries of our own or of the user on a connection, within a number of steps.

    Models' queries need the guards of :mod:`lm_eval_ext.sql.policy` and a process of their own.
    """

    def __init__(self, connection: sqlite3.Connection, *, steps: int = STEPS) -> None:
        self.connection = connection
        self._steps, self._left = steps // _TICK, -1
        register(connection)
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        connection.set_progress_handler(self._tick, _TICK)

    def run(self, sql: str, most: int = _MOST_ROWS) -> Rows | Failure:
        """Returns a query's rows, up to one more than ``most``."""
        self._left = self._steps
        try:
            with contextlib.closing(self.connection.execute(sql)) as cursor:
                rows = cursor.fetchmany(most + 1)
                if cursor.description is None:
                    return Failure("error", "not a query: it has no result")
                return Rows(tuple(column[0] for column in cursor.description), rows)
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            kind = "timeout" if self._left < 0 else "error"
            return Failure(kind, one_line(str(error) or "out of memory", limit=200))  # type: ignore[arg-type]
        finally:
            self._left = -1

    def _tick(self) -> bool:
        if self._left < 0:
            return False  # not within run()
        self._left -= 1
        return self._left < 0

    def expected(self, gold: str, semantics: str = "sets") -> Expected | None:
        """A gold's result, prepared for comparison; None if it has none."""
        result = self.run(gold)
        if isinstance(result, Failure) or len(result.rows) > _MOST_ROWS:
            return None
        return SEMANTICS[semantics].prepare(Gold(gold, result, self.run))

    def agrees(self, expected: Expected, sql: str, most: int = _MOST_ROWS) -> bool:
        """Whether a query has the expected result. One that fails has not."""
        result = self.run(sql, most)
        return isinstance(result, Rows) and expected.matches(result)


def judged(
    gold: str,
    runner: Runner,
    shuffled: Sequence[Runner],
    rewrites: Sequence[str],
    *,
    may_be_empty: bool = False,
) -> Expected | None:
    """The gold's result on a database that may judge it, else None.

    Args:
        gold: The query.
        runner: On the database.
        shuffled: On databases with the same rows, stored in other orders.
        rewrites: Right rewrites of the gold.
        may_be_empty: Whether the gold is empty, or only NULLs, on the original, too.
    """
    result = runner.run(gold)
    if isinstance(result, Failure) or len(result.rows) > _MOST_ROWS:
        return None
    if not may_be_empty and not any(v is not None for row in result.rows for v in row):
        return None
    expected = SEMANTICS["sets"].prepare(Gold(gold, result, runner.run))
    if isinstance(expected, StrictExpected) and expected.cuts_tie:
        return None
    most = len(result.rows)
    runner.connection.execute("PRAGMA reverse_unordered_selects=ON")
    reversed_too = runner.agrees(expected, gold, most)
    runner.connection.execute("PRAGMA reverse_unordered_selects=OFF")
    if not (reversed_too and all(other.agrees(expected, gold, most) for other in shuffled)):
        return None
    return expected if all(runner.agrees(expected, sql, most) for sql in rewrites) else None


def is_void(result: Rows | Failure) -> bool:
    """Whether a result has nothing but NULLs."""
    return isinstance(result, Rows) and not any(v is not None for row in result.rows for v in row)


Rule = Callable[[exp.Expr, Schema], Iterator[exp.Expr]]
"""Yields replacements of one node of a gold, which must not itself be changed."""


def rewrites(gold: str, schema: Schema, original: Runner) -> list[str]:
    """Queries that must have a gold's result on a database that may judge it.

    They are the right rewrites by :data:`RULES` that have its result on the original, since a rule
    may go beyond what always holds; and the gold with the least and with the greatest value of a
    group where it selects a column of any row of it.
    """
    expected = original.expected(gold)
    try:
        tree = parse(gold, schema)
    except UnparsedQuery:
        return []
    found: dict[str, None] = {}
    for rule in RULES:
        for place, node in enumerate(list(tree.walk())):
            for new in rule(node, schema):
                copy = new
                if place:
                    copy = tree.copy()
                    next(n for i, n in enumerate(copy.walk()) if i == place).replace(new)
                found[to_sql(copy)] = None
    if expected is None:
        return []
    right = [sql for sql in found if original.agrees(expected, sql)]
    return [*right, *filter(None, (_any_row(tree, kind) for kind in (exp.Min, exp.Max)))]


def _any_row(tree: exp.Expr, kind: type[exp.Expr]) -> str | None:
    """A gold with an extreme for each column that SQLite takes from any row of a group."""
    copy, changed = tree.copy(), False
    for select in copy.find_all(exp.Select):
        group = select.args.get("group")
        terms = group.expressions if group else []
        aggregates = [a for s in select.selects for a in s.find_all(exp.AggFunc)]
        if not (aggregates or terms) or any(isinstance(a, (exp.Min, exp.Max)) for a in aggregates):
            continue  # beside an extreme, columns are of its row
        named = {term.name.casefold() for term in terms}
        for selected in list(select.selects):
            column = selected.unalias()
            if isinstance(column, exp.Column) and column.name.casefold() not in named:
                changed = True
                new = exp.alias_(kind(this=column.copy()), selected.alias_or_name, quoted=True)
                selected.replace(new)
    return to_sql(copy) if changed else None


def between_as_comparisons(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``x BETWEEN a AND b`` as ``x >= a AND x <= b``."""
    if isinstance(node, exp.Between):
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        yield exp.Paren(this=exp.And(this=low, expression=high))


_OPPOSITE: dict[type[exp.Expr], tuple[type[exp.Expr], int]] = {
    exp.LT: (exp.LTE, -1), exp.LTE: (exp.LT, 1), exp.GT: (exp.GTE, 1), exp.GTE: (exp.GT, -1),
}  # fmt: skip


def whole_steps(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``x < 8`` as ``x <= 7`` for integers and counts, ``d < day`` as ``d <= the day before``."""
    if type(node) not in _OPPOSITE or not isinstance(node.expression, exp.Literal):
        return
    kind, step = _OPPOSITE[type(node)]
    text = str(node.expression.this)
    if node.expression.is_string and (day := _day(text, step)):
        yield kind(this=node.this.copy(), expression=exp.Literal.string(day))
    elif text.isdecimal() and not node.expression.is_string:
        column = _column(node.this, schema)
        if isinstance(node.this, exp.Count) or (column and column.affinity == "INTEGER"):
            number = exp.Literal.number(int(text) + step)
            yield kind(this=node.this.copy(), expression=number)


def date_functions(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """A column that is compared with days as ``date(column)`` and by ``strftime``.

    The years of two dates that are subtracted likewise.
    """
    if isinstance(node, exp.Column) and isinstance(node.parent, (*_OPPOSITE, exp.EQ, exp.Between)):
        others = [n for n in (node.parent or node).find_all(exp.Literal) if n.is_string]
        if others and all(_day(str(n.this), 0) for n in others):
            yield _call("date", node)
            yield _call("strftime", exp.Literal.string("%Y-%m-%d"), node)
    if isinstance(node, exp.Sub) and all(
        isinstance(side, exp.Column) and _is_text(side, schema)
        for side in (node.this, node.expression)
    ):
        sides = (
            exp.cast(_call("strftime", exp.Literal.string("%Y"), side), "INTEGER")
            for side in (node.this, node.expression)
        )
        new = exp.Sub(this=next(sides), expression=next(sides))
        yield exp.Paren(this=new) if isinstance(node.parent, exp.Binary) else new


def span_of_days(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``d >= a AND d < b`` as BETWEEN, and by months where the two are first days of months."""
    if not isinstance(node, exp.Where):
        return
    parts = conjuncts(node.this)
    for low in parts:
        for high in parts:
            if not (isinstance(low, (exp.GTE, exp.GT)) and isinstance(high, (exp.LT, exp.LTE))):
                continue
            if low.this != high.this or not all(
                isinstance(p.expression, exp.Literal) and p.expression.is_string
                for p in (low, high)
            ):
                continue
            first = _day(str(low.expression.this), int(isinstance(low, exp.GT)))
            last = _day(str(high.expression.this), -int(isinstance(high, exp.LT)))
            if first is None or last is None:
                continue
            span = exp.Between(
                this=low.this.copy(),
                low=exp.Literal.string(first),
                high=exp.Literal.string(last),
            )
            months = _months(first, last)
            by_month = exp.In(
                this=_call("strftime", exp.Literal.string("%Y-%m"), low.this),
                expressions=[exp.Literal.string(month) for month in months],
            )
            for new in (span, *([by_month] if months else [])):
                rest = [new, *(p.copy() for p in parts if p is not low and p is not high)]
                yield exp.Where(this=exp.and_(*rest, copy=False))


def text_equality(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``x = 'text'`` as LIKE, and without regard to case or spaces around it."""
    if not (isinstance(node, exp.EQ) and isinstance(node.expression, exp.Literal)):
        return
    text = str(node.expression.this)
    if node.expression.is_string and not set(text) & set("%_"):
        yield exp.Like(this=node.this.copy(), expression=node.expression.copy())
        for name in ("lower", "trim"):
            other = _call(name, node.expression)
            yield exp.EQ(this=_call(name, node.this), expression=other)


def first_row_as_extreme(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``ORDER BY x DESC LIMIT 1`` as ``x = (SELECT MAX(x) ...)``, where nothing is grouped."""
    if not isinstance(node, exp.Select) or not _first_by_one(node):
        return
    term = node.args["order"].expressions[0]
    if not isinstance(term.this, exp.Column) or node.args.get("group"):
        return
    extreme = exp.Max if term.args.get("desc") else exp.Min
    inner, outer = node.copy(), node.copy()
    for part in (inner, outer):
        part.set("order", None)
        part.set("limit", None)
    inner.set("distinct", None)
    inner.set("expressions", [extreme(this=term.this.copy())])
    condition = exp.EQ(this=term.this.copy(), expression=exp.Subquery(this=inner))
    yield outer.where(condition, copy=False)


def extreme_as_first_row(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``(SELECT MAX(x) FROM ...)`` as its first row, ``SELECT name, MAX(x)`` likewise."""
    if not isinstance(node, exp.Select) or node.args.get("group") or node.args.get("order"):
        return
    found = [s for s in node.selects if isinstance(s.unalias(), (exp.Max, exp.Min))]
    others = [s for s in node.selects if s not in found]
    if len(found) != 1 or any(s.find(exp.AggFunc) for s in others) or node.parent is None:
        return
    extreme = found[0].unalias()
    new = node.copy()
    new.set("expressions", [s.copy() for s in others] + [extreme.this.copy()])
    largest = isinstance(extreme, exp.Max)
    order = exp.Ordered(this=extreme.this.copy(), desc=largest, nulls_first=not largest)
    new.set("order", exp.Order(expressions=[order]))
    new.set("limit", exp.Limit(expression=exp.Literal.number(1)))
    yield new.where(exp.Not(this=exp.Is(this=extreme.this.copy(), expression=exp.Null())))


def order_among_equals(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``ORDER BY x LIMIT n`` with a further sort term, which decides among equal rows."""
    if not isinstance(node, exp.Select) or not node.args.get("order") or not node.args.get("limit"):
        return
    group = node.args.get("group")
    if group is not None:
        ties = [group.expressions[0]]
    else:
        ties = [s.unalias() for s in node.selects if isinstance(s.unalias(), exp.Column)][:1]
        first = next(sources(node), None)
        if isinstance(first, exp.Table) and node.args.get("distinct") is None:
            ties.append(exp.column("rowid", table=first.alias_or_name))
    for tie in ties:
        for descending in (False, True):
            new = node.copy()
            term = exp.Ordered(this=tie.copy(), desc=descending, nulls_first=not descending)
            new.args["order"].append("expressions", term)
            yield new


def first_group_as_extreme(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``ORDER BY COUNT(*) DESC LIMIT 1`` of groups as ``HAVING COUNT(*) = (the greatest)``."""
    if not isinstance(node, exp.Select) or not _first_by_one(node) or not node.args.get("group"):
        return
    term = node.args["order"].expressions[0]
    if not isinstance(term.this, exp.AggFunc) or node.args.get("having"):
        return
    inner, outer = node.copy(), node.copy()
    for part in (inner, outer):
        part.set("order", None)
        part.set("limit", None)
    inner.set("expressions", [exp.alias_(term.this.copy(), "n")])
    extreme = (exp.Max if term.args.get("desc") else exp.Min)(this=exp.column("n"))
    greatest = exp.Select(expressions=[extreme]).from_(inner.subquery("counted"))
    yield outer.having(exp.EQ(this=term.this.copy(), expression=exp.Subquery(this=greatest)))


def second_as_offset(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """The last of the first two rows, by a derived table, as ``LIMIT 1 OFFSET 1``."""
    if not isinstance(node, exp.Select) or not _first_by_one(node):
        return
    new = node.copy()
    derived = next(sources(new), None)
    inner = derived.this if isinstance(derived, exp.Subquery) else None
    if isinstance(inner, exp.Select) and inner.args.get("limit"):
        inner.set("offset", exp.Offset(expression=exp.Literal.number(1)))
        inner.set("limit", exp.Limit(expression=exp.Literal.number(1)))
        new.set("order", None)
        new.set("limit", None)
        yield new


def without_nulls(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``ORDER BY x`` of rows whose x is not NULL."""
    if isinstance(node, exp.Select) and (order := node.args.get("order")) is not None:
        for term in order.expressions:
            if _column(term.this, schema) is not None:
                known = exp.Not(this=exp.Is(this=term.this.copy(), expression=exp.Null()))
                yield node.copy().where(known, copy=False)


def count_of_key(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``COUNT(*)`` as the count of a column of the first table that is never NULL."""
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        select = node.find_ancestor(exp.Select)
        first = next(sources(select), None) if select else None
        table = None if first is None else table_of(first, schema)
        for column in () if table is None else table.columns[:6]:
            if column.not_null:
                name = exp.column(column.name, table=first.alias_or_name, quoted=True)  # type: ignore[union-attr]
                yield exp.Count(this=name)
                return


def mean_as_quotient(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``AVG(x)`` as ``SUM(x) * 1.0 / COUNT(*)``."""
    if isinstance(node, exp.Avg) and not isinstance(node.this, exp.Distinct):
        total = exp.Mul(this=exp.Sum(this=node.this.copy()), expression=exp.Literal.number("1.0"))
        yield exp.Paren(this=exp.Div(this=total, expression=exp.Count(this=exp.Star())))


def group_by_key(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``GROUP BY id`` by the name that is selected, ``GROUP BY name`` of a joined table by its key.

    What people ask for is called by its name, so both are written.
    """
    if not isinstance(node, exp.Select) or (group := node.args.get("group")) is None:
        return
    if len(group.expressions) != 1 or not isinstance(group.expressions[0], exp.Column):
        return
    term = group.expressions[0]
    new: list[exp.Expr] = []
    for source in sources(node):
        table = table_of(source, schema)
        key = next((k[0] for k in table.unique_keys if len(k) == 1), None) if table else None
        if table is None or key is None:
            continue
        alias = source.alias_or_name
        mine = (
            term.table.casefold() == alias.casefold()
            if term.table
            else bool(table.column(term.name))
        )
        if not mine:
            continue
        if table.column(term.name) is table.column(key):
            new += [
                s.unalias() for s in node.selects
                if isinstance(s.unalias(), exp.Column) and s.unalias() != term
                and table.column(s.unalias().name)
            ][:1]  # fmt: skip
        elif len(list(sources(node))) > 1:
            new.append(exp.column(key, table=alias))
    for other in new:
        copy = node.copy()
        copy.args["group"].set("expressions", [other.copy()])
        yield copy


def membership(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``IN (SELECT ...)`` as EXISTS, with NOT and without."""
    if not isinstance(node, exp.In) or node.args.get("query") is None:
        return
    query = node.args["query"]
    inner = query.this if isinstance(query, exp.Subquery) else query
    if not isinstance(inner, exp.Select) or len(inner.selects) != 1 or not node.this.table:
        # Without a qualifier, the inner tables might have a column of this name.
        return
    plain = not any(inner.args.get(part) for part in ("group", "limit", "having", "order"))
    output = inner.selects[0].unalias()
    if plain and isinstance(output, exp.Column):
        new = inner.copy().where(exp.EQ(this=output.copy(), expression=node.this.copy()))
        new.set("expressions", [exp.Literal.number(1)])
        yield exp.Exists(this=new)


def set_operations(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """EXCEPT as NOT IN, INTERSECT as IN, and back."""
    if isinstance(node, (exp.Except, exp.Intersect)):
        left, right = node.this, node.expression
        if not isinstance(left, exp.Select) or len(left.selects) != 1:
            return
        if left.args.get("group") or left.args.get("limit"):
            return
        inside: exp.Expr = exp.In(
            this=left.selects[0].unalias().copy(), query=exp.Subquery(this=right.copy())
        )
        condition = exp.Not(this=inside) if isinstance(node, exp.Except) else inside
        for distinct in (None, exp.Distinct()):
            new = left.copy().where(condition.copy())
            new.set("distinct", distinct)
            yield new
    elif isinstance(node, exp.Select) and (where := node.args.get("where")) is not None:
        for part in conjuncts(where.this):
            negated = isinstance(part, exp.Not)
            inside = part.this if negated else part
            if not isinstance(inside, exp.In) or inside.args.get("query") is None:
                continue
            if [s.unalias() for s in node.selects] != [inside.this] or node.args.get("order"):
                continue
            rest = [p.copy() for p in conjuncts(where.this) if p is not part]
            left = node.copy()
            left.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
            query = inside.args["query"]
            right = (query.this if isinstance(query, exp.Subquery) else query).copy()
            if right.args.get("order") or right.args.get("limit"):
                continue
            kind = exp.Except if negated else exp.Intersect
            yield kind(this=left, expression=right, distinct=True)


RULES: tuple[Rule, ...] = (
    between_as_comparisons, whole_steps, date_functions, span_of_days, text_equality,
    first_row_as_extreme, first_group_as_extreme, second_as_offset, extreme_as_first_row,
    order_among_equals, without_nulls, count_of_key, mean_as_quotient, group_by_key, membership,
    set_operations,
)  # fmt: skip
"""What people write for the same question, and what no row of ours may make wrong."""


def _first_by_one(select: exp.Select) -> bool:
    order, limit = select.args.get("order"), select.args.get("limit")
    return (
        order is not None and limit is not None and len(order.expressions) == 1
        and limit.expression.name == "1" and select.args.get("offset") is None
    )  # fmt: skip


def _column(node: exp.Expr, schema: Schema) -> Column | None:
    return resolve(node, schema) if isinstance(node, exp.Column) else None


def _is_text(node: exp.Expr, schema: Schema) -> bool:
    column = _column(node, schema)
    return column is not None and (column.affinity == "TEXT" or "DATE" in column.type.upper())


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


@lru_cache(maxsize=1024)
def _day(text: str, step: int) -> str | None:
    """A day some days after another, in ISO's format; None if the text is none."""
    try:
        day = datetime.datetime.strptime(text, "%Y-%m-%d").date()
        return (day + datetime.timedelta(days=step)).isoformat()
    except (ValueError, OverflowError):
        return None


def _months(first: str, last: str) -> list[str]:
    """The months from one day to another, if whole and at most twelve."""
    day, end = map(datetime.date.fromisoformat, (first, last))
    if day.day != 1 or (end + datetime.timedelta(days=1)).day != 1:
        return []
    count = 12 * (end.year - day.year) + end.month - day.month + 1
    if not 0 < count <= 12:  # noqa: PLR2004
        return []
    year, month = day.year, day.month - 1
    return [f"{year + (month + i) // 12:04}-{(month + i) % 12 + 1:02}" for i in range(count)]
