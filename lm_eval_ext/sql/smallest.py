"""The smallest rows of a database on which a prediction is still wrong.

A query that is wrong on a database of 4,000 rows is usually wrong on two of them, and two rows can
be read. Rows are left out as long as the prediction stays wrong: first whole tables, then halves,
quarters and so on of what remains (delta debugging, Zeller and Hildebrandt 2002). The result is
minimal in the sense that no single row can be left out.
"""

import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from lm_eval_ext.sql.executor import Executor
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.values import (
    Failure,
    Place,
    Prediction,
    QueryError,
    Row,
    Rows,
    quoted,
)

MAX_BYTES = 20_000_000
"""The largest file that is searched, since each step writes a copy of it."""

MAX_STEPS = 400
"""The most copies that are tried; a search that ends here has no minimal result."""

MAX_SECONDS = 60.0
"""Real time after which a search ends as well: two slow queries are run for each copy."""

_ROWID_NAMES = ("rowid", "_rowid_", "oid")
_TIMEOUT_S = 2.0
_HALVES = 2


class RowRef(NamedTuple):
    """A row of a table, by its number."""

    table: str
    rowid: int


@dataclass(frozen=True)
class SmallTable:
    """The rest of a table."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Row]


@dataclass(frozen=True)
class SmallestRows:
    """A database cut down to the rows that show a difference.

    Attributes:
        tables: The tables that still have rows.
        gold: The gold's result on these rows.
        predicted: The prediction's result on these rows.
    """

    tables: Sequence[SmallTable]
    gold: Rows | Failure
    predicted: Rows | Failure

    @property
    def count(self) -> int:
        """The number of rows."""
        return sum(len(table.rows) for table in self.tables)


def smallest_rows(location: Place, prediction: Prediction, semantics: str) -> SmallestRows | None:
    """Return the smallest rows of a database on which a prediction is wrong.

    Args:
        location: The database, which is only read.
        prediction: A prediction that is wrong there; its ``db_id`` does not matter.
        semantics: The name of the rule that decides.

    Returns:
        None for another engine than SQLite, a file above :data:`MAX_BYTES`, or one that cannot be
        copied or cut down.
    """
    path = Path(location.address)
    if location.engine != "sqlite" or not path.is_file() or path.stat().st_size > MAX_BYTES:
        return None
    with TemporaryDirectory(prefix="lm-eval-ext-") as folder:
        files = _Candidates(Path(folder))
        with Executor(files, workers=1, limits=Limits(timeout_s=_TIMEOUT_S)) as executor:
            try:
                search = _Search(files, executor, path, prediction, semantics)
                return search.run()
            except (sqlite3.Error, OSError):
                return None


class _Candidates:
    """Finds copies by their numbers, since an executor expects that no database changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()

    def next_id(self) -> str:
        return str(next(self._numbers))

    def path(self, db_id: str) -> Path:
        return self._folder / f"{db_id}.sqlite"

    def find(self, db_id: str) -> Place | None:
        return Place("sqlite", str(self.path(db_id)))


