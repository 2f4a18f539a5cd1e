"""Whether a database may judge a gold: it runs, is determined, and right rewrites agree with it.

A pair of gold and database that fails is not used; nothing is repaired.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from lm_eval_ext.sql.compare import SEMANTICS, Expected, Gold
from lm_eval_ext.sql.parsing import (
    Change,
    UnparsedQuery,
    applied,
    find_source,
    parse,
    resolve,
    sources,
    table_of,
    to_sql,
)
from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.reasons import NO_RESULT
from lm_eval_ext.sql.schema import Schema, decode_text, fold
from lm_eval_ext.sql.values import Failure, Row, Rows, quoted
from lm_eval_ext.text import one_line

STEPS = 4_000_000
"""Instructions of SQLite's virtual machine that one query may take, about 0.2 s. They are counted
instead of timed, so that a slow machine decides the same."""

_STEPS_PER_TICK = 10_000
_MAX_ROWS = 100_000
_FEW_ROWS = 100
"""Rows that decide whether a query has any but NULLs."""
_IDLE = -1
"""The steps left where no query runs."""


class Runner:
    """Runs queries of our own or of the user on a connection, within a number of steps.

    Models' queries need the guards of :mod:`lm_eval_ext.sql.policy` and a process of their own.
    """

    def __init__(self, connection: sqlite3.Connection, *, steps: int = STEPS) -> None:
        self.connection = connection
        self._max_ticks = steps // _STEPS_PER_TICK
        self._ticks_left = _IDLE
        register(connection)
        connection.text_factory = decode_text
        connection.set_progress_handler(self._tick, _STEPS_PER_TICK)

    def run(self, sql: str, max_rows: int = _MAX_ROWS) -> Rows | Failure:
        """Return a query's rows, up to one more than ``max_rows``."""
        self._ticks_left = self._max_ticks
        try:
            with contextlib.closing(self.connection.execute(sql)) as cursor:
                rows = cursor.fetchmany(max_rows + 1)
                if cursor.description is None:
                    return Failure("error", NO_RESULT)
                return Rows(tuple(column[0] for column in cursor.description), rows)
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            message = one_line(str(error) or "out of memory", limit=200)
            if self._ticks_left < 0:
                return Failure("timeout", message)
            return Failure("error", message)
        finally:
            self._ticks_left = _IDLE

    def _tick(self) -> bool:
        """Return whether SQLite must stop."""
        if self._ticks_left == _IDLE:
            return False  # not within run()
        self._ticks_left -= 1
        return self._ticks_left < 0

    def gold(self, sql: str) -> Gold | None:
        """Return a gold with its result; None if it has none, or one that is too large."""
        result = self.run(sql)
        if isinstance(result, Rows) and len(result.rows) <= _MAX_ROWS:
            return Gold(sql, result, self.run)
        return None

    def expected(self, gold: str, semantics: str = "sets") -> Expected | None:
        """Return a gold's result, prepared for comparison; None if it has none."""
        result = self.gold(gold)
        return None if result is None else SEMANTICS[semantics].prepare(result)

    def agrees(self, expected: Expected, sql: str, max_rows: int = _MAX_ROWS) -> bool:
        """Return whether a query has the expected result; one that fails has not."""
        result = self.run(sql, max_rows)
        return isinstance(result, Rows) and expected.matches(result)


@dataclass(frozen=True)
class Checks:
    """The conditions that a database meets if it may judge a gold.

    Attributes:
        gold: The query.
        may_be_empty: Whether its result is empty, or only NULLs, on the original.
        rewrites: Queries that must have its result.
        nonempty_subqueries: Subqueries that have rows on the original, and so must have some here.
        unique_name_queries: Queries for the rows that have a name in which the rows of the original
            differ: at most one row has it, so that a subquery may take its key.
        limit_queries: Queries for the sort keys on either side of a LIMIT, which must differ, and
            whether the original has as many rows as the LIMIT; then it must have as many here.
    """

    gold: str
    may_be_empty: bool
    rewrites: list[str] = field(default_factory=list)
    nonempty_subqueries: list[str] = field(default_factory=list)
    unique_name_queries: list[str] = field(default_factory=list)
    limit_queries: dict[str, bool] = field(default_factory=dict)

    def expected_on(self, runner: Runner, reordered: Runner) -> Expected | None:
        """Return the gold's result on a database that may judge it, else None.

        Args:
            runner: Runs queries on the database.
            reordered: Runs queries on a database with the same rows, stored in another order.
        """
        gold = runner.gold(self.gold)
        if gold is None or (not self.may_be_empty and _has_only_nulls(gold.result)):
            return None
        if not self._keeps_subqueries(runner):
            return None
        expected = SEMANTICS["sets"].prepare(gold)
        max_rows = len(gold.result.rows)
        if not reordered.agrees(expected, self.gold, max_rows):
            return None
        for cut, full in self.limit_queries.items():
            if not _separates(_sort_keys(runner, cut), full=full):
                return None
        for rewrite in self.rewrites:
            if not runner.agrees(expected, rewrite, max_rows):
                return None
        return expected

    def _keeps_subqueries(self, runner: Runner) -> bool:
        """Return whether subqueries have rows, and one at most where it must be one."""
        if any(_is_empty(runner, subquery) for subquery in self.nonempty_subqueries):
            return False
        return all(_count_rows(runner, single) <= 1 for single in self.unique_name_queries)


