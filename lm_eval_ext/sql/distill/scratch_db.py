"""A copy of a database in memory on which rows are tried out, and queries on it within limits."""

import contextlib
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.compare import same_sets
from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.values import Row, quoted
from lm_eval_ext.text import one_line

STEPS = 8_000_000
"""Instructions of SQLite's virtual machine that one query may take, about 0.3 s. They are counted
instead of timed, so that a slow machine builds the same rows."""

MAX_ROWS = 100_000
"""Rows that a gold's result may have, as for a prediction."""

_TICK = 10_000
_CHUNK = 50
_UNLIMITED = float("inf")


class NoResultError(Exception):
    """A query gave no result; ``slow`` if it exceeded a limit."""

    def __init__(self, message: str, *, slow: bool = False) -> None:
        super().__init__(message)
        self.slow = slow


class Runner:
    """Runs queries on a connection, whose progress handler and text factory it replaces.

    Attributes:
        work: Instructions spent so far, in units of 10,000.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.work = 0
        self._left: float = _UNLIMITED
        connection.set_progress_handler(self._tick, _TICK)
        # As in lm_eval_ext.sql.worker; the reason: values.Value.
        connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")

    def rows(self, sql: str, *, steps: int = STEPS) -> list[Row]:
        """Returns a query's rows.

        Raises:
            NoResultError: It fails, or exceeds its steps or rows.
        """
        with self._run(sql, steps) as cursor:
            found: list[Row] = cursor.fetchmany(MAX_ROWS + 1)
        if len(found) > MAX_ROWS:
            raise NoResultError(f"over {MAX_ROWS:,} rows", slow=True)
        return found

    def has_rows(self, sql: str) -> bool:
        """Whether a query has a row; one that fails has none."""
        try:
            return bool(self.rows(sql))
        except NoResultError:
            return False

    def same(self, expected: list[Row], sql: str, *, steps: int = STEPS) -> bool:
        """Whether a query's result is the expected one under ``reference`` semantics.

        The same answer as :class:`lm_eval_ext.sql.compare.ReferenceExpected`, but given at the
        first row that differs: a near miss without a join condition may have millions of rows.

        Raises:
            NoResultError: The query fails, or exceeds its steps before it differs.
        """
        at = 0
        with self._run(sql, steps) as cursor:
            while rows := cursor.fetchmany(_CHUNK):
                part = expected[at : at + len(rows)]
                if rows != part and not same_sets(part, rows):
                    return False
                at += len(rows)
        return at == len(expected)

    @contextlib.contextmanager
    def _run(self, sql: str, steps: int) -> Iterator[sqlite3.Cursor]:
        self._left = steps // _TICK
        cursor = self.connection.cursor()
        try:
            cursor.execute(sql)
            if cursor.description is None:
                raise NoResultError("not a query: it has no result, not even an empty one")
            yield cursor
        except (
            sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError
        ) as error:  # fmt: skip
            message = one_line(str(error) or "out of memory", limit=200)
            raise NoResultError(message, slow=self._left < 0) from None
        finally:
            cursor.close()
            self._left = _UNLIMITED  # the connection is also used without limits

    def _tick(self) -> bool:
        self._left -= 1
        self.work += 1
        return self._left < 0


class ScratchDb:
    """A database's copy in memory, without triggers and enforcement of foreign keys.

    :mod:`.inserting` keeps foreign keys valid: many originals declare some that SQLite reports
    as errors in the schema when it has to enforce them.

    Raises:
        DataError: It is missing, or not a database.
    """

    def __init__(self, original: Path) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=4_000)
        try:
            _copy_into(original, self.connection)
        except (sqlite3.Error, OSError) as error:
            self.connection.close()
            raise DataError(f"cannot read the database {original}: {error}") from None
        self.connection.execute("PRAGMA foreign_keys=OFF")
        self.connection.execute("PRAGMA temp_store=MEMORY")
        register(self.connection)
        self.runner = Runner(self.connection)
        self._triggers = self.connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid"
        ).fetchall()
        for name, _ in self._triggers:
            self.connection.execute(f"DROP TRIGGER {quoted(name)}")

    @contextlib.contextmanager
    def transaction(self) -> Iterator["Transaction"]:
        """Runs a block whose changes are undone at its end unless it calls ``keep()``."""
        self.connection.execute("SAVEPOINT attempt")
        transaction = Transaction()
        try:
            yield transaction
        finally:
            if not transaction.kept:
                self.connection.execute("ROLLBACK TO attempt")
            self.connection.execute("RELEASE attempt")

    def save(self, target: Path) -> None:
        """Writes the database to a file that gets its name when it is whole.

        Raises:
            OptionError: It cannot be written there.
        """
        for _, sql in self._triggers:
            self.connection.execute(sql)
        try:
            with atomic_path(target) as part:
                part.touch()  # SQLite's own message would not name the reason
                with contextlib.closing(sqlite3.connect(part)) as file:
                    self.connection.backup(file)
        except (OSError, sqlite3.Error) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise OptionError(f"cannot write {target}: {reason}") from None
        for name, _ in self._triggers:
            self.connection.execute(f"DROP TRIGGER {quoted(name)}")

    def close(self) -> None:
        """Frees the memory."""
        self.connection.close()


class Transaction:
    """Whether the changes of a block stay."""

    kept = False

    def keep(self) -> None:
        """Makes them stay."""
        self.kept = True


def _copy_into(original: Path, connection: sqlite3.Connection) -> None:
    if not original.is_file():
        raise OSError("no such file")
    uri = f"{original.absolute().as_uri()}?mode=ro&immutable=1"
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as source:
        source.execute("SELECT count(*) FROM sqlite_master")  # raises if it is not a database
        source.backup(connection)
    connection.execute("SELECT count(*) FROM sqlite_master")
