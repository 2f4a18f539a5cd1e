"""Sub-databases that check test suites in ``python -m bench.spider``."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.databases import written

from bench.spider.subdatabases import make_sub_databases

LIBRARY = """
CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE book (id INTEGER PRIMARY KEY, author INTEGER REFERENCES author, title TEXT);
CREATE TABLE loan (book INTEGER REFERENCES book (id), code TEXT REFERENCES shelf (code));
CREATE TABLE shelf (code TEXT, "from" INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
  INSERT INTO author SELECT i, 'a' || i FROM n;
INSERT INTO book SELECT id, id, 'b' FROM author;
UPDATE book SET author = 99 WHERE id = 7;
UPDATE book SET author = NULL WHERE id = 8;
INSERT INTO loan SELECT id, 'x' FROM book;
INSERT INTO shelf VALUES ('y', 1);
"""


def test_sub_databases_have_fewer_rows_and_whole_foreign_keys(tmp_path: Path) -> None:
    """No book loses its author; a key that no row keeps is no promise, and NULL refers to none."""
    original = written(tmp_path / "library.sqlite", LIBRARY)
    sub_databases = make_sub_databases(original, tmp_path / "sub", 8)
    counts = set()
    for name in sub_databases.names:
        with closing(sqlite3.connect(sub_databases.path(name))) as connection:
            orphans = connection.execute(
                "SELECT count(*) FROM book WHERE author NOT IN (SELECT id FROM author)"
            )
            assert orphans.fetchone() == (0,), name
            lost_loans = connection.execute(
                "SELECT count(*) FROM loan WHERE book NOT IN (SELECT id FROM book)"
            )
            assert lost_loans.fetchone() == (0,), name
            (loans,) = connection.execute("SELECT count(*) FROM loan").fetchone()
            counts.add(loans)
    assert max(counts) < 40
    assert max(counts) > 0
    again = make_sub_databases(original, tmp_path / "again", 8)
    for name in again.names:
        assert again.path(name).read_bytes() == sub_databases.path(name).read_bytes(), name


PLAN = """
CREATE TABLE lesson (day TEXT, hour INTEGER, topic TEXT, PRIMARY KEY (day, hour));
CREATE TABLE note (day TEXT, hour INTEGER, text TEXT, FOREIGN KEY (day, hour) REFERENCES lesson);
CREATE TABLE task (hour INTEGER, day TEXT,
  FOREIGN KEY (hour, day) REFERENCES lesson (hour, day));
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 39)
  INSERT INTO lesson SELECT 'd' || (i / 8), i % 8, 't' FROM n;
INSERT INTO note SELECT day, hour, 'x' FROM lesson;
INSERT INTO task SELECT hour, day FROM lesson;
"""


def test_a_foreign_key_of_two_columns_stays_whole(tmp_path: Path) -> None:
    """Whether it names its parent's columns or means the primary key, and in any order."""
    original = written(tmp_path / "plan.sqlite", PLAN)
    sub_databases = make_sub_databases(original, tmp_path / "sub", 8)
    counts = set()
    for name in sub_databases.names:
        with closing(sqlite3.connect(sub_databases.path(name))) as connection:
            for table in ("note", "task"):
                rows = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
                joined = connection.execute(
                    f"SELECT count(*) FROM {table} JOIN lesson USING (day, hour)"
                )
                assert rows == joined.fetchone(), (name, table)
                counts.add(rows)
    assert max(counts) > (5,), "some rows stay"
