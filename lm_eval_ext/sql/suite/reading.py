"""The source of small databases: columns' values, keys, references, and what golds ask.

Nothing here decides whether an answer is right. A query that is read wrongly or not at all only
makes rows that are less to the point.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sqlglot import exp

from lm_eval_ext.sql.parsing import (
    COMPARISONS,
    UnparsedQuery,
    find_source,
    parse,
    table_of,
)
from lm_eval_ext.sql.schema import ForeignKey, Schema, Table, fold
from lm_eval_ext.sql.suite.columns import LARGEST_INTEGER, Domain, is_storable, read_domain
from lm_eval_ext.sql.values import Value, quoted


class ColumnName(NamedTuple):
    """The name of a column, folded.

    Attributes:
        table: The name of its table, folded.
        column: Its own name.
    """

    table: str
    column: str


_MAX_GROUP_SIZE = 20
"""The largest size of a group that rows are added for."""

_WRAPPERS = (exp.Max, exp.Min, exp.Avg, exp.Paren, exp.Lower, exp.Upper)
"""Functions that may stand around a column that a constant is compared with."""

_KEY_ENDINGS = ("id", "code", "no", "number", "key")
"""Endings of the names of columns that may be keys without a declaration."""


@dataclass
class GoldRequirements:
    """The rows that a gold asks for.

    Attributes:
        gold: Its text.
        tables: The tables that it reads, by folded names.
        constants: By column: the constants that it is compared with, and their neighbours.
        compared: Pairs of columns that it compares.
        grouped: The columns of GROUP BY.
        group_sizes: Sizes of groups that HAVING compares, and those next to them.
        averaged: The columns whose average it compares.
    """

    gold: str
    tables: list[str] = field(default_factory=list)
    constants: dict[ColumnName, list[Value]] = field(default_factory=dict)
    compared: list[tuple[ColumnName, ColumnName]] = field(default_factory=list)
    grouped: list[ColumnName] = field(default_factory=list)
    group_sizes: list[int] = field(default_factory=list)
    averaged: list[ColumnName] = field(default_factory=list)


@dataclass(frozen=True)
class DrawingSource:
    """Everything that databases are drawn from; read once per original.

    Attributes:
        schema: The original's schema.
        domains: By table and column; without generated columns.
        requirements: One per gold that can be read.
        keys: By table: sets of columns that differ between rows, declared or true of the original.
        links: By table: its foreign keys, declared or taken from golds' joins.
    """

    schema: Schema
    domains: Mapping[ColumnName, Domain]
    requirements: Sequence[GoldRequirements]
    keys: Mapping[str, Sequence[tuple[str, ...]]]
    links: Mapping[str, Sequence[ForeignKey]]

    @cached_property
    def related(self) -> dict[ColumnName, list[ColumnName]]:
        """The columns that golds compare with a column."""
        related: dict[ColumnName, list[ColumnName]] = {}
        for column, compared in _compared_columns(self.requirements):
            related.setdefault(column, []).append(compared)
        return related

    @cached_property
    def tables(self) -> list[str]:
        """All tables, by folded names, parents first as far as there is such an order."""
        ordered: dict[str, None] = {}

        def visit(table: str, path: tuple[str, ...]) -> None:
            for link in self.links[table]:
                parent = fold(link.parent)
                if parent not in path and parent not in ordered:
                    visit(parent, (*path, parent))
            ordered[table] = None

        for table in self.links:
            visit(table, (table,))
        return list(ordered)


def read_source(
    connection: sqlite3.Connection,
    schema: Schema,
    tables: Mapping[str, Table],
    golds: Sequence[str],
) -> DrawingSource:
    """Read the values of an original and what golds ask of them.

    Args:
        connection: The original.
        schema: Its schema.
        tables: The tables that small databases have, by folded names.
        golds: The queries that they are drawn for.

    Raises:
        sqlite3.Error: A column cannot be read.
    """
    domains = {}
    for name, table in tables.items():
        for column in table.columns:
            if not column.generated:
                column_name = ColumnName(name, fold(column.name))
                domains[column_name] = read_domain(connection, table, column)
    requirements = []
    for gold in golds:
        with suppress(UnparsedQuery, RecursionError):
            requirements.append(read_requirements(gold, schema, domains))
    keys = {}
    links = {}
    for name, table in tables.items():
        keys[name] = _keys(name, table, domains)
        links[name] = _declared_links(name, table, domains)
    # A column that golds join with a key, or of its name, refers to it if all values are keys.
    for child, parent in [*_compared_columns(requirements), *_columns_of_one_name(domains)]:
        is_key = (parent.column,) in keys[parent.table]
        if not is_key or (child.column,) in keys[child.table]:
            continue
        linked = set[str]()
        for link in links[child.table]:
            linked.update(map(fold, link.columns))
        if child.column not in linked and _all_values_exist(connection, child, parent):
            link = ForeignKey((child.column,), parent.table, (parent.column,))
            links[child.table].append(link)
    return DrawingSource(schema, domains, requirements, keys, links)


def _declared_links(
    name: str, table: Table, domains: Mapping[ColumnName, Domain]
) -> list[ForeignKey]:
    """Return the foreign keys whose columns and whose parent's columns can be filled."""
    links = []
    for link in table.foreign_keys:
        children = [ColumnName(name, fold(column)) for column in link.columns]
        parent = fold(link.parent)
        parents = [ColumnName(parent, fold(column)) for column in link.parent_columns]
        if len(children) == len(parents) and domains.keys() >= {*children, *parents}:
            links.append(link)
    return links


