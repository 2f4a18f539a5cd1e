"""What a database declares: tables, columns, keys. Read from the file, which is not changed."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

Affinity = Literal["INTEGER", "TEXT", "BLOB", "REAL", "NUMERIC"]


@dataclass(frozen=True)
class Column:
    """A column as declared.

    Attributes:
        name: As declared, in the declaration's case.
        type: The declared type, "" if there is none.
        affinity: What SQLite makes of the type (https://sqlite.org/datatype3.html, 3.1).
        not_null: Whether it is never NULL: where SQLite refuses NULL (declared so, the INTEGER
            PRIMARY KEY, the primary key of a WITHOUT ROWID table), and in other primary keys
            if the file has no NULL there. SQL allows none in a primary key; that SQLite does
            is an old mistake, kept for compatibility (https://sqlite.org/lang_createtable.html,
            3.5), which no row that we add is to make use of.
        primary_key: Position in the primary key from 1; 0 if it is no part of it.
        default: The default's SQL text, None if there is none.
        generated: Whether its value is computed, so that none can be inserted.
        collation: How its texts compare, as BINARY or NOCASE.
        refuses_null: Whether SQLite itself refuses NULL.
    """

    name: str
    type: str
    affinity: Affinity
    not_null: bool
    primary_key: int
    default: str | None
    generated: bool = False
    collation: str = "BINARY"
    refuses_null: bool = False


@dataclass(frozen=True)
class ForeignKey:
    """A foreign key; ``parent_columns`` are those named, or the parent's primary key."""

    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table or a view.

    Attributes:
        name: As declared.
        columns: In the order of declaration, which is the order of ``*``.
        unique_keys: Each a set of columns whose values differ between any two rows in which
            none of them is NULL: the primary key and unique constraints and indexes, less
            those on expressions or on a part of the rows.
        foreign_keys: As declared; SQLite does not enforce them unless told.
        view: Whether it is a view (then it has no keys).
        rowid_alias: The INTEGER PRIMARY KEY, if there is one.
        without_rowid: Whether it is a WITHOUT ROWID table.
        indexed: The columns, in lower case, that stand in any index or key.
    """

    name: str
    columns: tuple[Column, ...]
    unique_keys: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    view: bool = False
    rowid_alias: str | None = None
    without_rowid: bool = False
    indexed: frozenset[str] = frozenset()

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name.casefold(): column for column in self.columns}

    def column(self, name: str) -> Column | None:
        """Returns a column by its name in any case, None if there is none."""
        return self._by_name.get(name.casefold())


class Schema(Mapping[str, Table]):
    """The tables and views of a database, by name in any case, in the order of creation."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self._tables = {table.name.casefold(): table for table in tables}

    def __getitem__(self, name: str) -> Table:
        return self._tables[name.casefold()]

    def __iter__(self) -> Iterator[str]:
        return (table.name for table in self._tables.values())

    def __len__(self) -> int:
        return len(self._tables)

    def __hash__(self) -> int:
        return hash(tuple(self._tables))


def read_schema(path: Path) -> Schema:
    """Reads the schema of a database file, opened read-only and immutable.

    Raises:
        sqlite3.Error: The file is missing, unreadable or no database.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        return schema_of(connection)


def schema_of(connection: sqlite3.Connection) -> Schema:
    """Reads the schema that an open connection has."""
    from lm_eval_ext.sql.schema_reading import read_table

    found = connection.execute(
        "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view')"
        " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
    ).fetchall()
    return Schema(read_table(connection, name, kind == "view", sql) for name, kind, sql in found)


def affinity_of(declared: str) -> Affinity:
    """Returns the affinity of a declared type, by SQLite's five rules in their order."""
    declared = declared.upper()
    if "INT" in declared:
        return "INTEGER"
    if any(part in declared for part in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if "BLOB" in declared or not declared:
        return "BLOB"
    if any(part in declared for part in ("REAL", "FLOA", "DOUB")):
        return "REAL"
    return "NUMERIC"