def checks_of(gold: str, schema: Schema, original: Runner) -> Checks | None:
    """Read the checks of a gold; return None if it does not run on the original.

    A rewrite may go beyond what always holds, so those count that are right on the original.
    Whatever the original holds, so does the gold with the least and the greatest value of a group
    where it selects a column of any row of it.
    """
    result = original.gold(gold)
    if result is None:
        return None
    may_be_empty = _has_only_nulls(result.result)
    expected = SEMANTICS["sets"].prepare(result)
    try:
        tree = parse(gold, schema)
    except UnparsedQuery:
        return Checks(gold, may_be_empty)
    rewrites = []
    for rule in REWRITE_RULES:
        for rewrite in applied(tree, rule, schema):
            if original.agrees(expected, rewrite):
                rewrites.append(rewrite)
    for extreme_type in (exp.Min, exp.Max):
        extreme = _extreme_of_any_row(tree, extreme_type)
        if extreme is not None:
            rewrites.append(extreme)
    return Checks(
        gold,
        may_be_empty,
        rewrites=rewrites,
        nonempty_subqueries=[sql for sql in _subqueries(tree) if not _is_empty(original, sql)],
        unique_name_queries=list(_unique_name_queries(tree, schema)),
        limit_queries={cut: bool(_sort_keys(original, cut)) for cut in _limit_queries(tree)},
    )


def _has_only_nulls(result: Rows) -> bool:
    """Return whether a result has nothing but NULLs."""
    return all(set(row) <= {None} for row in result.rows)


def _subqueries(tree: exp.Expr) -> list[str]:
    """Return the queries in conditions and in FROM, without set operations' parts."""
    texts = []
    for select in tree.find_all(exp.Select):
        if select.parent is not None and not isinstance(select.parent, exp.SetOperation):
            texts.append(to_sql(select))
    return list(dict.fromkeys(texts))


def _unique_name_queries(tree: exp.Expr, schema: Schema) -> Iterator[str]:
    """Yield queries for the rows with a name that a gold asks for, where names differ."""
    for node in tree.find_all(exp.EQ):
        reference, literal = node.this, node.expression
        if not isinstance(reference, exp.Column) or not isinstance(literal, exp.Literal):
            continue
        resolved = find_source(reference, schema)
        table = None if resolved is None else table_of(resolved[1], schema)
        if table is None or table.view:
            continue
        column = table.column(reference.name)
        if column is None or column.repeats or column.numeric or not literal.is_string:
            continue
        name = exp.column(column.name, quoted=True)
        condition = to_sql(exp.EQ(this=name, expression=literal.copy()))
        yield f"SELECT 1 FROM {quoted(table.name)} WHERE {condition} LIMIT 2"


def _count_rows(runner: Runner, sql: str) -> int:
    result = runner.run(sql, _FEW_ROWS)
    return len(result.rows) if isinstance(result, Rows) else 0


def _is_empty(runner: Runner, sql: str) -> bool:
    """Return whether a query has nothing but NULLs, or cannot run by itself."""
    result = runner.run(sql, _FEW_ROWS)
    return not isinstance(result, Rows) or _has_only_nulls(result)


def _sort_keys(runner: Runner, cut: str) -> list[Row]:
    result = runner.run(cut)
    return result.rows if isinstance(result, Rows) else []


def _separates(keys: list[Row], *, full: bool) -> bool:
    """Return whether the last row's keys, without NULL, are not the next one's."""
    if not keys:
        return not full
    return None not in keys[0] and (len(keys) == 1 or keys[0] != keys[1])


def _limit_queries(tree: exp.Expr) -> Iterator[str]:
    """Yield a query for the sort keys of the last row within each LIMIT and of the next one."""
    for select in tree.find_all(exp.Select):
        limit, offset = select.args.get("limit"), select.args.get("offset")
        if limit is None or select.args.get("order") is None:
            continue
        numbers = [limit.expression.name]
        if offset is not None:
            numbers.append(offset.expression.name)
        if not all(map(str.isdigit, numbers)):
            continue
        last_row = sum(map(int, numbers)) - 1
        cut = select.copy()
        cut.set("expressions", [key.copy() for key in _order_keys(select)])
        cut.set("limit", exp.Limit(expression=exp.Literal.number(2)))
        cut.set("offset", exp.Offset(expression=exp.Literal.number(last_row)))
        yield to_sql(cut)


