"""SQLite databases that scripts make, and their schemas."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lm_eval_ext.sql.schema import Schema, schema_of


def written(path: Path, script: str) -> Path:
    """Run a script on a database's file, which may be new; return the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


@contextmanager
def opened(script: str) -> Iterator[sqlite3.Connection]:
    """Yield a connection to a database in memory that a script has made."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script)
        yield connection


def read_schema(path: Path) -> Schema:
    """Return the schema of a database's file, which is only read."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return schema_of(connection)
