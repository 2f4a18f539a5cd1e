"""Sub-databases: an original without some of its rows, and with whole foreign keys.

They check suites by rows that no program has written. A wrong prediction that the suite accepts may
differ from the gold on one of them.
"""

import random
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.sql.values import quoted

LEAST_SHARE, MOST_SHARE = 0.1, 0.9
"""The share of rows that a sub-database keeps is drawn between these."""

MOST_ORPHANS = 0.1
"""A foreign key counts if no larger share of the original's rows breaks it. Rows that do are left
out, since a query is not wrong for relying on the key."""


@dataclass(frozen=True)
class SubDatabases:
    """The sub-databases of one original, which judge like a test suite.

    Attributes:
        folder: The folder that holds them.
        count: Their number.
    """

    folder: Path
    count: int

    @property
    def databases(self) -> Mapping[str, str]:
        """Their names; the content of each follows from its name and the original."""
        return {name: name for name in self._names()}

    @property
    def content(self) -> str:
        """A text that identifies all of them, given the original."""
        return f"sub-databases:{self.count}"

    def path(self, name: str) -> Path:
        """Return the file of a database."""
        return self.folder / f"{name}.sqlite"

    def judging(self, _gold: str) -> tuple[str, ...]:
        """Return all databases: each may judge every gold."""
        return self._names()

    def _names(self) -> tuple[str, ...]:
        return tuple(f"sub-{number}" for number in range(self.count))


@dataclass(frozen=True)
class ForeignKey:
    """Columns of a table that refer to those of another."""

    child: str
    parent: str
    columns: tuple[tuple[str, str], ...]


def make_sub_databases(original: Path, folder: Path, count: int) -> SubDatabases:
    """Write sub-databases of an original; the same number always has the same rows.

    Args:
        original: A SQLite file, which is only read.
        folder: A new folder for them.
        count: How many.
    """
    folder.mkdir(parents=True)
    sub_databases = SubDatabases(folder, count)
    for name in sub_databases.databases:
        path = sub_databases.path(name)
        shutil.copyfile(original, path)
        path.chmod(0o644)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = OFF")
            with connection:
                _leave_rows_out(connection, random.Random(f"{original.stem}/{name}"))
    return sub_databases


def _leave_rows_out(connection: sqlite3.Connection, generator: random.Random) -> None:
    share = generator.uniform(LEAST_SHARE, MOST_SHARE)
    tables = [
        name
        for (name,) in connection.execute(
            "SELECT name FROM main.sqlite_master WHERE type = 'table' "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        )
    ]
    keys = [key for key in _foreign_keys(connection, tables) if _holds(connection, key)]
    for table in tables:
        rowids = connection.execute(f"SELECT rowid FROM main.{quoted(table)}").fetchall()
        removed = [rowid for rowid in rowids if generator.random() >= share]
        connection.executemany(f"DELETE FROM main.{quoted(table)} WHERE rowid = ?", removed)
    while any(_remove_orphans(connection, key) for key in keys):
        pass  # rows that refer to the removed ones go next


def _foreign_keys(connection: sqlite3.Connection, tables: list[str]) -> list[ForeignKey]:
    names = {table.casefold(): table for table in tables}
    keys: list[ForeignKey] = []
    for table in tables:
        pairs: dict[int, list[tuple[str, str]]] = defaultdict(list)
        parents: dict[int, str] = {}
        rows = connection.execute(
            'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?)', (table,)
        )
        for number, parent, column, target in rows.fetchall():
            parent_name = names.get(parent.casefold())
            if parent_name is None:
                continue
            parents[number] = parent_name
            pairs[number].append((column, target or _primary_key(connection, parent_name)))
        keys += [ForeignKey(table, parents[number], tuple(pairs[number])) for number in pairs]
    return keys


def _primary_key(connection: sqlite3.Connection, table: str) -> str:
    row = connection.execute(
        "SELECT name FROM pragma_table_info(?) WHERE pk = 1", (table,)
    ).fetchone()
    return str(row[0]) if row else "rowid"


def _remove_orphans(connection: sqlite3.Connection, key: ForeignKey) -> int:
    """Remove the rows without a parent, and return how many there were."""
    child = quoted(key.child)
    return connection.execute(f"DELETE FROM main.{child} WHERE {_orphaned(key)}").rowcount


def _orphaned(key: ForeignKey) -> str:
    """Return the condition that a row of the child's table has no parent."""
    child, parent = quoted(key.child), quoted(key.parent)
    names = [(quoted(column), quoted(target)) for column, target in key.columns]
    has_value = " AND ".join(f"{child}.{column} IS NOT NULL" for column, _ in names)
    matches = " AND ".join(f"parent.{target} = {child}.{column}" for column, target in names)
    return f"{has_value} AND NOT EXISTS (SELECT 1 FROM main.{parent} AS parent WHERE {matches})"


def _holds(connection: sqlite3.Connection, key: ForeignKey) -> bool:
    """Return whether the key holds for most rows, as some of Spider's do for none."""
    child = quoted(key.child)
    (orphans,) = connection.execute(
        f"SELECT count(*) FROM main.{child} WHERE {_orphaned(key)}"
    ).fetchone()
    (rows,) = connection.execute(f"SELECT count(*) FROM main.{child}").fetchone()
    return bool(orphans <= MOST_ORPHANS * rows)