def _order_keys(select: exp.Select) -> list[exp.Expr]:
    """Return the terms of ORDER BY, with outputs' expressions in the place of their names."""
    outputs = {output.alias_or_name: output.unalias() for output in select.selects}
    keys = []
    for ordered in select.args["order"].expressions:
        term = ordered.this
        if term.args.get("table"):
            keys.append(term)
        else:
            keys.append(outputs.get(term.name, term))
    return keys


def without_nulls(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """Yield ``ORDER BY x`` of rows whose x is not NULL."""
    order = node.args.get("order") if isinstance(node, exp.Select) else None
    if not isinstance(node, exp.Select) or order is None:
        return
    for term in order.expressions:
        if isinstance(term.this, exp.Column) and resolve(term.this, schema) is not None:
            is_null = exp.Is(this=term.this.copy(), expression=exp.Null())
            yield node.copy().where(exp.Not(this=is_null), copy=False)


def group_by_key(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """Yield ``GROUP BY id`` by the name that is selected, and by a name also by its key.

    What people ask for is called by its name, so both are written. Two things of the same name
    are two groups by key and one by name, so only names in which the original's rows differ count.
    """
    group = node.args.get("group") if isinstance(node, exp.Select) else None
    if not isinstance(node, exp.Select) or group is None:
        return
    term = group.expressions[0]
    if len(group.expressions) > 1 or not isinstance(term, exp.Column):
        return
    replacements = _selected_names(node, term, schema)
    if node.args.get("joins"):
        replacements += _keys_of_name(node, term, schema)
    for replacement in replacements:
        copy = node.copy()
        copy.args["group"].set("expressions", [replacement.copy()])
        yield copy


def _selected_names(select: exp.Select, grouped: exp.Column, schema: Schema) -> list[exp.Column]:
    """Return which of the first two columns that are selected beside the grouped one are names."""
    columns = []
    for selected in select.selects:
        output = selected.unalias()
        if isinstance(output, exp.Column) and output != grouped:
            columns.append(output)
    names = []
    for column in columns[:2]:
        declared = resolve(column, schema)
        if declared is None or not declared.repeats:
            names.append(column)
    return names


def _keys_of_name(select: exp.Select, name: exp.Column, schema: Schema) -> list[exp.Column]:
    """Return the keys of the tables in which a column is a name that no two rows have."""
    keys = []
    for source in sources(select):
        table = table_of(source, schema)
        if table is None:
            continue
        column = table.column(name.name)
        if column is None or column.repeats:
            continue
        single_keys = [key[0] for key in table.unique_keys if len(key) == 1]
        if single_keys and column is not table.column(single_keys[0]):
            keys.append(exp.column(single_keys[0], table=source.alias_or_name))
    return keys


def set_operations(node: exp.Expr, schema: Schema) -> Iterator[exp.Expr]:
    """Yield EXCEPT as NOT IN, INTERSECT as IN."""
    select = node.this
    if isinstance(node, (exp.Except, exp.Intersect)) and isinstance(select, exp.Select):
        right = exp.Subquery(this=node.expression.copy())
        membership: exp.Expr = exp.In(this=select.selects[0].unalias().copy(), query=right)
        if isinstance(node, exp.Except):
            membership = exp.Not(this=membership)
        yield select.distinct().where(membership, copy=False)


REWRITE_RULES: tuple[Change, ...] = (without_nulls, group_by_key, set_operations)
"""Rules of what people write for the same question; no row of ours may make that wrong."""


def _extreme_of_any_row(tree: exp.Expr, extreme_type: type[exp.Expr]) -> str | None:
    """Return a gold with an extreme for each column that SQLite takes from any row of a group."""
    copy = tree.copy()
    is_changed = False
    for select in copy.find_all(exp.Select):
        for column, clause in _columns_of_any_row(select):
            is_changed = True
            extreme: exp.Expr = extreme_type(this=column.copy())
            if column is clause:
                extreme = exp.alias_(extreme, column.name, quoted=True)
            column.replace(extreme)
    return to_sql(copy) if is_changed else None


def _columns_of_any_row(select: exp.Select) -> list[tuple[exp.Column, exp.Expr]]:
    """Return the columns that a group does not fix, each with the result or HAVING it stands in."""
    group = select.args.get("group")
    terms = group.expressions if group else []
    aggregates: list[exp.Expr] = []
    for output in select.selects:
        aggregates.extend(output.find_all(exp.AggFunc))
    if not aggregates and not terms:
        return []
    if any(isinstance(node, (exp.Min, exp.Max)) for node in aggregates):
        return []  # beside an extreme, columns are of its row
    fixed = {fold(term.name) for term in terms}
    fixed |= {output.alias for output in select.selects}
    clauses = list(select.selects)
    having = select.args.get("having")
    if having:
        clauses.append(having)
    columns = []
    for clause in clauses:
        for column in clause.find_all(exp.Column):
            # STDEV, which SQLite lacks and we register, is an anonymous function to sqlglot.
            enclosing_node = column.find_ancestor(exp.AggFunc, exp.Anonymous, exp.Select)
            if enclosing_node is select and fold(column.name) not in fixed:
                columns.append((column, clause))
    return columns
