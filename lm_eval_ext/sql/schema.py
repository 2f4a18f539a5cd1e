"""The tables, columns and keys that a database declares, read by SQLite's pragmas."""

import sqlite3
import string
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from lm_eval_ext.log import get_logger
from lm_eval_ext.sql.values import quoted
from lm_eval_ext.text import one_line

_log = get_logger(__name__)

Affinity = Literal["INTEGER", "TEXT", "BLOB", "REAL", "NUMERIC"]

ROWID_NAMES = ("_rowid_", "oid", "rowid")
"""Names of a row's number, where no column has them (https://sqlite.org/rowidtable.html)."""

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

_EXPRESSIONS = 500
"""Result columns of one query of our own; SQLite takes 2,000 unless it was built with fewer."""

_SHADOW_ENDINGS = (
    "_data", "_idx", "_content", "_docsize", "_config",  # FTS5
    "_segments", "_segdir", "_stat",  # FTS3 and FTS4
    "_node", "_parent", "_rowid",  # R-tree
)  # fmt: skip
"""Endings of the tables in which virtual tables keep their data, for SQLite before 3.37."""


def fold(name: str) -> str:
    """Return a name as SQLite compares it: only the letters A to Z are the same in both cases."""
    return name.translate(_LOWER)


def decode_text(raw: bytes) -> str:
    """Return a text as :data:`~lm_eval_ext.sql.values.Value` holds it, whatever its bytes."""
    return raw.decode("utf-8", "surrogateescape")


@contextmanager
def any_text(connection: sqlite3.Connection) -> Iterator[None]:
    """Read texts of any bytes within the block, by :func:`decode_text`."""
    previous_factory = connection.text_factory
    connection.text_factory = decode_text
    try:
        yield
    finally:
        connection.text_factory = previous_factory


@dataclass(frozen=True)
class Column:
    """A column as declared.

    Attributes:
        name: The name, in the declaration's case.
        type: The declared type, "" if there is none.
        affinity: What SQLite makes of the type (https://sqlite.org/datatype3.html, 3.1).
        not_null: Whether it is never NULL: where SQLite refuses NULL (declared so, the INTEGER
            PRIMARY KEY, the primary key of a WITHOUT ROWID table), and in other primary keys
            if the file has no NULL there. The SQL standard allows none in a primary key; that
            SQLite does is a bug kept for compatibility
            (https://sqlite.org/lang_createtable.html, 3.5), and no added row relies on it.
        primary_key: Position in the primary key from 1; 0 if it is not part of it.
        generated: Whether its value is computed, so that it cannot be inserted.
        holds_null: Whether some row of the file has NULL there; False for views, whose rows are
            not read.
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
        name: The name, in the declaration's case.
        columns: In the order of declaration, which is the order of ``*``.
        unique_keys: Each a set of columns whose values differ between any two rows in which
            none of them is NULL: the primary key and unique constraints and indexes, less
            those on expressions or on a part of the rows.
        foreign_keys: As declared; SQLite does not enforce them by default.
        view: Whether it is a view (then it has no keys).
        rowid: Whether rows have a rowid of their own, which is no column.
        virtual: Whether a module of SQLite stores its rows (full-text search, R-tree), or whether
            it is one of the tables in which such a module keeps them.
    """

    name: str
    columns: tuple[Column, ...]
    unique_keys: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    view: bool = False
    rowid: bool = True
    virtual: bool = False

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """The columns by their folded names."""
        return {fold(column.name): column for column in self.columns}

    def column(self, name: str) -> Column | None:
        """Return a column by its name in any case, None if there is none."""
        return self.by_name.get(fold(name))

    def has_key_among(self, names: Set[str]) -> bool:
        """Return whether a unique key consists of some of these folded names."""
        return any(names >= set(map(fold, key)) for key in self.unique_keys)

    def __getitem__(self, name: str) -> Column:
        return self.by_name[fold(name)]


