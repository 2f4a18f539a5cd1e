"""A gold query, its database, and what the rows of the original say about columns."""

import datetime
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, cast

from sqlglot import exp

from lm_eval_ext.sql.parsing import parse, to_sql
from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.schema import Schema, read_schema
from lm_eval_ext.sql.values import Row, Value, quoted

MOST_STEPS = 3_000
"""Thousands of SQLite's steps that a query may take; about half a second."""

MOST_ROWS = 50_000

MOST_WORDS = 12
"""Most words of a closed vocabulary."""

Kind = Literal["integer", "number", "date", "text", "none"]

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?")


class Answer(NamedTuple):
    """A result, or None for a query that failed or took too long."""

    columns: tuple[str, ...]
    rows: list[Row]


def connect(path: Path) -> sqlite3.Connection:
    """Opens a file read-only, with bytes that are no UTF-8 as surrogates."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    return prepared(connection)


def prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Registers what golds need, and counts steps."""
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    register(connection)
    return connection


def answer(connection: sqlite3.Connection, sql: str) -> Answer | None:
    """The rows of a query, None if it fails, takes too long or gives too many."""
    left = [MOST_STEPS]

    def step() -> int:
        left[0] -= 1
        return left[0] < 0

    connection.set_progress_handler(step, 1000)
    try:
        with closing(connection.execute(sql)) as cursor:
            rows = cursor.fetchmany(MOST_ROWS + 1)
            names = tuple(column[0] for column in cursor.description or ())
    except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError):
        return None
    finally:
        connection.set_progress_handler(None, 0)
    return None if len(rows) > MOST_ROWS else Answer(names, rows)


def is_day(text: str) -> bool:
    """Whether a text is an ISO day of the calendar, with or without a time."""
    if not _ISO.fullmatch(text):
        return False
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


class Of(NamedTuple):
    """A table's column, in lower case."""

    table: str
    column: str


class Facts:
    """What the original's rows say about a column; read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.schema: Schema = read_schema(path)
        self.connection = connect(path)
        self._values: dict[Of, list[Value]] = {}
        self._nulls: dict[Of, bool] = {}

    def values(self, of: Of) -> list[Value]:
        """Up to 400 distinct values without NULL, spread over all of them."""
        if of not in self._values:
            column, table = quoted(of.column), quoted(of.table)
            found = [
                row[0]
                for row in self.connection.execute(
                    f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY 1"
                )
            ]
            self._values[of] = found[:: max(1, len(found) // 400)]
        return self._values[of]

    def has_null(self, of: Of) -> bool:
        """Whether a row has NULL there."""
        if of not in self._nulls:
            query = f"SELECT 1 FROM {quoted(of.table)} WHERE {quoted(of.column)} IS NULL LIMIT 1"
            self._nulls[of] = bool(self.connection.execute(query).fetchone())
        return self._nulls[of]

    def never_null(self, of: Of) -> bool:
        """Whether the column has values and no NULL."""
        return not self.has_null(of) and bool(self.values(of))

    def kind(self, of: Of) -> Kind:
        """What the column holds."""
        values = self.values(of)
        if not values:
            return "none"
        if all(isinstance(value, int) for value in values):
            return "integer"
        if all(isinstance(value, int | float) for value in values):
            return "number"
        days = sum(isinstance(value, str) and is_day(value) for value in values)
        return "date" if days * 2 > len(values) else "text"

    def is_closed(self, of: Of) -> bool:
        """Whether the column keeps to a few words, such as a sex, which repeat."""
        own = self.values(of)
        if not own or len(own) > MOST_WORDS or self.kind(of) != "text":
            return False
        query = f"SELECT COUNT({quoted(of.column)}) FROM {quoted(of.table)}"
        return bool(self.connection.execute(query).fetchone()[0] >= 3 * len(own))

    def is_key(self, of: Of) -> bool:
        """Whether the column alone is a declared key."""
        keys = self.schema[of.table].unique_keys
        return any([name.casefold() for name in key] == [of.column] for key in keys)

    def columns(self, table: str) -> list[Of]:
        """All columns of a table."""
        own = self.schema[table]
        return [Of(own.name.casefold(), column.name.casefold()) for column in own.columns]


Edit = Callable[[list[exp.Expr]], object]
"""Changes the nodes of a copy of the tree, given in the order of the walk."""


def at(place: int, change: Callable[..., object], *given: object) -> Edit:
    """Returns the edit that calls a function with the node at a place and what is given."""
    return lambda nodes: change(nodes[place], *given)


def replace(node: exp.Expr, new: exp.Expr) -> None:
    """Puts a copy in a node's place."""
    node.replace(new.copy())


