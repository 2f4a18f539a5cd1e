"""A copy of a database in memory, on which rows are tried out."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from lm_eval_ext.atomic import atomic_path
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.sql.distill.runner import Runner
from lm_eval_ext.sql.policy import register


class Workbench:
    """A database's copy in memory: no trigger fires, no foreign key is enforced by SQLite.

    Foreign keys are :mod:`.inserting`'s: many originals have some that SQLite takes for an
    error in the schema as soon as it has to enforce them.

    Attributes:
        connection: Without transactions of Python's own.
        runner: Runs queries on it.

    Args:
        original: Opened read-only and immutable; never touched.

    Raises:
        DataError: It is missing, or no database.
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
    def attempt(self) -> Iterator["Attempt"]:
        """Runs a block whose changes are undone at its end, unless it calls ``keep()``."""
        self.connection.execute("SAVEPOINT attempt")
        attempt = Attempt()
        try:
            yield attempt
        finally:
            if not attempt.kept:
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
        """Gives the memory back."""
        self.connection.close()


class Attempt:
    """Whether the changes of a block are to stay."""

    kept = False

    def keep(self) -> None:
        """Lets them stay."""
        self.kept = True


def quoted(name: str) -> str:
    """Returns an identifier as SQL text, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def _copy_into(original: Path, connection: sqlite3.Connection) -> None:
    if not original.is_file():
        raise OSError("no such file")
    uri = f"{original.absolute().as_uri()}?mode=ro&immutable=1"
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as source:
        source.execute("SELECT count(*) FROM sqlite_master")  # raises if it is no database
        source.backup(connection)
    connection.execute("SELECT count(*) FROM sqlite_master")
