"""Reading one table's declaration from a database, by SQLite's pragmas."""

import re
import sqlite3
from contextlib import closing

from lm_eval_ext.sql.schema import Column, ForeignKey, Table, affinity_of


def read_table(connection: sqlite3.Connection, name: str, view: bool, sql: str) -> Table:  # noqa: FBT001
    """Reads one table or view.

    Args:
        connection: The open database.
        name: As declared.
        view: Whether it is a view.
        sql: Its CREATE statement.
    """
    quoted = '"' + name.replace('"', '""') + '"'
    info = [
        row
        for row in connection.execute(f"PRAGMA table_xinfo({quoted})").fetchall()
        if row[6] != 1  # columns of virtual tables that ``*`` leaves out
    ]
    indexes = connection.execute(f"PRAGMA index_list({quoted})").fetchall()
    primary = [row[1] for row in sorted(info, key=lambda row: row[5]) if row[5]]
    # An INTEGER PRIMARY KEY is the row's number itself: it needs no index, so there is none.
    own_index = any(origin == "pk" for _, _, _, origin, _ in indexes)
    alias = primary[0] if len(primary) == 1 and not own_index and not view else None
    without_rowid = bool(primary) and not view and re.search(
        r"\bWITHOUT\s+ROWID\b[^)]*$", sql, re.IGNORECASE
    ) is not None  # fmt: skip
    alias = None if without_rowid else alias
    collations = _collations(connection, sql, [row[1] for row in info], view=view)
    columns = tuple(
        Column(
            name=column,
            type=declared,
            affinity=affinity_of(declared),
            not_null=bool(not_null) or (key > 0 and not _holds_null(connection, quoted, column)),
            primary_key=key,
            default=default,
            generated=hidden in (2, 3),
            collation=collations.get(column, "BINARY"),
            refuses_null=bool(not_null) or column == alias or (without_rowid and key > 0),
        )
        for _, column, declared, not_null, default, key, hidden in info
    )
    return Table(
        name=name,
        columns=columns,
        unique_keys=_unique_keys(connection, indexes, alias, columns),
        foreign_keys=_foreign_keys(connection, quoted, name),
        view=view,
        rowid_alias=alias,
        without_rowid=without_rowid,
        indexed=_indexed(connection, indexes) | {name.casefold() for name in primary},
    )


def _holds_null(connection: sqlite3.Connection, table: str, column: str) -> bool:
    name = '"' + column.replace('"', '""') + '"'
    query = f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {name} IS NULL)"
    return bool(connection.execute(query).fetchone()[0])


def _unique_keys(
    connection: sqlite3.Connection,
    indexes: list[tuple[int, str, int, str, int]],
    alias: str | None,
    columns: tuple[Column, ...],
) -> tuple[tuple[str, ...], ...]:
    collation = {column.name: column.collation for column in columns}
    keys = [] if alias is None else [(alias,)]
    for _, index, unique, _, partial in indexes:
        quoted = '"' + index.replace('"', '""') + '"'
        parts = [row for row in connection.execute(f"PRAGMA index_xinfo({quoted})") if row[5]]
        # An index that tells "a" from "A" says nothing where the column takes them for equal.
        fits = all(
            name is not None and used in ("NOCASE", "RTRIM", collation.get(name))
            and collation.get(name) in ("BINARY", used)
            for _, _, name, _, used, _ in parts
        )  # fmt: skip
        if unique and not partial and fits:
            keys.append(tuple(name for _, _, name, _, _, _ in parts))
    return tuple(dict.fromkeys(sorted(keys, key=len)))


def _indexed(
    connection: sqlite3.Connection, indexes: list[tuple[int, str, int, str, int]]
) -> frozenset[str]:
    found: set[str] = set()
    for _, index, *_ in indexes:
        quoted = '"' + index.replace('"', '""') + '"'
        names = [row[2] for row in connection.execute(f"PRAGMA index_info({quoted})")]
        found |= {name.casefold() for name in names if name is not None}
    return frozenset(found)


def _foreign_keys(connection: sqlite3.Connection, quoted: str, name: str) -> tuple[ForeignKey, ...]:
    found: dict[int, list[tuple[str, str, str | None]]] = {}
    for key, _, parent, column, target, *_ in connection.execute(
        f"PRAGMA foreign_key_list({quoted})"
    ):
        found.setdefault(key, []).append((parent, column, target))
    keys = []
    for _, parts in sorted(found.items(), reverse=True):  # SQLite numbers them from the last
        parent = parts[0][0]
        targets = tuple(target for _, _, target in parts if target is not None)
        if not targets:
            parent_quoted = '"' + parent.replace('"', '""') + '"'
            rows = connection.execute(f"PRAGMA table_info({parent_quoted})").fetchall()
            targets = tuple(r[1] for r in sorted(rows, key=lambda r: r[5]) if r[5])
        keys.append(ForeignKey(tuple(column for _, column, _ in parts), parent, targets))
    return tuple(keys)


def _collations(
    connection: sqlite3.Connection, sql: str, columns: list[str], *, view: bool
) -> dict[str, str]:
    """Asks SQLite itself, by indexing an empty copy: no pragma tells a column's collation.

    A view's column has that of a table's; which one is not looked into.
    """
    if view:
        query = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE sql LIKE '%COLLATE%')"
        any_collation = connection.execute(query).fetchone()[0]
        return dict.fromkeys(columns, "unknown") if any_collation else {}
    if "COLLATE" not in sql.upper():
        return {}
    answer: dict[str, str] = {}
    with closing(sqlite3.connect(":memory:")) as copy:
        try:
            copy.execute(sql)
            table = copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchone()[
                0
            ]
            for number, column in enumerate(columns):
                target = '"' + table.replace('"', '""') + '"("' + column.replace('"', '""') + '")'
                copy.execute(f"CREATE INDEX ask{number} ON {target}")
                answer[column] = next(copy.execute(f"PRAGMA index_xinfo(ask{number})"))[4]
        except sqlite3.Error:  # a collation or module that is not at hand: compare nothing by it
            return dict.fromkeys(columns, "unknown")
    return answer