def _all_values_exist(
    connection: sqlite3.Connection, child: ColumnName, parent: ColumnName
) -> bool:
    """Return whether each value of a column is one of another column."""
    column = quoted(child.column)
    keys = f"SELECT {quoted(parent.column)} FROM {quoted(parent.table)}"
    query = (
        f"SELECT 1 FROM {quoted(child.table)} WHERE {column} IS NOT NULL AND "
        f"{column} NOT IN ({keys})"
    )
    return connection.execute(query).fetchone() is None


def _compared_columns(
    requirements: Sequence[GoldRequirements],
) -> list[tuple[ColumnName, ColumnName]]:
    """Return the pairs of columns that golds compare, both ways."""
    pairs = set()
    for gold in requirements:
        for column, partner in gold.compared:
            pairs |= {(column, partner), (partner, column)}
    return sorted(pairs)


def _columns_of_one_name(
    domains: Mapping[ColumnName, Domain],
) -> Iterator[tuple[ColumnName, ColumnName]]:
    """Yield the pairs of columns of two tables that have the same name, both ways."""
    by_name: dict[str, list[ColumnName]] = {}
    for column in domains:
        by_name.setdefault(column.column, []).append(column)
    for column in domains:
        for namesake in by_name[column.column]:
            if column != namesake:
                yield column, namesake


def _keys(name: str, table: Table, domains: Mapping[ColumnName, Domain]) -> list[tuple[str, ...]]:
    """Return the declared keys that can be filled, or else a column that seems to be one."""
    keys = []
    for key in table.unique_keys:
        columns = tuple(map(fold, key))
        if all(ColumnName(name, column) in domains for column in columns):
            keys.append(columns)
    if keys:
        return keys
    # A table without a declared key usually has one all the same.
    for number, column in enumerate(table.columns):
        folded = fold(column.name)
        domain = domains.get(ColumnName(name, folded))
        identifies = number == 0 or folded.endswith(_KEY_ENDINGS)
        if identifies and domain is not None and domain.unique:
            return [(folded,)]
    return []


