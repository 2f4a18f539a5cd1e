"""A database in memory, with what small ones are drawn from, and small ones made of rows.

Any file that SQLite reads can be an original. What cannot be created anew is left out of small
databases with its reason: virtual tables with the tables that keep their data, tables whose
declaration calls a function or a collation of the application, tables that cannot be read. A gold
that reads such a table fails on every small database, so the original alone judges it.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path

from lm_eval_ext.errors import DataError
from lm_eval_ext.sql.schema import ForeignKey, Table, any_text, decode_text, fold, schema_of
from lm_eval_ext.sql.suite.checks import Runner
from lm_eval_ext.sql.suite.reading import read_source
from lm_eval_ext.sql.values import Row, Value, quoted, quoted_all
from lm_eval_ext.text import one_line

_DECLARATIONS = (
    "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type <> 'trigger'"
    " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type = 'view', rowid"
)
"""Tables come before their indexes, and views last."""

_WAL_MARK = b"\x02\x02"
"""Bytes 18 and 19 of a file that is written through a log (https://sqlite.org/fileformat.html)."""


class Original:
    """A database in memory, with what small ones are drawn from.

    Attributes:
        path: The file.
        connection: The copy in memory.
        runner: Runs queries on it.
        schema: All that it declares.
        golds: The gold queries, sorted.
        excluded: Why tables are not in small databases, by name.
        source: What small databases are drawn from.

    Raises:
        DataError: It cannot be read.
    """

    def __init__(self, path: Path, golds: Sequence[str]) -> None:
        self.path = path
        self.connection = in_memory(path)
        self.runner = Runner(self.connection)
        self.golds = sorted(set(golds))
        self.excluded: dict[str, str] = {}
        self._statements: list[str] = []
        try:
            self.schema = schema_of(self.connection)
            tables = self._copyable_tables()
            self.source = read_source(self.connection, self.schema, tables, self.golds)
        except sqlite3.Error as error:
            self.connection.close()
            raise DataError(
                f"cannot read the database {path}: {one_line(str(error), limit=200)}"
            ) from None

    @cached_property
    def tables_read(self) -> Set[str]:
        """The tables that golds may read, by folded names; all where that is not certain."""
        all_tables = self.source.links.keys()
        has_views = any(table.view for table in self.schema.values())
        if has_views or len(self.source.requirements) < len(self.golds):
            return all_tables
        return {table for gold in self.source.requirements for table in gold.tables}

    def _copyable_tables(self) -> dict[str, Table]:
        """Return the tables that can be created anew, by folded names.

        Each statement is tried on an empty database. Fills ``excluded`` and ``_statements``.
        """
        tables = {}
        with any_text(self.connection):
            declarations = self.connection.execute(_DECLARATIONS).fetchall()
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as trial:
            for relation, name, sql in declarations:
                # Texts that are not UTF-8 can only stand in comments, defaults and conditions.
                statement = sql.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                if relation == "table":
                    problem = self._table_problem(trial, name, statement)
                    if problem:
                        self.excluded[name] = problem
                    else:
                        tables[fold(name)] = self.schema[name]
                else:
                    # Queries need no index, and a view that fails is not there.
                    problem = _create(trial, statement)
                if not problem:
                    self._statements.append(statement)
        return tables

    def _table_problem(self, trial: sqlite3.Connection, name: str, statement: str) -> str:
        """Create a table on a trial database; return why it cannot be used there, or ""."""
        if name not in self.schema:
            return "it cannot be read"
        if self.schema[name].virtual:
            return "a virtual table"
        table = quoted(name)
        columns = _stored_columns(self.schema[name])
        nulls = ", ".join(["NULL"] * len(columns))
        problem = _create(
            trial,
            statement,
            # Compiled with all conditions, and run without a row.
            f"INSERT INTO {table} ({quoted_all(columns)}) SELECT {nulls} WHERE 0",
            f"SELECT * FROM {table}",
        )
        if problem:
            with suppress(sqlite3.Error, UnicodeError):
                trial.execute(f"DROP TABLE {table}")
        return problem

    def fill(self, rows: Mapping[str, Sequence[Row]]) -> sqlite3.Connection:
        """Return a database in memory with rows by table, but for those that break a constraint.

        A row whose parent is left out is left out, too.
        """
        connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
        connection.text_factory = decode_text
        for statement in self._statements:
            connection.execute(statement)
        for name, records in rows.items():
            _insert(connection, self.schema[name], records)
        deletions = []
        for table, links in self.source.links.items():
            for link in links:
                deletions.append(_delete_orphans(table, link))
        removed = 1
        while removed:
            removed = sum(connection.execute(deletion).rowcount for deletion in deletions)
        return connection


def in_memory(path: Path) -> sqlite3.Connection:
    """Read a database file into memory.

    Raises:
        DataError: It is missing, being written to, or no database.
    """
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
    connection.text_factory = decode_text
    try:
        if not path.is_file():
            raise OSError("no such file")
        with closing(sqlite3.connect(_read_only_uri(path), uri=True, timeout=2)) as file:
            file.execute("SELECT COUNT(*) FROM sqlite_master")
            file.backup(connection)
        connection.execute("SELECT COUNT(*) FROM sqlite_master")
    except (sqlite3.Error, OSError) as error:
        connection.close()
        hint = ""
        if "locked" in str(error):
            hint = "; another program is writing to it: try again when it has ended"
        reason = one_line(str(error), limit=200)
        raise DataError(f"cannot read the database {path}: {reason}{hint}") from None
    return connection


def _create(connection: sqlite3.Connection, *statements: str) -> str:
    """Run statements in turn; return why one of them fails, or ""."""
    try:
        for statement in statements:
            connection.execute(statement)
    except (sqlite3.Error, sqlite3.Warning, UnicodeError) as error:
        return one_line(str(error), limit=100)
    return ""


def _read_only_uri(path: Path) -> str:
    """Return how to open a file so that nothing is written beside it."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with path.open("rb") as file:
        header = file.read(20)
    log = path.with_name(f"{path.name}-wal")
    uses_log = header[18:20] == _WAL_MARK
    if uses_log and not (log.exists() and log.stat().st_size):
        # SQLite would create the log and its index, and leave them there.
        uri += "&immutable=1"
    return uri


def _stored_columns(table: Table) -> list[str]:
    return [column.name for column in table.columns if not column.generated]


def _insert(connection: sqlite3.Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert the rows that no constraint refuses."""
    columns = _stored_columns(table)
    head = f"INSERT OR IGNORE INTO {quoted(table.name)} ({quoted_all(columns)}) VALUES "
    plain = f"{head}({', '.join('?' * len(columns))})"
    try:
        with _undone_on_error(connection):
            connection.executemany(plain, rows)
    except (sqlite3.Error, UnicodeError):
        # Texts that are not UTF-8, or a rule that OR IGNORE does not cover: types of STRICT
        # tables, a condition or a computed column that fails.
        for row in rows:
            _insert_any_text(connection, head, row)


def _insert_any_text(connection: sqlite3.Connection, head: str, row: Row) -> None:
    """Insert a row whose texts may have any bytes, unless it breaks a rule."""
    marks: list[str] = []
    values: list[Value] = []
    for value in row:
        if isinstance(value, str) and not _is_utf8(value):
            marks.append("CAST(? AS TEXT)")
            values.append(value.encode("utf-8", "surrogateescape"))
        else:
            marks.append("?")
            values.append(value)
    with suppress(sqlite3.Error):
        connection.execute(f"{head}({', '.join(marks)})", values)


@contextmanager
def _undone_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _is_utf8(text: str) -> bool:
    """Return whether a text has no byte that :func:`decode_text` could not decode."""
    return text.isascii() or not any("\udc80" <= character <= "\udcff" for character in text)


def _delete_orphans(table: str, link: ForeignKey) -> str:
    """Return the statement that deletes the rows whose parent is not there."""
    filled, equal = [], []
    for child, target in zip(link.columns, link.parent_columns, strict=True):
        filled.append(f"{quoted(child)} IS NOT NULL")
        equal.append(f"p.{quoted(target)} = {quoted(table)}.{quoted(child)}")
    return (
        f"DELETE FROM {quoted(table)} WHERE {' AND '.join(filled)} AND NOT EXISTS "
        f"(SELECT 1 FROM {quoted(link.parent)} AS p WHERE {' AND '.join(equal)})"
    )
