"""What small databases are drawn from: columns' values, keys, references, and golds' wishes."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lm_eval_ext.sql.schema import ForeignKey, Schema, Table
from lm_eval_ext.sql.suite.columns import Domain, read_domain
from lm_eval_ext.sql.suite.reading import Name, Wish, compared, read_wishes


@dataclass(frozen=True)
class Source:
    """What databases are drawn from; read once per original.

    Attributes:
        schema: Of the original.
        domains: By table and column, in lower case, without generated columns.
        wishes: One per gold that can be read.
        keys: By table: sets of columns that differ between rows, declared or true of the original.
        links: By table: its foreign keys, declared or true of the original.
        related: Columns that share values with a column, by its name.
    """

    schema: Schema
    domains: Mapping[Name, Domain]
    wishes: Sequence[Wish]
    keys: Mapping[str, Sequence[tuple[str, ...]]]
    links: Mapping[str, Sequence[ForeignKey]]
    related: Mapping[Name, Sequence[Name]]

    @cached_property
    def asked(self) -> frozenset[str]:
        """The tables that golds read."""
        return frozenset(table for wish in self.wishes for table in wish.tables.values())

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
    wishes = read_wishes(golds, schema, domains)
    pairs = sorted(set(compared(wishes)))
    keys = {name: _keys(name, table, domains) for name, table in tables.items()}
    links = {
        name: [
            *(link for link in table.foreign_keys if _holds(link, schema, domains)),
            *_hidden_links(name, tables, domains, keys, pairs),
        ]
        for name, table in tables.items()
    }
    related: dict[Name, list[Name]] = {}
    for one, two in pairs:
        for a, b in ((one, two), (two, one)):
            related.setdefault(a, []).append(b)
    return Source(schema, domains, wishes, keys, links, related)


def _holds(link: ForeignKey, schema: Schema, domains: Mapping[Name, Domain]) -> bool:
    """Whether a declared foreign key names tables and columns that exist."""
    return (
        link.parent in schema
        and not schema[link.parent].view
        and len(link.columns) == len(link.parent_columns)
        and all((link.parent.casefold(), c.casefold()) in domains for c in link.parent_columns)
    )


def _keys(name: str, table: Table, domains: Mapping[Name, Domain]) -> list[tuple[str, ...]]:
    keys = [tuple(c.casefold() for c in key) for key in table.unique_keys]
    first = table.columns[0].name.casefold() if table.columns else ""
    for column in table.columns:
        own = column.name.casefold()
        identifies = own == first or own.endswith(("id", "code", "no", "number", "key"))
        # A table without a declared key usually has one all the same.
        if not keys and identifies and (name, own) in domains and domains[name, own].unique:
            keys.append((own,))
    return keys


def _hidden_links(
    name: str,
    tables: Mapping[str, Table],
    domains: Mapping[Name, Domain],
    keys: Mapping[str, Sequence[tuple[str, ...]]],
    pairs: Sequence[tuple[Name, Name]],
) -> Iterator[ForeignKey]:
    """Yields foreign keys that the original satisfies without declaring them.

    One column refers to a key of another table if golds compare them or they have the same name.
    """
    declared = {c.casefold() for link in tables[name].foreign_keys for c in link.columns}
    joined = {pair for one, two in pairs for pair in ((one, two), (two, one))}
    for column in tables[name].columns:
        own = (name, column.name.casefold())
        if own not in domains or own[1] in declared or (own[1],) in keys[name]:
            continue
        for parent in tables:
            for key in keys[parent]:
                target = (parent, key[0])
                if len(key) > 1 or own == target or target not in domains:
                    continue
                same = own[1] == key[0] and set(domains[own].own) <= set(domains[target].own)
                if same or (own, target) in joined:
                    yield ForeignKey((own[1],), parent, (key[0],))
                    break
            else:
                continue
            break
