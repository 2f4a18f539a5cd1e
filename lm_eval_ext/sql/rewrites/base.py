"""The interface of rules, the promises that they rely on, and what the original's columns hold."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sqlglot import exp

from lm_eval_ext.sql.parsing import find_source, select_of, table_of, to_sql
from lm_eval_ext.sql.schema import Column, Schema, Table
from lm_eval_ext.sql.values import quoted
from lm_eval_ext.text import one_line

_SHOWN = 150

_DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
_SECOND = f"{_DAY} [0-9][0-9]:[0-9][0-9]:[0-9][0-9]"

NEEDS: Mapping[str, str] = MappingProxyType(
    {
        "no null": "no value of the column is NULL",
        "integers": "all values but NULL are integers, and there is one",
        "texts": "all values but NULL are texts, and there is one",
        "dates": "all values but NULL are days YYYY-MM-DD, and there is one",
        "timestamps": "all values but NULL are YYYY-MM-DD HH:MM:SS, and there is one",
        "unique": "no value but NULL is there twice",
        "spelled": "no value differs from the given text only in the case of ASCII letters",
        "trimmed": "no text of the column begins or ends with a blank",
        "no tie": "the given query, of rows that tie where a LIMIT cuts, has no rows",
    }
)
"""The kinds of promises, with a description each."""

_BROKEN = {
    "no null": "{c} IS NULL",
    "integers": "typeof({c}) NOT IN ('integer', 'null')",
    "texts": "typeof({c}) NOT IN ('text', 'null')",
    "dates": f"{{c}} IS NOT NULL AND (typeof({{c}}) <> 'text' OR NOT {{c}} GLOB '{_DAY}'"
    " OR date({c}, '+0 days') IS NOT {c})",
    "timestamps": f"{{c}} IS NOT NULL AND (typeof({{c}}) <> 'text' OR NOT {{c}} GLOB '{_SECOND}'"
    " OR datetime({c}, '+0 days') IS NOT {c})",
    "unique": "{c} IS NOT NULL GROUP BY {c} HAVING count(*) > 1",
    "spelled": "lower({c}) = lower({v}) AND NOT {c} = {v} COLLATE BINARY",
    "trimmed": "typeof({c}) = 'text' AND trim({c}) <> {c} COLLATE BINARY",
}
_NOT_VACUOUS = frozenset({"integers", "texts", "dates", "timestamps"})


@dataclass(frozen=True)
class Need:
    """What the original holds, a rewrite relies on, and added rows must keep.

    Attributes:
        kind: One of :data:`NEEDS`.
        table: The table's name, "" for "no tie".
        column: The column's name, "" for "no tie".
        value: The text of "spelled", the query of "no tie"; "" for all others.
    """

    kind: str
    table: str = ""
    column: str = ""
    value: str = ""

    @property
    def broken(self) -> str:
        """A query that has a row if and only if the promise is broken."""
        if self.kind == "no tie":
            return self.value
        column, value = quoted(self.column), self.value.replace("'", "''")
        condition = _BROKEN[self.kind].format(c=column, v=f"'{value}'")
        return f"SELECT 1 FROM {quoted(self.table)} WHERE {condition} LIMIT 1"


Needs = tuple[Need, ...]


@dataclass(frozen=True)
class Rewrite:
    """Another way to write a gold query (:mod:`lm_eval_ext.sql.rewrites`).

    Attributes:
        kind: The rule, one of :data:`lm_eval_ext.sql.rewrites.KINDS`.
        sql: The query, in SQLite's dialect.
        text: For a reader: ``salary > 30000 -> salary >= 30001``.
        needs: It has the gold's result on every database that keeps the original's schema and
            rows, and these promises.
    """

    kind: str
    sql: str
    text: str
    needs: Needs = ()


class Facts:
    """What the original holds, asked once each.

    Args:
        schema: Of the original.
        rows: Runs a query on it that only reads.
        fails: What ``rows`` raises if a query has no result.
    """

    def __init__(
        self,
        schema: Schema,
        rows: Callable[[str], Sequence[tuple[Any, ...]]],
        fails: type[Exception] | tuple[type[Exception], ...],
    ) -> None:
        self.schema = schema
        self._rows = rows
        self._fails = fails
        self._known: dict[str, tuple[tuple[Any, ...], ...] | None] = {}

    def ask(self, sql: str) -> tuple[tuple[Any, ...], ...] | None:
        """Returns a query's rows on the original, None if it has no result."""
        if sql not in self._known:
            try:
                self._known[sql] = tuple(self._rows(sql))
            except self._fails:
                self._known[sql] = None
        return self._known[sql]

    def plan(self, sql: str) -> tuple[tuple[Any, ...], ...] | None:
        """Returns how SQLite would run a query, None if it cannot."""
        return self.ask(f"EXPLAIN QUERY PLAN {sql}")

    def has_rows(self, sql: str) -> bool:
        """Whether a query has a row on the original."""
        return bool(self.ask(sql))

    def size(self, table: Table) -> int:
        """Returns the number of a table's rows, a very large one if it cannot be counted."""
        found = self.ask(f"SELECT count(*) FROM {quoted(table.name)}")
        return int(found[0][0]) if found else 1 << 60

    def holds(self, need: Need) -> bool:
        """Whether the original keeps a promise."""
        if self.ask(need.broken) != ():
            return False
        if not need.table:
            return True
        column, table = quoted(need.column), quoted(need.table)
        some = f"SELECT 1 FROM {table} WHERE {column} IS NOT NULL LIMIT 1"
        return need.kind not in _NOT_VACUOUS or self.has_rows(some)

    def promised(self, kind: str, node: exp.Expr, value: str = "") -> Needs | None:
        """Returns the promise about a column of a table, None if the original does not keep it."""
        place = declared(node, self.schema)
        if place is None:
            return None
        need = Need(kind, place[0].name, place[1].name, value)
        return (need,) if self.holds(need) else None

    def no_null(self, node: exp.Expr) -> Needs | None:
        """Returns what it takes that a column is never NULL: nothing if the schema says so."""
        place = declared(node, self.schema)
        if place is not None and place[1].not_null:
            return ()
        return self.promised("no null", node)

    def integers(self, node: exp.Expr) -> Needs | None:
        """Returns what it takes that a value is an integer or NULL, None if that is open."""
        if isinstance(node, exp.Paren | exp.Neg):
            return self.integers(node.this)
        if isinstance(node, exp.Count | exp.Length) or _is_integer(node):
            return ()
        if isinstance(node, exp.Column):
            return self.promised("integers", node)
        if isinstance(node, exp.Add | exp.Sub | exp.Mul):
            return together(self.integers(node.this), self.integers(node.expression))
        if isinstance(node, exp.Sum | exp.Min | exp.Max) and not node.expressions:
            inner = node.this
            return self.integers(inner.expressions[0] if isinstance(inner, exp.Distinct) else inner)
        return None