class Query:
    """A gold with its tree.

    Raises:
        UnparsedQuery: It cannot be read.
    """

    def __init__(self, gold: str, facts: Facts) -> None:
        self.gold, self.facts = gold, facts
        self.tree: exp.Query = cast("exp.Query", parse(gold, facts.schema))
        self.nodes = list(self.tree.walk())
        self.at = {id(node): place for place, node in enumerate(self.nodes)}

    @cached_property
    def columns(self) -> list[tuple[int, exp.Column, Of, exp.Select]]:
        """The places of columns that are a table's own, with the SELECT that reads the table."""
        found = []
        for place, node in enumerate(self.nodes):
            if isinstance(node, exp.Column) and (owner := self.owner(node)) is not None:
                found.append((place, node, *owner))
        return found

    def owner(self, column: exp.Column) -> tuple[Of, exp.Select] | None:
        """What a reference means; None where it is no table's column."""
        name, alias = column.name.casefold(), column.table.casefold()
        select = enclosing(column)
        while select is not None:
            for source in sources(select):
                table = self.table(source)
                if alias and source.alias_or_name.casefold() != alias:
                    continue
                if table is None:
                    if alias or any(s.alias_or_name.casefold() == name for s in outputs(source)):
                        return None
                elif name in self.facts.schema[table].by_name:
                    return Of(table, name), select
            select = enclosing(select)
        return None

    def table(self, source: exp.Expr) -> str | None:
        """The name of a source in FROM that is a table, in lower case."""
        known = isinstance(source, exp.Table) and source.name in self.facts.schema
        return source.name.casefold() if known else None

    def tables(self, select: exp.Select) -> list[tuple[str, str]]:
        """Alias and table of the sources that are tables."""
        return [
            (source.alias_or_name, table)
            for source in sources(select)
            if (table := self.table(source)) is not None
        ]

    def equated(self) -> list[tuple[Of, Of]]:
        """Pairs of columns that conditions or IN compare for equality."""
        pairs = []
        for node in self.tree.find_all(exp.EQ, exp.In):
            sides = [node.this, node.args.get("expression") or node.args.get("query")]
            if isinstance(sides[1], exp.Subquery):
                sides[1] = sides[1].this
            if isinstance(sides[1], exp.Select):
                sides[1] = sides[1].selects[0] if sides[1].selects else None
            owners = [self.owner(s) if isinstance(s, exp.Column) else None for s in sides]
            if owners[0] and owners[1]:
                pairs.append((owners[0][0], owners[1][0]))
        return pairs

    def edited(self, edit: Edit) -> str:
        """The text after a change."""
        holder = exp.Paren(this=self.tree.copy())  # so that the root can be replaced, too
        edit(list(holder.this.walk()))
        return to_sql(holder.this)

    def ordered(self) -> bool:
        """Whether the outermost query has an ORDER BY."""
        return self.tree.args.get("order") is not None

    def compared(self) -> list[tuple[Value, Of]]:
        """Literals with the columns that they are compared with."""
        found = []
        for node in self.tree.find_all(exp.Literal):
            column = node.parent.find(exp.Column) if node.parent is not None else None
            owner = self.owner(column) if isinstance(column, exp.Column) else None
            if owner is not None:
                found.append((literal(node), owner[0]))
        return [(value, of) for value, of in found if value is not None]

    @cached_property
    def literals(self) -> list[Value]:
        """All literals as values."""
        found = map(literal, self.tree.find_all(exp.Literal))
        return list(dict.fromkeys(value for value in found if value is not None))


def literal(node: exp.Literal) -> Value:
    """A literal's value; None for a number written in a rare way."""
    text = str(node.this)
    if node.is_string:
        return text
    if re.fullmatch(r"\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"\d*\.\d+", text) else None


def enclosing(node: exp.Expr) -> exp.Select | None:
    """The nearest SELECT around a node."""
    found = node.parent
    while found is not None and not isinstance(found, exp.Select):
        found = found.parent
    return found


def sources(select: exp.Select) -> list[exp.Expr]:
    """What FROM and JOIN read."""
    first = select.args.get("from_")
    return ([] if first is None else [first.this]) + [j.this for j in joins(select)]


def joins(select: exp.Select) -> list[exp.Join]:
    """The joins of a SELECT."""
    return list(select.args.get("joins") or ())


def outputs(source: exp.Expr) -> Iterator[exp.Expr]:
    """The result columns of a subquery in FROM."""
    inner = source.this if isinstance(source, exp.Subquery) else None
    if isinstance(inner, exp.Query):
        yield from inner.selects


def parts(condition: exp.Expr | None, kind: type[exp.Connector] = exp.And) -> list[exp.Expr]:
    """The conditions that AND (or OR) connects."""
    if condition is None:
        return []
    if isinstance(condition, kind):
        return parts(condition.this, kind) + parts(condition.expression, kind)
    return [condition]


def clause(select: exp.Select, name: str) -> exp.Expr | None:
    """The condition of WHERE or HAVING."""
    found = select.args.get(name)
    return None if found is None else found.this


def joined(conditions: list[exp.Expr]) -> exp.Expr:
    """Conditions connected by AND, each in brackets where it needs them."""
    if len(conditions) == 1:
        return conditions[0].copy()
    copies = [exp.Paren(this=c.copy()) if isinstance(c, exp.Or) else c.copy() for c in conditions]
    result = copies[0]
    for other in copies[1:]:
        result = exp.And(this=result, expression=other)
    return result


def normal(sql: str) -> str:
    """A text without case, spaces and quotes outside of strings; equal texts are one query."""
    pieces = re.split(r"('(?:[^']|'')*')", sql)
    rest = (re.sub(r'[\s"`]+', " ", piece).lower() for piece in pieces[::2])
    return "".join(a + b for a, b in zip(rest, [*pieces[1::2], ""], strict=True)).strip(" ;")
