"""A small database, limits that stop a query soon, and a check that no file has changed."""

import hashlib
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from lm_eval_ext.sql import Executor, Limits, Verdict
from lm_eval_ext.sql.schema import Schema, schema_of

MIB = 1 << 20

TIGHT = Limits(
    timeout_s=0.5,
    max_rows=2_000,
    max_result_bytes=2_000_000,
    max_value_bytes=1_000_000,
    max_memory_bytes=64 * MIB,
)
PATIENT = replace(TIGHT, timeout_s=120.0)
"""For queries that another limit stops, or none: no machine is so slow or busy that they are late.
"""

PEOPLE = """
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, age INTEGER, pay REAL);
INSERT INTO people VALUES
  (1, 'Ada', 36, 10.5), (2, 'Bob', 36, 20.25), (3, 'Cy', 41, 30.0), (4, 'Dee', NULL, 0.1),
  (5, 'Eve', 25, 0.2), (6, 'ada', 25, NULL);
CREATE TABLE pets (id INTEGER PRIMARY KEY, owner INTEGER REFERENCES people(id), kind TEXT);
INSERT INTO pets VALUES (1, 1, 'cat'), (2, 1, 'dog'), (3, 3, 'cat'), (4, 5, 'owl');
CREATE VIEW adults AS SELECT * FROM people WHERE age > 30;
CREATE TRIGGER watch AFTER INSERT ON pets BEGIN DELETE FROM people; END;
"""


def write_database(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
        connection.commit()


def state_of(folder: Path) -> dict[str, str]:
    """Every file's hash: nothing may be changed, and nothing added."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def read_schema(path: Path) -> Schema:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return schema_of(connection)


def score_one(
    executor: Executor, db_id: str, gold: str, predicted: str, *, semantics: str = "reference"
) -> Verdict:
    return next(executor.score([(db_id, gold, predicted)], semantics=semantics))


def pids(executor: Executor) -> list[int]:
    """Of its workers that run."""
    return [worker.pid for worker in executor._pool._workers if worker is not None]