class Schema(Mapping[str, Table]):
    """The tables and views of a database, by name in any case, in the order of creation."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self._tables = {fold(table.name): table for table in tables}

    def __getitem__(self, name: str) -> Table:
        return self._tables[fold(name)]

    def __iter__(self) -> Iterator[str]:
        return (table.name for table in self._tables.values())

    def __len__(self) -> int:
        return len(self._tables)

    def __hash__(self) -> int:
        return hash(tuple(self._tables))


def schema_of(connection: sqlite3.Connection) -> Schema:
    """Read the schema through an open connection.

    A table that cannot be read is left out with a warning: a view of a column that is gone, a
    virtual table of a module that is not there, a column that a function of the application
    computes. No query can use what cannot be read, and the rest of the database can be used.

    Raises:
        sqlite3.Error: The list of tables cannot be read.
    """
    tables = []
    with any_text(connection):
        declarations = connection.execute(
            "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view')"
            " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
        ).fetchall()
        virtual_names = _virtual_names(connection, declarations)
        for name, relation, _ in declarations:
            virtual = name in virtual_names
            try:
                table = read_table(connection, name, view=relation == "view", virtual=virtual)
            except (sqlite3.Error, UnicodeError) as error:
                reason = one_line(str(error), limit=200)
                _log.warning("the %s %s is skipped: %s", relation, one_line(name), reason)
                continue
            tables.append(table)
    return Schema(tables)


def affinity_of(declared: str) -> Affinity:
    """Return the affinity of a declared type, by SQLite's five rules in their order."""
    folded = fold(declared)
    if "int" in folded:
        return "INTEGER"
    if "char" in folded or "clob" in folded or "text" in folded:
        return "TEXT"
    if "blob" in folded or not folded:
        return "BLOB"
    if "real" in folded or "floa" in folded or "doub" in folded:
        return "REAL"
    return "NUMERIC"


def read_table(
    connection: sqlite3.Connection, name: str, *, view: bool, virtual: bool = False
) -> Table:
    """Read the declaration of one table or view.

    Args:
        connection: The open database.
        name: The table's name, as declared.
        view: Whether it is a view.
        virtual: Whether a module stores its rows.

    Raises:
        sqlite3.Error: It cannot be read.
    """
    table = quoted(name)
    declared_columns = []
    for row in connection.execute(f"PRAGMA table_xinfo({table})"):
        column = _DeclaredColumn(*row)
        if column.hidden != 1:  # a column of a virtual table that ``*`` leaves out
            declared_columns.append(column)
    names = [column.name for column in declared_columns]
    indexes = connection.execute(f"PRAGMA index_list({table})").fetchall()
    by_key_position = sorted(declared_columns, key=lambda column: column.primary_key)
    primary = [column.name for column in by_key_position if column.primary_key]
    has_rowid = not view and _has_rowid(connection, table, names)
    # An INTEGER PRIMARY KEY is the rowid itself and has no index.
    has_key_index = any(origin == "pk" for _, _, _, origin, _ in indexes)
    is_rowid_alias = len(primary) == 1 and has_rowid and not has_key_index
    alias = primary[0] if is_rowid_alias else None
    if view:
        contents = dict.fromkeys(names, _Contents(holds_null=False, repeats=False))
    else:
        contents = _read_contents(connection, table, names)
    return Table(
        name=name,
        columns=tuple(_column(column, contents[column.name]) for column in declared_columns),
        unique_keys=_unique_keys(connection, indexes, alias),
        foreign_keys=_foreign_keys(connection, table),
        view=view,
        rowid=view or (has_rowid and alias is None),
        virtual=virtual,
    )


class _DeclaredColumn(NamedTuple):
    """A row of ``PRAGMA table_xinfo``."""

    position: int
    name: str
    type: str
    not_null: int
    default: str | None
    primary_key: int
    hidden: int


class _Contents(NamedTuple):
    """What the rows of a file say about a column."""

    holds_null: bool
    repeats: bool


def _column(declared: _DeclaredColumn, contents: _Contents) -> Column:
    in_key_without_null = declared.primary_key > 0 and not contents.holds_null
    return Column(
        name=declared.name,
        type=declared.type,
        affinity=affinity_of(declared.type),
        not_null=bool(declared.not_null) or in_key_without_null,
        primary_key=declared.primary_key,
        generated=declared.hidden in (2, 3),
        holds_null=contents.holds_null,
        repeats=contents.repeats,
    )