class _Search:
    """Leaves rows out of a copy as long as a prediction stays wrong."""

    def __init__(
        self,
        files: _Candidates,
        executor: Executor,
        original: Path,
        prediction: Prediction,
        semantics: str,
    ) -> None:
        self._files = files
        self._executor = executor
        self._prediction = prediction
        self._semantics = semantics
        self._steps = 0
        self._deadline = time.monotonic() + MAX_SECONDS
        self._best = files.next_id()
        with (
            closing(
                sqlite3.connect(f"{original.resolve().as_uri()}?immutable=1", uri=True)
            ) as source,
            closing(sqlite3.connect(files.path(self._best))) as copy,
        ):
            source.backup(copy)
            self._tables = _prepare(copy)

    def run(self) -> SmallestRows | None:
        """Return what is left; None if nothing could be left out."""
        if not self._still_wrong(self._best):
            return None
        remaining: list[RowRef] = []
        for table in sorted(self._tables, key=lambda name: -len(self._rows_of(name))):
            rows = self._rows_of(table)
            if rows and (self._is_over() or not self._leave_out(rows)):
                remaining += rows
        self._reduce(remaining)
        return self._result()

    def _reduce(self, rows: list[RowRef]) -> None:
        """Leave out ever smaller shares of the rows."""
        size = (len(rows) + 1) // _HALVES
        while rows and size:
            start = 0
            while start < len(rows):
                chunk = rows[start : start + size]
                if self._is_over():
                    return
                if self._leave_out(chunk):
                    rows = rows[:start] + rows[start + size :]
                else:
                    start += size
            size = min(size, len(rows) + 1) // _HALVES

    def _is_over(self) -> bool:
        return self._steps >= MAX_STEPS or time.monotonic() >= self._deadline

    def _leave_out(self, rows: Sequence[RowRef]) -> bool:
        """Leave out rows unless the prediction is no longer wrong; return whether they are out."""
        candidate = self._files.next_id()
        path = self._files.path(candidate)
        shutil.copyfile(self._files.path(self._best), path)
        self._steps += 1
        try:
            with closing(_opened(path)) as connection, connection:
                for row in rows:
                    name, rowid = quoted(row.table), self._tables[row.table]
                    connection.execute(f"DELETE FROM {name} WHERE {rowid} = ?", (row.rowid,))
        except sqlite3.Error:  # an index on a function of the application, say
            path.unlink()
            return False
        if not self._still_wrong(candidate):
            path.unlink()
            return False
        self._files.path(self._best).unlink()
        self._best = candidate
        return True

    def _still_wrong(self, candidate: str) -> bool:
        prediction = self._prediction._replace(db_id=candidate)
        (verdict,) = self._executor.score([prediction], semantics=self._semantics)
        return verdict.status == "wrong"

    def _rows_of(self, table: str) -> list[RowRef]:
        rowid = self._tables[table]
        with closing(_opened(self._files.path(self._best))) as connection:
            numbers = connection.execute(f"SELECT {rowid} FROM {quoted(table)}").fetchall()
        return [RowRef(table, number) for (number,) in numbers]

    def _result(self) -> SmallestRows:
        tables: list[SmallTable] = []
        with closing(_opened(self._files.path(self._best))) as connection:
            for name in self._tables:
                cursor = connection.execute(f"SELECT * FROM {quoted(name)}")
                columns = [column[0] for column in cursor.description]
                rows = cursor.fetchall()
                if rows:
                    tables.append(SmallTable(name, columns, rows))
        return SmallestRows(
            tables,
            self._query(self._prediction.gold),
            self._query(self._prediction.predicted),
        )

    def _query(self, sql: str) -> Rows | Failure:
        try:
            return self._executor.query(self._best, sql)
        except QueryError as error:
            return error.failure


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return connection


def _prepare(connection: sqlite3.Connection) -> dict[str, str]:
    """Make a copy ready for deletions; return how rows of each table are named.

    Triggers would change other rows, so they go. Tables without a rowid and virtual tables stay
    whole.
    """
    connection.execute("PRAGMA journal_mode = DELETE")  # a log would stand beside the copy
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    for (name,) in triggers.fetchall():
        connection.execute(f"DROP TRIGGER {quoted(name)}")
    connection.commit()
    tables: dict[str, str] = {}
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    for (name,) in names.fetchall():
        columns = connection.execute("SELECT name FROM pragma_table_xinfo(?)", (name,)).fetchall()
        column_names = {column.lower() for (column,) in columns}
        rowid = next((name for name in _ROWID_NAMES if name not in column_names), None)
        if rowid is None:
            continue
        try:
            connection.execute(f"SELECT {rowid} FROM {quoted(name)} LIMIT 1")
        except sqlite3.Error:  # a table without rowids
            continue
        tables[name] = rowid
    return tables
