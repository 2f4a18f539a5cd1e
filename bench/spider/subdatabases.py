"""Sub-databases: an original without some of its rows, and with whole foreign keys.

They check suites by rows that no program has written. A wrong prediction that the suite accepts may
differ from the gold on one of them.
"""

import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lm_eval_ext.sql.schema import schema_of
from lm_eval_ext.sql.values import quoted

MIN_SHARE, MAX_SHARE = 0.1, 0.9
"""The share of rows that a sub-database keeps is drawn between these."""

MAX_ORPHANS = 0.1
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
    def digest(self) -> str:
        """A text that identifies all of them, given the original."""
        return f"sub-databases:{self.count}"

    def path(self, name: str) -> Path:
        """Return the file of a database."""
        return self.folder / f"{name}.sqlite"

    def judges_of(self, _gold: str) -> tuple[str, ...]:
        """Return the names of all databases: each may judge every gold."""
        return self.names

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all databases."""
        return tuple(f"sub-{number}" for number in range(self.count))


@dataclass(frozen=True)
class Reference:
    """A foreign key of a table.

    Attributes:
        child: The table whose rows refer to others.
        parent: The table that they refer to.
        columns: Pairs of a child's column and the parent's column with the same value.
    """

    child: str
    parent: str
    columns: tuple[tuple[str, str], ...]

    @property
    def orphan_condition(self) -> str:
        """The condition in SQL that a row of the child has no parent though no column is NULL."""
        terms = []
        matches = []
        for column, target in self.columns:
            child_column = f"{quoted(self.child)}.{quoted(column)}"
            terms.append(f"{child_column} IS NOT NULL")
            matches.append(f"parent.{quoted(target)} = {child_column}")
        parents = (
            f"SELECT 1 FROM main.{quoted(self.parent)} AS parent WHERE {' AND '.join(matches)}"
        )
        return " AND ".join([*terms, f"NOT EXISTS ({parents})"])


def make_sub_databases(original: Path, folder: Path, count: int) -> SubDatabases:
    """Write sub-databases of an original; the same number always has the same rows.

    Args:
        original: A SQLite file, which is only read.
        folder: A new folder for them.
        count: How many.
    """
    folder.mkdir(parents=True)
    sub_databases = SubDatabases(folder, count)
    for name in sub_databases.names:
        path = sub_databases.path(name)
        shutil.copyfile(original, path)
        path.chmod(0o644)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = OFF")
            with connection:
                _leave_rows_out(connection, random.Random(f"{original.stem}/{name}"))
    return sub_databases


def _leave_rows_out(connection: sqlite3.Connection, generator: random.Random) -> None:
    """Remove rows at random, and then those whose parents are gone."""
    share = generator.uniform(MIN_SHARE, MAX_SHARE)
    tables = connection.execute(
        "SELECT name FROM main.sqlite_master WHERE type = 'table' "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
    ).fetchall()
    references = []
    for reference in _references(connection):
        if _holds(connection, reference):
            references.append(reference)
    for (table,) in tables:
        rowids = connection.execute(f"SELECT rowid FROM main.{quoted(table)}").fetchall()
        removed = [rowid for rowid in rowids if generator.random() >= share]
        connection.executemany(f"DELETE FROM main.{quoted(table)} WHERE rowid = ?", removed)
    removed_orphans = True
    while removed_orphans:  # rows that refer to the removed ones go next
        removed_orphans = False
        for reference in references:
            if _remove_orphans(connection, reference):
                removed_orphans = True


def _references(connection: sqlite3.Connection) -> list[Reference]:
    """Return the foreign keys between tables that are there, by the columns that they name."""
    schema = schema_of(connection)
    references = []
    for table in schema.values():
        for key in table.foreign_keys:
            has_targets = len(key.columns) == len(key.parent_columns)
            if key.parent in schema and has_targets:
                columns = tuple(zip(key.columns, key.parent_columns, strict=True))
                references.append(Reference(table.name, schema[key.parent].name, columns))
    return references


def _remove_orphans(connection: sqlite3.Connection, reference: Reference) -> int:
    """Remove the rows without a parent, and return how many there were."""
    statement = f"DELETE FROM main.{quoted(reference.child)} WHERE {reference.orphan_condition}"
    return connection.execute(statement).rowcount


def _holds(connection: sqlite3.Connection, reference: Reference) -> bool:
    """Return whether the key holds for most rows, as some of Spider's do for none."""
    count = f"SELECT count(*) FROM main.{quoted(reference.child)}"
    (rows,) = connection.execute(count).fetchone()
    (orphans,) = connection.execute(f"{count} WHERE {reference.orphan_condition}").fetchone()
    return bool(orphans <= MAX_ORPHANS * rows)
