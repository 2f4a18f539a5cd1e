"""Small databases that the tests write themselves, and a check that they do not change."""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lm_eval_ext.sql import Executor, Limits

MIB = 1 << 20

TIGHT = Limits(
    timeout_s=1.0,
    max_rows=2_000,
    max_result_bytes=2_000_000,
    max_value_bytes=1_000_000,
    max_memory_bytes=64 * MIB,
)

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


@pytest.fixture(scope="session")
def yard_sql() -> str:
    """The script of the documentation's example, which all engines run."""
    script = Path(__file__).parents[2] / "examples" / "magnifico_own" / "yard.sql"
    return script.read_text(encoding="utf-8")


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


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of databases whose bytes must be the same after the module's tests."""
    folder = tmp_path_factory.mktemp("databases")
    write_database(folder / "people/people.sqlite", PEOPLE)
    write_database(
        folder / "Mixed_Case/Mixed_Case.sqlite", "CREATE TABLE t (a); INSERT INTO t VALUES (1);"
    )
    write_database(folder / "flat.db", "CREATE TABLE t (a); INSERT INTO t VALUES ('flat');")
    write_database(
        folder / "100% a?b#c.sqlite", "CREATE TABLE t (a); INSERT INTO t VALUES ('odd');"
    )
    write_database(
        folder / "bytes.sqlite",
        "CREATE TABLE t (id INTEGER, a);"
        "INSERT INTO t VALUES (1, CAST(x'61ff62' AS TEXT)), (2, CAST(x'61fe62' AS TEXT)),"
        "(3, x'61ff62'), (4, CAST(x'61eda08062' AS TEXT)), (5, 'a' || char(0) || 'b'), (6, 'a');",
    )
    write_database(
        folder / "search.sqlite",
        "CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES ('red fox');",
    )
    (folder / "broken.sqlite").write_bytes(b"this is no database" * 100)
    (folder / "empty.sqlite").touch()
    before = state_of(folder)
    yield folder
    assert state_of(folder) == before


@pytest.fixture(scope="module")
def executor(databases: Path) -> Iterator[Executor]:
    with Executor(databases, workers=1, limits=TIGHT) as executor:
        yield executor
