"""Whether a database may judge a gold: it runs, is determined, and right rewrites agree with it.

A pair of gold and database that fails is not used; nothing is repaired.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from lm_eval_ext.sql.compare import SEMANTICS, Expected, Gold
from lm_eval_ext.sql.parsing import (
    Change,
    UnparsedQuery,
    applied,
    parse,
    resolve,
    sources,
    table_of,
    to_sql,
)
from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.schema import Schema, decode_text
from lm_eval_ext.sql.values import Failure, Row, Rows
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
        connection.text_factory = decode_text
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

    def gold(self, sql: str) -> Gold | None:
        """A gold with its result; None if it has none, or one that is too large."""
        result = self.run(sql)
        if isinstance(result, Rows) and len(result.rows) <= _MOST_ROWS:
            return Gold(sql, result, self.run)
        return None

    def expected(self, gold: str, semantics: str = "sets") -> Expected | None:
        """A gold's result, prepared for comparison; None if it has none."""
        found = self.gold(gold)
        return None if found is None else SEMANTICS[semantics].prepare(found)

    def agrees(self, expected: Expected, sql: str, most: int = _MOST_ROWS) -> bool:
        """Whether a query has the expected result. One that fails has not."""
        result = self.run(sql, most)
        return isinstance(result, Rows) and expected.matches(result)


@dataclass(frozen=True)
class Checks:
    """What must hold on a database that may judge a gold.

    Attributes:
        gold: The query.
        void: Whether its result is empty, or only NULLs, on the original: elsewhere it may be, too.
        rewrites: Queries that must have its result.
        cuts: Queries for the sort keys on either side of a LIMIT, which it must separate, and
            whether it is filled on the original: then it must be filled.
    """

    gold: str
    void: bool
    rewrites: list[str]
    cuts: dict[str, bool]

    def judged(self, runner: Runner, reordered: Runner) -> Expected | None:
        """The gold's result on a database that may judge it, else None.

        Args:
            runner: On the database.
            reordered: On a database with the same rows, stored in another order.
        """
        gold = runner.gold(self.gold)
        if gold is None or (not self.void and _is_void(gold.result)):
            return None
        expected = SEMANTICS["sets"].prepare(gold)
        most = len(gold.result.rows)
        right = (
            reordered.agrees(expected, self.gold, most)
            and all(_separates(_keys(runner, cut), full=full) for cut, full in self.cuts.items())
            and all(runner.agrees(expected, sql, most) for sql in self.rewrites)
        )
        return expected if right else None


def checks(gold: str, schema: Schema, original: Runner) -> Checks | None:
    """Reads the checks of a gold; None if it does not run on the original.

    A rewrite may go beyond what always holds, so those count that are right on the original.
    Whatever the original holds, so does the gold with the least and the greatest value of a group
    where it selects a column of any row of it.
    """
    found = original.gold(gold)
    if found is None:
        return None
    void, expected = _is_void(found.result), SEMANTICS["sets"].prepare(found)
    try:
        tree = parse(gold, schema)
    except UnparsedQuery:
        return Checks(gold, void, [], {})
    rewrites = [new for rule in RULES for new in applied(tree, rule, schema)]
    right = [sql for sql in rewrites if original.agrees(expected, sql)]
    right += filter(None, (_any_row(tree, kind) for kind in (exp.Min, exp.Max)))
    cuts = {cut: bool(_keys(original, cut)) for cut in _cuts(tree)}
    return Checks(gold, void, right, cuts)


def _is_void(result: Rows) -> bool:
    """Whether a result has nothing but NULLs."""
    return not any(v is not None for row in result.rows for v in row)


def _keys(runner: Runner, cut: str) -> list[Row]:
    result = runner.run(cut)
    return result.rows if isinstance(result, Rows) else []


def _separates(keys: list[Row], *, full: bool) -> bool:
    """Whether the last row's keys, without NULL, are not the next one's."""
    if not keys:
        return not full
    return None not in keys[0] and (len(keys) == 1 or keys[0] != keys[1])