def _virtual_names(
    connection: sqlite3.Connection, declarations: Sequence[tuple[str, str, str]]
) -> set[str]:
    """Return the names of virtual tables and of the tables in which they keep their data."""
    virtual = {
        name for name, _, sql in declarations if fold(sql or "").startswith("create virtual")
    }
    if not virtual:
        return virtual
    listed_tables = connection.execute("PRAGMA table_list").fetchall()
    if listed_tables:
        shadows = {name for _, name, relation, *_ in listed_tables if relation == "shadow"}
    else:
        possible_shadows = {name + ending for name in virtual for ending in _SHADOW_ENDINGS}
        shadows = possible_shadows.intersection(name for name, _, _ in declarations)
    return virtual | shadows


def _has_rowid(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> bool:
    """Return whether rows have a number, by asking for it; tables WITHOUT ROWID have none."""
    taken = {fold(column) for column in columns}
    name = next((name for name in ROWID_NAMES if name not in taken), None)
    if name is None:
        return False
    try:
        connection.execute(f"SELECT {name} FROM {table} LIMIT 0")
    except sqlite3.OperationalError as error:
        if "no such column" in str(error):
            return False
        raise
    return True


def _read_contents(
    connection: sqlite3.Connection, table: str, columns: Sequence[str]
) -> dict[str, _Contents]:
    contents = {}
    step = _EXPRESSIONS // 2
    for start in range(0, len(columns), step):
        chunk = columns[start : start + step]
        try:
            numbers = _count_values(connection, table, chunk, "")
        except sqlite3.OperationalError as error:
            if "no such collation sequence" not in str(error):
                raise
            # Only the application knows when two values are equal; here, when their bytes are.
            numbers = _count_values(connection, table, chunk, " COLLATE BINARY")
        rows, *counts = numbers
        for column, filled, distinct in zip(chunk, counts[::2], counts[1::2], strict=True):
            contents[column] = _Contents(holds_null=filled < rows, repeats=distinct < filled)
    return contents


def _count_values(
    connection: sqlite3.Connection, table: str, columns: Sequence[str], collation: str
) -> Sequence[int]:
    """Return the number of rows, and for each column of values and of different values."""
    counts = ["count(*)"]
    for column in columns:
        name = quoted(column)
        counts += [f"count({name})", f"count(DISTINCT {name}{collation})"]
    numbers: Sequence[int] = connection.execute(
        f"SELECT {', '.join(counts)} FROM {table}"
    ).fetchone()
    return numbers


def _unique_keys(
    connection: sqlite3.Connection,
    indexes: Sequence[tuple[int, str, int, str, int]],
    alias: str | None,
) -> tuple[tuple[str, ...], ...]:
    keys = []
    if alias is not None:
        keys.append((alias,))
    for _, index, unique, _, partial in indexes:
        rows = connection.execute(f"PRAGMA index_info({quoted(index)})").fetchall()
        # The name of an expression is NULL.
        columns = tuple(name for _, _, name in rows)
        if unique and not partial and None not in columns:
            keys.append(columns)
    return tuple(dict.fromkeys(sorted(keys, key=len)))


def _foreign_keys(connection: sqlite3.Connection, table: str) -> tuple[ForeignKey, ...]:
    parents: dict[int, str] = {}
    columns: dict[int, list[str]] = defaultdict(list)
    targets: dict[int, list[str]] = defaultdict(list)
    for key, _, parent, column, target, *_ in connection.execute(
        f"PRAGMA foreign_key_list({table})"
    ):
        parents[key] = parent
        columns[key].append(column)
        if target is not None:
            targets[key].append(target)
    keys = []
    for key in sorted(parents, reverse=True):  # SQLite numbers from the last
        parent = parents[key]
        parent_columns = tuple(targets[key]) or _primary_key(connection, parent)
        keys.append(ForeignKey(tuple(columns[key]), parent, parent_columns))
    return tuple(keys)


def _primary_key(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    positions: dict[str, int] = {}
    for _, name, _, _, _, position in connection.execute(f"PRAGMA table_info({quoted(table)})"):
        if position:
            positions[name] = position
    return tuple(sorted(positions, key=positions.__getitem__))
