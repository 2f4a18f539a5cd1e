"""A gold query, its database, and what the rows of the original say about columns."""

import datetime
import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, cast

from sqlglot import exp

from lm_eval_ext.sql.parsing import find_source, parse, resolve, select_of, table_of, to_sql
from lm_eval_ext.sql.parsing import sources as sources_of
from lm_eval_ext.sql.schema import Schema, schema_of
from lm_eval_ext.sql.suite.build import in_memory
from lm_eval_ext.sql.suite.checks import Runner
from lm_eval_ext.sql.values import Rows, Value, quoted

Kind = Literal["integer", "number", "date", "text", "none"]

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?")


def is_day(text: str) -> bool:
    """Whether a text is an ISO day of the calendar, with or without a time."""
    try:
        return bool(_ISO.fullmatch(text) and datetime.datetime.fromisoformat(text))
    except ValueError:
        return False


class Of(NamedTuple):
    """A table's column, in lower case."""

    table: str
    column: str


class Facts:
    """What the original's rows say about a column; read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.runner = Runner(in_memory(path))
        self.schema: Schema = schema_of(self.runner.connection)
        self._values: dict[Of, list[Value]] = {}

    def answer(self, sql: str) -> Rows | None:
        """A query's result on the original; None if it fails."""
        result = self.runner.run(sql)
        return result if isinstance(result, Rows) else None

    def values(self, of: Of) -> list[Value]:
        """Up to 400 distinct values without NULL, spread over all of them."""
        if of not in self._values:
            column, table = quoted(of.column), quoted(of.table)
            query = f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY 1"
            found = [row[0] for row in self.runner.connection.execute(query)]
            self._values[of] = found[:: max(1, len(found) // 400)]
        return self._values[of]

    def has_null(self, of: Of) -> bool:
        """Whether a row has NULL there."""
        return self.schema[of.table][of.column].holds_null

    def never_null(self, of: Of) -> bool:
        """Whether the column has values and no NULL."""
        return not self.has_null(of) and bool(self.values(of))

    def kind(self, of: Of) -> Kind:
        """What the column holds."""
        values = self.values(of)
        if not values:
            return "none"
        if all(isinstance(value, int | float) for value in values):
            return "integer" if all(isinstance(value, int) for value in values) else "number"
        days = sum(isinstance(value, str) and is_day(value) for value in values)
        return "date" if days * 2 > len(values) else "text"

    def columns(self, table: str) -> list[Of]:
        """All columns of a table."""
        return [Of(table.casefold(), c.name.casefold()) for c in self.schema[table].columns]


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
        self.tree = cast("exp.Query", parse(gold, facts.schema))
        self.nodes = list(self.tree.walk())
        self.at = {id(node): place for place, node in enumerate(self.nodes)}

    @cached_property
    def columns(self) -> list[tuple[int, exp.Column, Of, exp.Select]]:
        """The places of columns that are a table's own, with the SELECT that reads the table."""
        found = []
        for place, node in enumerate(self.nodes):
            of = self.of(node)
            if isinstance(node, exp.Column) and of is not None:
                name = node.table.casefold(), node.name.casefold()
                owner = find_source(*name, select_of(node), self.facts.schema)
                if owner is not None:
                    found.append((place, node, of, owner[0]))
        return found

    def of(self, node: exp.Expr | None) -> Of | None:
        """What a column means; None where it is no table's."""
        if not isinstance(node, exp.Column) or resolve(node, self.facts.schema) is None:
            return None
        name = node.table.casefold(), node.name.casefold()
        found = find_source(*name, select_of(node), self.facts.schema)
        table = None if found is None else table_of(found[1], self.facts.schema)
        return None if table is None else Of(table.name.casefold(), name[1])

    def compared_with(self, node: exp.Expr) -> Of | None:
        """The column that a literal is compared with."""
        return None if node.parent is None else self.of(node.parent.find(exp.Column))

    def tables(self, select: exp.Select) -> list[tuple[str, str]]:
        """Alias and table of the sources that are tables."""
        found = [(s.alias_or_name, table_of(s, self.facts.schema)) for s in sources_of(select)]
        return [(alias, table.name.casefold()) for alias, table in found if table is not None]

    def edited(self, edit: Edit) -> str:
        """The text after a change."""
        holder = exp.Paren(this=self.tree.copy())  # so that the root can be replaced, too
        edit(list(holder.this.walk()))
        return to_sql(holder.this)

    @cached_property
    def literals(self) -> list[tuple[Value, Of | None]]:
        """All literals as values, with the columns that they are compared with."""
        return [
            (value, self.compared_with(node))
            for node in self.tree.find_all(exp.Literal)
            if (value := literal(node)) is not None
        ]


def literal(node: exp.Literal) -> Value:
    """A literal's value; None for a number written in a rare way."""
    text = str(node.this)
    if node.is_string:
        return text.replace("%", "")
    if re.fullmatch(r"\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"\d*\.\d+", text) else None


def parts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that AND connects."""
    if isinstance(condition, exp.And):
        return parts(condition.this) + parts(condition.expression)
    return [] if condition is None else [condition]


def clause(select: exp.Expr, name: str) -> exp.Expr | None:
    """The condition of WHERE or HAVING."""
    found = select.args.get(name)
    return None if found is None else found.this


def joined(conditions: list[exp.Expr]) -> exp.Expr:
    """Conditions connected by AND, each in brackets where it needs them."""
    return exp.and_(*(exp.Paren(this=c.copy()) if isinstance(c, exp.Or) else c for c in conditions))


def normal(sql: str) -> str:
    """A text without case, spaces and quotes outside of strings; equal texts are one query."""
    pieces = re.split(r"('(?:[^']|'')*')", sql)
    rest = (re.sub(r'[\s"`]+', " ", piece).lower() for piece in pieces[::2])
    return "".join(a + b for a, b in zip(rest, [*pieces[1::2], ""], strict=True)).strip(" ;")
