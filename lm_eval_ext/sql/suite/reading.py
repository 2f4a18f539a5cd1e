"""What small databases are drawn from: columns' values, keys, references, and what golds ask.

Nothing here decides whether an answer is right. A query that is read wrongly or not at all only
makes rows that are less to the point.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from lm_eval_ext.sql.parsing import (
    COMPARISONS,
    UnparsedQuery,
    find_source,
    parse,
    table_of,
)
from lm_eval_ext.sql.schema import ForeignKey, Schema, Table
from lm_eval_ext.sql.suite.columns import Domain, read_domain
from lm_eval_ext.sql.values import Value, quoted

Name = tuple[str, str]
"""A table and a column, in lower case."""

_MOST_REPEATS = 20
_AROUND = (exp.Max, exp.Min, exp.Avg, exp.Paren, exp.Lower, exp.Upper)
"""What may stand around a column that a constant is compared with."""


@dataclass
class Wish:
    """What a gold asks of rows.

    Attributes:
        gold: Its text.
        tables: That it reads.
        near: By column: the constants that it is compared with, and their neighbours.
        equal: Pairs of columns that it compares.
        grouped: The columns of GROUP BY.
        sizes: Sizes of groups that HAVING compares, and those beside them.
        means: The columns whose average it compares.
    """

    gold: str
    tables: list[str] = field(default_factory=list)
    near: dict[Name, list[Value]] = field(default_factory=dict)
    equal: list[tuple[Name, Name]] = field(default_factory=list)
    grouped: list[Name] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    means: list[Name] = field(default_factory=list)


@dataclass(frozen=True)
class Source:
    """What databases are drawn from; read once per original.

    Attributes:
        schema: Of the original.
        domains: By table and column, in lower case, without generated columns.
        wishes: One per gold that can be read.
        keys: By table: sets of columns that differ between rows, declared or true of the original.
        links: By table: its foreign keys, declared or taken from golds' joins.
    """

    schema: Schema
    domains: Mapping[Name, Domain]
    wishes: Sequence[Wish]
    keys: Mapping[str, Sequence[tuple[str, ...]]]
    links: Mapping[str, Sequence[ForeignKey]]

    @cached_property
    def related(self) -> dict[Name, list[Name]]:
        """The columns that golds compare with a column."""
        found: dict[Name, list[Name]] = {}
        for one, two in _pairs(self.wishes):
            found.setdefault(one, []).append(two)
        return found

    @cached_property
    def tables(self) -> list[str]:
        """All tables, in lower case, parents first as far as there is such an order."""
        found: dict[str, None] = {}

        def visit(table: str, path: tuple[str, ...]) -> None:
            for link in self.links[table]:
                parent = link.parent.casefold()
                if parent not in path and parent not in found:
                    visit(parent, (*path, parent))
            found[table] = None

        for table in self.links:
            visit(table, (table,))
        return list(found)


def read_source(connection: sqlite3.Connection, schema: Schema, golds: Sequence[str]) -> Source:
    """Reads the values of an original and what golds ask of them."""
    tables = {name.casefold(): schema[name] for name in schema if not schema[name].view}
    domains = {
        (name, column.name.casefold()): read_domain(connection, table, column)
        for name, table in tables.items()
        for column in table.columns
        if not column.generated
    }
    wishes = []
    for gold in golds:
        with suppress(UnparsedQuery, RecursionError):
            wishes.append(read_wish(gold, schema, domains))
    keys = {name: _keys(name, table, domains) for name, table in tables.items()}
    links = {
        name: [
            link
            for link in table.foreign_keys
            if len(link.columns) == len(link.parent_columns)
            and all((link.parent.casefold(), c.casefold()) in domains for c in link.parent_columns)
        ]
        for name, table in tables.items()
    }
    alike = [(one, two) for one in domains for two in domains if one[1] == two[1] and one != two]
    for (name, column), (parent, key) in [*_pairs(wishes), *alike]:
        # A column that golds join with a key, or of its name, refers to it if all values are keys.
        taken = {c.casefold() for link in links[name] for c in link.columns}
        if (key,) in keys[parent] and (column,) not in keys[name] and column not in taken:
            query = (
                f"SELECT 1 FROM {quoted(name)} WHERE {quoted(column)} IS NOT NULL AND "
                f"{quoted(column)} NOT IN (SELECT {quoted(key)} FROM {quoted(parent)})"
            )
            if connection.execute(query).fetchone() is None:
                links[name].append(ForeignKey((column,), parent, (key,)))
    return Source(schema, domains, wishes, keys, links)


def _pairs(wishes: Sequence[Wish]) -> list[tuple[Name, Name]]:
    """The pairs of columns that golds compare, both ways."""
    found = {pair for wish in wishes for pair in wish.equal}
    return sorted(found | {(two, one) for one, two in found})


def _keys(name: str, table: Table, domains: Mapping[Name, Domain]) -> list[tuple[str, ...]]:
    keys = [tuple(c.casefold() for c in key) for key in table.unique_keys]
    for number, column in enumerate(table.columns):
        own = column.name.casefold()
        identifies = number == 0 or own.endswith(("id", "code", "no", "number", "key"))
        # A table without a declared key usually has one all the same.
        if not keys and identifies and (name, own) in domains and domains[name, own].unique:
            keys.append((own,))
    return keys


def read_wish(gold: str, schema: Schema, domains: Mapping[Name, Domain]) -> Wish:
    """Reads what a query asks of rows; its constants become part of the domains."""
    wish = Wish(gold)
    tree = parse(gold, schema)

    def name(node: exp.Expr | None) -> Name | None:
        """The table's column that a reference is, also through derived tables."""
        if not isinstance(node, exp.Column):
            return None
        own = node.name.casefold()
        found = find_source(node, schema)
        if found is not None and isinstance(found[1], exp.Subquery):
            return name(
                {s.alias_or_name.casefold(): s.unalias() for s in found[1].selects}.get(own)
            )
        table = None if found is None else table_of(found[1], schema)
        named = None if table is None else (table.name.casefold(), own)
        return named if named in domains else None

    for source in tree.find_all(exp.Table):
        table = table_of(source, schema)
        if table is not None and not table.view:
            wish.tables.append(table.name.casefold())
    for group in tree.find_all(exp.Group):
        wish.grouped += filter(None, map(name, group.expressions))
    wish.means += filter(
        None,
        (name(node.this) for node in tree.find_all(exp.Avg) if node.find_ancestor(*COMPARISONS)),
    )
    for node in tree.find_all(*COMPARISONS, exp.Between, exp.Like, exp.In, exp.SetOperation):
        sides = node.this, node.args.get("expression") or node.args.get("query")
        for one, two in zip(*(map(name, _outputs(side)) for side in sides), strict=False):
            if one and two and one != two:
                wish.equal.append((one, two))
        if node.find(exp.Select) is not None:
            continue
        values = [_value(literal) for literal in node.find_all(exp.Literal)]
        column = node.find(exp.Column)
        known = name(column)
        if node.find(exp.Count) is not None:
            whole = [v for v in values if isinstance(v, int) and v <= _MOST_REPEATS]
            wish.sizes += [n for v in whole for n in (v, v + 1, v - 1) if n > 0]
        elif column is not None and known is not None:
            near = wish.near.setdefault(known, [])
            for value in values:
                near += _named(domains[known], node, column, value)
    return wish


def _outputs(side: exp.Expr | None) -> list[exp.Expr | None]:
    """The columns of a side of a comparison; of a query, those of its results."""
    select = None if side is None else side.find(exp.Select)
    parts = [side] if select is None else select.selects
    return [None if part is None else part.find(exp.Column) for part in parts]


def _named(domain: Domain, node: exp.Expr, column: exp.Expr, value: Value) -> Iterator[Value]:
    """Names a constant to the domain of a column; yields it with its neighbours."""
    around = column.parent
    while isinstance(around, _AROUND):
        around = around.parent
    if isinstance(node, exp.Like):
        for piece in str(value).replace("_", "%").split("%"):
            yield from domain.contain(piece)
    elif around is node:
        yield from domain.name(value)
    elif isinstance(around, exp.Length) and isinstance(value, int):
        yield from domain.long(value)


def _value(literal: exp.Expr) -> Value:
    text = str(literal.this)
    if literal.args.get("is_string"):
        return text
    number = int(text) if text.isdigit() else float(text)
    return -number if isinstance(literal.parent, exp.Neg) else number