def _cuts(tree: exp.Expr) -> Iterator[str]:
    for select in tree.find_all(exp.Select):
        order, limit, offset = (select.args.get(part) for part in ("order", "limit", "offset"))
        numbers = [part.expression.name for part in (limit, offset) if part is not None]
        if order is None or limit is None or not all(number.isdigit() for number in numbers):
            continue
        named = {s.alias_or_name: s.unalias() for s in select.selects}
        terms = [term.this for term in order.expressions]
        keys = [t if t.args.get("table") else named.get(t.name, t) for t in terms]
        last = exp.Literal.number(sum(map(int, numbers)) - 1)
        cut = select.copy()
        cut.set("expressions", [key.copy() for key in keys])
        cut.set("limit", exp.Limit(expression=exp.Literal.number(2)))
        cut.set("offset", exp.Offset(expression=last))
        yield to_sql(cut)


def without_nulls(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``ORDER BY x`` of rows whose x is not NULL."""
    if isinstance(node, exp.Select) and (order := node.args.get("order")) is not None:
        for term in order.expressions:
            if isinstance(term.this, exp.Column) and resolve(term.this, schema) is not None:
                known = exp.Not(this=exp.Is(this=term.this.copy(), expression=exp.Null()))
                yield node.copy().where(known, copy=False)


def group_by_key(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """``GROUP BY id`` by the name that is selected, ``GROUP BY name`` of a joined table by its key.

    What people ask for is called by its name, so both are written.
    """
    if not isinstance(node, exp.Select) or (group := node.args.get("group")) is None:
        return
    term = group.expressions[0]
    if len(group.expressions) > 1 or not isinstance(term, exp.Column):
        return
    selected = [s.unalias() for s in node.selects]
    new = [s for s in selected if isinstance(s, exp.Column) and s != term][:2]
    for source in sources(node) if node.args.get("joins") else ():
        table = table_of(source, schema)
        key = next((k[0] for k in table.unique_keys if len(k) == 1), None) if table else None
        if table and key and table.column(term.name) not in (None, table.column(key)):
            new.append(exp.column(key, table=source.alias_or_name))
    for other in new:
        copy = node.copy()
        copy.args["group"].set("expressions", [other.copy()])
        yield copy


def set_operations(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """EXCEPT as NOT IN, INTERSECT as IN."""
    left = node.this
    if isinstance(node, (exp.Except, exp.Intersect)) and isinstance(left, exp.Select):
        right = exp.Subquery(this=node.expression.copy())
        inside: exp.Expr = exp.In(this=left.selects[0].unalias().copy(), query=right)
        inside = exp.Not(this=inside) if isinstance(node, exp.Except) else inside
        yield left.distinct().where(inside, copy=False)


RULES: tuple[Change, ...] = (without_nulls, group_by_key, set_operations)
"""What people write for the same question, and what no row of ours may make wrong."""


def _any_row(tree: exp.Expr, kind: type[exp.Expr]) -> str | None:
    """A gold with an extreme for each column that SQLite takes from any row of a group."""
    copy, changed = tree.copy(), False
    for select in copy.find_all(exp.Select):
        group = select.args.get("group")
        terms = group.expressions if group else []
        aggregates = [a for s in select.selects for a in s.find_all(exp.AggFunc)]
        if not (aggregates or terms) or any(isinstance(a, (exp.Min, exp.Max)) for a in aggregates):
            continue  # beside an extreme, columns are of its row
        known = {term.name.casefold() for term in terms} | {s.alias for s in select.selects}
        having = select.args.get("having")
        for part in [*select.selects, *([having] if having else [])]:
            for column in list(part.find_all(exp.Column)):
                # STDEV, which SQLite lacks and we register, is an anonymous function to sqlglot.
                inside = column.find_ancestor(exp.AggFunc, exp.Anonymous, exp.Select)
                if inside is select and column.name.casefold() not in known:
                    changed = True
                    new: exp.Expr = kind(this=column.copy())
                    if column is part:
                        new = exp.alias_(new, column.name, quoted=True)
                    column.replace(new)
    return to_sql(copy) if changed else None