def _is_integer(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit()


def together(*found: Needs | None) -> Needs | None:
    """Returns all promises, each once; None if one is not kept."""
    if any(needs is None for needs in found):
        return None
    return tuple(dict.fromkeys(need for needs in found for need in needs or ()))


@dataclass(frozen=True)
class Change:
    """``new`` replaces the node that the rule was applied to.

    Attributes:
        kind: The rule.
        old: What the rule changes, for a reader.
        new: The node's replacement.
        needs: The promises that it relies on.
        outer_only: Whether subqueries of conditions may be read in another order. Rules that
            rebuild a subquery say so; those that change one condition keep the order there, too.
        names: New aliases of sources, each with the former one, in lower case; "" for a source
            that has one row at most for each row of the others.
        settled: Whether the promises leave no choice of rows or of their order.
    """

    kind: str
    old: exp.Expr
    new: exp.Expr
    needs: Needs = ()
    outer_only: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    settled: bool = False

    @property
    def text(self) -> str:
        """For a reader."""
        return " -> ".join(one_line(to_sql(n), limit=_SHOWN) for n in (self.old, self.new))


Rule = Callable[[exp.Expr, Facts], Iterator[Change]]
"""Yields the changes at one node, which must not itself be changed."""


def changed(
    kind: str,
    old: exp.Expr,
    new: exp.Expr,
    needs: Needs = (),
    *,
    outer_only: bool = False,
    names: Mapping[str, str] | None = None,
    settled: bool = False,
) -> Change:
    """Returns a change; its text says what is there before and after."""
    return Change(kind, old, new, needs, outer_only, names or {}, settled)


def declared(node: exp.Expr, schema: Schema) -> tuple[Table, Column] | None:
    """Returns the table and the column that a reference means; None if it is not a table's."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    name = node.name.casefold()
    found = find_source(node.table.casefold(), name, select_of(node), schema)
    table = None if found is None else table_of(found[1], schema)
    column = None if table is None else table.column(name)
    return None if table is None or column is None else (table, column)


def collation(node: exp.Expr, schema: Schema) -> str | None:
    """Returns the collation that a column brings into a comparison, None for other values."""
    place = declared(node, schema)
    if place is not None:
        return place[1].collation
    return "unknown" if isinstance(node, exp.Column | exp.Collate) else None


def affinity(node: exp.Expr, schema: Schema) -> str:
    """Returns the affinity that a value brings into a comparison, "" for literals and calls."""
    while isinstance(node, exp.Paren | exp.Alias):
        node = node.this
    place = declared(node, schema)
    if place is not None:
        return place[1].affinity
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
        return affinity(node.this.expressions[0], schema)
    return "unknown" if isinstance(node, exp.Column | exp.Cast | exp.Subquery) else ""


def holds_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate stands in an expression, in its subqueries too."""
    return node.find(exp.AggFunc) is not None


def filters(node: exp.Expr) -> bool:
    """Whether a condition only lets rows pass, so that NULL and false are the same.

    That is so in WHERE, HAVING and ON of inner joins, below AND, OR and brackets.
    """
    child, parent = node, node.parent
    while isinstance(parent, exp.Connector | exp.Paren):
        child, parent = parent, parent.parent
    if isinstance(parent, exp.Where | exp.Having):
        return True
    return isinstance(parent, exp.Join) and child.arg_key == "on" and not parent.args.get("side")


def bracketed(node: exp.Expr) -> exp.Expr:
    """Returns a copy in brackets if it is a condition of several parts."""
    copy = node.copy()
    return exp.Paren(this=copy) if isinstance(copy, exp.Connector | exp.Not) else copy


def all_of(parts: Sequence[exp.Expr]) -> exp.Expr:
    """Returns copies of conditions connected by AND."""
    return _connected(parts, exp.And)


def any_of(parts: Sequence[exp.Expr]) -> exp.Expr:
    """Returns copies of conditions connected by OR, in brackets."""
    if len(parts) == 1:
        return parts[0].copy()
    return exp.Paren(this=_connected(parts, exp.Or))


def _connected(parts: Sequence[exp.Expr], kind: type[exp.Connector]) -> exp.Expr:
    whole = parts[0].copy() if len(parts) == 1 else bracketed_operand(parts[0])
    for part in parts[1:]:
        whole = kind(this=whole, expression=bracketed_operand(part))
    return whole


def bracketed_operand(part: exp.Expr) -> exp.Expr:
    """Returns a copy that can stand below AND or OR."""
    copy = part.copy()
    return exp.Paren(this=copy) if isinstance(copy, exp.Connector) else copy


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """Returns a call of one of SQLite's functions."""
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def string(text: str) -> exp.Expr:
    """Returns a text literal."""
    return exp.Literal.string(text)


def number(value: int) -> exp.Expr:
    """Returns an integer literal."""
    literal = exp.Literal.number(abs(value))
    return literal if value >= 0 else exp.Neg(this=literal)