def read_requirements(
    gold: str, schema: Schema, domains: Mapping[ColumnName, Domain]
) -> GoldRequirements:
    """Read what a query asks of rows; its constants become part of the domains.

    Raises:
        UnparsedQuery: It cannot be read.
    """
    requirements = GoldRequirements(gold)
    tree = parse(gold, schema)
    drawn_tables = {column.table for column in domains}
    for source in tree.find_all(exp.Table):
        table = table_of(source, schema)
        if table is not None and fold(table.name) in drawn_tables:
            requirements.tables.append(fold(table.name))
    for group in tree.find_all(exp.Group):
        for term in group.expressions:
            name = _column_name(term, schema, domains)
            if name is not None:
                requirements.grouped.append(name)
    for average in tree.find_all(exp.Avg):
        name = _column_name(average.this, schema, domains)
        if name is not None and average.find_ancestor(*COMPARISONS):
            requirements.averaged.append(name)
    for node in tree.find_all(*COMPARISONS, exp.Between, exp.Like, exp.In, exp.SetOperation):
        _read_comparison(node, requirements, schema, domains)
    return requirements


def _read_comparison(
    node: exp.Expr,
    requirements: GoldRequirements,
    schema: Schema,
    domains: Mapping[ColumnName, Domain],
) -> None:
    """Add what one comparison or set operation asks of rows."""
    right = node.args.get("expression") or node.args.get("query")
    for output, partner_output in zip(_outputs(node.this), _outputs(right), strict=False):
        name = _column_name(output, schema, domains)
        partner = _column_name(partner_output, schema, domains)
        if name and partner and name != partner:
            requirements.compared.append((name, partner))
    if node.find(exp.Select) is not None:
        return
    values = [_literal_value(literal) for literal in node.find_all(exp.Literal)]
    if node.find(exp.Count) is not None:
        for value in values:
            if isinstance(value, int) and value <= _MAX_GROUP_SIZE:
                sizes = (value, value + 1, value - 1)
                requirements.group_sizes += [size for size in sizes if size > 0]
        return
    column = node.find(exp.Column)
    name = _column_name(column, schema, domains)
    if column is not None and name is not None:
        constants = requirements.constants.setdefault(name, [])
        for value in values:
            constants += _add_constant(domains[name], node, column, value)


def _column_name(
    node: exp.Expr | None, schema: Schema, domains: Mapping[ColumnName, Domain]
) -> ColumnName | None:
    """Return the table's column that a reference means, also through derived tables."""
    if not isinstance(node, exp.Column):
        return None
    resolved = find_source(node, schema)
    if resolved is None:
        return None
    _, source = resolved
    column = fold(node.name)
    if isinstance(source, exp.Subquery):
        outputs = {fold(output.alias_or_name): output.unalias() for output in source.selects}
        return _column_name(outputs.get(column), schema, domains)
    table = table_of(source, schema)
    if table is None:
        return None
    name = ColumnName(fold(table.name), column)
    return name if name in domains else None


def _outputs(side: exp.Expr | None) -> list[exp.Expr | None]:
    """Return the column of a side of a comparison; of a query, one for each of its results.

    None stands for a result without a column.
    """
    if side is None:
        return []
    select = side.find(exp.Select)
    results = [side] if select is None else select.selects
    return [result.find(exp.Column) for result in results]


def _add_constant(
    domain: Domain, node: exp.Expr, column: exp.Expr, value: Value
) -> Iterator[Value]:
    """Add a constant to the domain of a column; yield it with its neighbours."""
    enclosing_node = column.parent
    while isinstance(enclosing_node, _WRAPPERS):
        enclosing_node = enclosing_node.parent
    if not is_storable(value):
        return
    if isinstance(node, exp.Like):
        for piece in str(value).replace("_", "%").split("%"):
            yield from domain.add_containing(piece)
    elif enclosing_node is node:
        yield from domain.add_constant(value)
    elif isinstance(enclosing_node, exp.Length) and isinstance(value, int):
        yield from domain.add_lengths(value)


def _literal_value(literal: exp.Expr) -> Value:
    """Return a literal's value; whole numbers beyond 64 bits are floats, as in SQLite."""
    text = str(literal.this)
    if literal.args.get("is_string"):
        return text
    number: int | float = float(text)
    if text.isascii() and text.isdecimal() and number <= LARGEST_INTEGER:
        number = int(text)
    if isinstance(literal.parent, exp.Neg):
        return -number
    return number
