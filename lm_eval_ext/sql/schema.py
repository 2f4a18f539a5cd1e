"""The tables, columns and keys that a database declares, read by SQLite's pragmas."""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from lm_eval_ext.log import get_logger
from lm_eval_ext.sql.values import quoted
from lm_eval_ext.text import one_line

_log = get_logger(__name__)

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
            if the file has no NULL there. The SQL standard allows none in a primary key; that
            SQLite does is a bug kept for compatibility
            (https://sqlite.org/lang_createtable.html, 3.5), and no added row relies on it.
        primary_key: Position in the primary key from 1; 0 if it is not part of it.
        generated: Whether its value is computed, so that it cannot be inserted.
        holds_null: Whether some row of the file has NULL there; of a view it is not known, so no.
        repeats: Whether several rows of the file have the same value; likewise.
    """

    name: str
    type: str
    affinity: Affinity
    not_null: bool
    primary_key: int
    generated: bool = False
    holds_null: bool = False
    repeats: bool = False

    @property
    def numeric(self) -> bool:
        """Whether its affinity converts texts that look like numbers."""
        return self.affinity in ("INTEGER", "REAL", "NUMERIC")


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
        foreign_keys: As declared; SQLite does not enforce them by default.
        view: Whether it is a view (then it has no keys).
        rowid: Whether rows have a rowid of their own, which is no column.
    """

    name: str
    columns: tuple[Column, ...]
    unique_keys: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    view: bool = False
    rowid: bool = True

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """The columns by their names in lower case."""
        return {column.name.casefold(): column for column in self.columns}

    def column(self, name: str) -> Column | None:
        """Returns a column by its name in any case, None if there is none."""
        return self.by_name.get(name.casefold())

    def __getitem__(self, name: str) -> Column:
        return self.by_name[name.casefold()]


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


def schema_of(connection: sqlite3.Connection) -> Schema:
    """Reads the schema through an open connection."""
    found = connection.execute(
        "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view')"
        " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
    ).fetchall()
    tables = []
    for name, kind, sql in found:
        try:
            tables.append(read_table(connection, name, sql, view=kind == "view"))
        except sqlite3.OperationalError as error:
            # A view of a column that is gone, or a virtual table of a module that is not there:
            # no query can use it, the rest of the database can be used.
            _log.warning("the %s %s is skipped: %s", kind, name, one_line(str(error)))
    return Schema(tables)


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


def read_table(connection: sqlite3.Connection, name: str, sql: str, *, view: bool) -> Table:
    """Reads the declaration of one table or view.

    Args:
        connection: The open database.
        name: As declared.
        sql: Its CREATE statement.
        view: Whether it is a view.
    """
    table = quoted(name)
    info = [
        row
        for row in connection.execute(f"PRAGMA table_xinfo({table})").fetchall()
        if row[6] != 1  # columns of virtual tables that ``*`` leaves out
    ]
    indexes = connection.execute(f"PRAGMA index_list({table})").fetchall()
    primary = [row[1] for row in sorted(info, key=lambda row: row[5]) if row[5]]
    # An INTEGER PRIMARY KEY is the rowid itself and has no index.
    own_index = any(origin == "pk" for _, _, _, origin, _ in indexes)
    without_rowid = bool(primary) and not view and re.search(
        r"\bWITHOUT\s+ROWID\b[^)]*$", sql, re.IGNORECASE
    ) is not None  # fmt: skip
    has_alias = len(primary) == 1 and not (own_index or view or without_rowid)
    alias = primary[0] if has_alias else None
    names = [row[1] for row in info]
    held = dict.fromkeys(names, (False, False)) if view else _held(connection, table, names)
    columns = tuple(
        Column(
            name=column,
            type=declared,
            affinity=affinity_of(declared),
            not_null=bool(not_null) or (key > 0 and not held[column][0]),
            primary_key=key,
            generated=hidden in (2, 3),
            holds_null=held[column][0],
            repeats=held[column][1],
        )
        for _, column, declared, not_null, _, key, hidden in info
    )
    return Table(
        name=name,
        columns=columns,
        unique_keys=_unique_keys(connection, indexes, alias),
        foreign_keys=_foreign_keys(connection, table),
        view=view,
        rowid=alias is None and not without_rowid,
    )


def _held(
    connection: sqlite3.Connection, table: str, columns: list[str]
) -> dict[str, tuple[bool, bool]]:
    """Returns whether each column holds NULL, and whether a value repeats."""
    asked = ", ".join(f"count({quoted(c)}), count(DISTINCT {quoted(c)})" for c in columns)
    rows, *found = connection.execute(f"SELECT count(*), {asked} FROM {table}").fetchone()
    pairs = zip(found[::2], found[1::2], strict=True)
    return {
        column: (full < rows, distinct < full)
        for column, (full, distinct) in zip(columns, pairs, strict=True)
    }


def _unique_keys(
    connection: sqlite3.Connection,
    indexes: list[tuple[int, str, int, str, int]],
    alias: str | None,
) -> tuple[tuple[str, ...], ...]:
    keys = [] if alias is None else [(alias,)]
    for _, index, unique, _, partial in indexes:
        parts = connection.execute(f"PRAGMA index_info({quoted(index)})").fetchall()
        if unique and not partial and all(name is not None for _, _, name in parts):
            keys.append(tuple(name for _, _, name in parts))
    return tuple(dict.fromkeys(sorted(keys, key=len)))


def _foreign_keys(connection: sqlite3.Connection, table: str) -> tuple[ForeignKey, ...]:
    found: dict[int, list[tuple[str, str, str | None]]] = {}
    for key, _, parent, column, target, *_ in connection.execute(
        f"PRAGMA foreign_key_list({table})"
    ):
        found.setdefault(key, []).append((parent, column, target))
    keys = []
    for _, parts in sorted(found.items(), reverse=True):  # SQLite numbers them from the last
        parent = parts[0][0]
        targets = tuple(target for _, _, target in parts if target is not None)
        if not targets:
            rows = connection.execute(f"PRAGMA table_info({quoted(parent)})").fetchall()
            targets = tuple(r[1] for r in sorted(rows, key=lambda r: r[5]) if r[5])
        keys.append(ForeignKey(tuple(column for _, column, _ in parts), parent, targets))
    return tuple(keys)
