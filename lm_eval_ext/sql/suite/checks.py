"""Whether a database may judge a gold: it runs, is determined, and right rewrites agree with it.

A pair of gold and database that fails is not used; nothing is repaired.
"""

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence

from sqlglot import exp

from lm_eval_ext.sql.compare import SEMANTICS, Expected, Gold, StrictExpected
from lm_eval_ext.sql.parsing import UnparsedQuery, parse, to_sql
from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.schema import Schema
from lm_eval_ext.sql.suite.gate import OF_GROUPS, RULES, Rule, group_by_key, order_among_equals
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


def rewrites(gold: str, schema: Schema, original: Runner) -> list[str]:
    """Queries that must have a gold's result on a database that may judge it.

    They are the right rewrites by :data:`.gate.RULES` that have its result on the original, since a
    rule may go beyond what always holds; and, whatever the original holds, the gold with other sort
    terms among equals, and with the least and the greatest value of a group where it selects a
    column of any row of it.
    """
    expected = original.expected(gold)
    try:
        tree = parse(gold, schema)
    except UnparsedQuery:
        return []
    if expected is None:
        return []
    found = dict.fromkeys(_applied(tree, schema, RULES))
    for other in _applied(tree, schema, (group_by_key,)):
        # With groups by name, the others hold or not by themselves.
        found.update(dict.fromkeys(_applied(parse(other, schema), schema, OF_GROUPS)))
    right = [sql for sql in found if original.agrees(expected, sql)]
    ties = _applied(tree, schema, (order_among_equals,))
    return [*right, *ties, *filter(None, (_any_row(tree, kind) for kind in (exp.Min, exp.Max)))]


def _applied(tree: exp.Expr, schema: Schema, rules: Sequence[Rule]) -> Iterator[str]:
    """Yields a query with each single replacement that rules give."""
    for rule in rules:
        for place, node in enumerate(list(tree.walk())):
            for new in rule(node, schema):
                copy = new
                if place:
                    copy = tree.copy()
                    next(n for i, n in enumerate(copy.walk()) if i == place).replace(new)
                yield to_sql(copy)


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
