"""Awkward schemas: whatever is declared, rows fit it or none are added."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from distill_cases import content, is_sound, violations, write

from lm_eval_ext.sql.distill.build import populate

pytestmark = pytest.mark.slow

SCHEMAS = {
    "no tables": ("", ["SELECT 1"]),
    "no keys, no rows": ("CREATE TABLE t (a, b);", ["SELECT a FROM t WHERE b > 3"]),
    "empty tables with references": (
        "CREATE TABLE p (id INTEGER PRIMARY KEY, n TEXT);"
        "CREATE TABLE c (p INTEGER REFERENCES p(id), x INTEGER, PRIMARY KEY (p, x));",
        ["SELECT p.n FROM p JOIN c ON p.id = c.p WHERE c.x > 4"],
    ),
    "without rowid": (
        "CREATE TABLE t (k TEXT PRIMARY KEY, v INT) WITHOUT ROWID; INSERT INTO t VALUES ('a', 1);",
        ["SELECT k FROM t WHERE v > 10"],
    ),
    "generated columns": (
        "CREATE TABLE t (a INT, b INT AS (a * 2) STORED, c INT AS (a + 1));"
        "INSERT INTO t (a) VALUES (1);",
        ["SELECT b FROM t WHERE a > 10", "SELECT c FROM t WHERE a < -7"],
    ),
    "references to itself": (
        "CREATE TABLE t (id INTEGER PRIMARY KEY, boss INTEGER NOT NULL REFERENCES t(id), pay INT);"
        "INSERT INTO t VALUES (1, 1, 5);",
        ["SELECT a.pay FROM t AS a JOIN t AS b ON a.boss = b.id WHERE a.pay > b.pay"],
    ),
    "references in a circle": (
        "CREATE TABLE a (id INTEGER PRIMARY KEY, b INTEGER REFERENCES b(id), v INT);"
        "CREATE TABLE b (id INTEGER PRIMARY KEY, a INTEGER NOT NULL REFERENCES a(id));"
        "INSERT INTO a VALUES (1, 1, 2); INSERT INTO b VALUES (1, 1);",
        ["SELECT a.v FROM a JOIN b ON a.id = b.a WHERE a.v > 20"],
    ),
    "a reference that SQLite rejects": (
        "CREATE TABLE p (n TEXT); INSERT INTO p VALUES ('x');"
        "CREATE TABLE c (n TEXT REFERENCES p(n), v INT); INSERT INTO c VALUES ('x', 1);",
        ["SELECT v FROM c WHERE n = 'y'"],
    ),
    "a reference to nothing": (
        "CREATE TABLE c (n TEXT REFERENCES gone(n), v INT); INSERT INTO c VALUES (NULL, 1);",
        ["SELECT v FROM c WHERE v > 3"],
    ),
    "autoincrement": (
        "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, v INT); "
        "INSERT INTO t (v) VALUES (1);",
        ["SELECT id FROM t WHERE v < 0"],
    ),
    "awkward names": (
        'CREATE TABLE "order" ("group by" INT, "a ""quoted"" name" TEXT, "select" INT);'
        "INSERT INTO \"order\" VALUES (1, 'x', 2);",
        ['SELECT "select" FROM "order" WHERE "group by" > 5 AND "a ""quoted"" name" = \'z\''],
    ),
    "a column named rowid": (
        "CREATE TABLE t (rowid TEXT, v INT); INSERT INTO t VALUES ('r', 1);",
        ["SELECT rowid FROM t WHERE v > 4"],
    ),
    "all three names of the rowid taken": (
        "CREATE TABLE t (rowid INT, oid INT, _rowid_ INT); INSERT INTO t VALUES (1, 1, 1);",
        ["SELECT oid FROM t WHERE rowid > 4"],
    ),
    "a view and a trigger": (
        "CREATE TABLE t (v INT); INSERT INTO t VALUES (1); CREATE TABLE log (x INT);"
        "CREATE VIEW big AS SELECT v FROM t WHERE v > 10;"
        "CREATE TRIGGER watch AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.v);"
        " DELETE FROM t; END;",
        ["SELECT v FROM t WHERE v > 5", "SELECT v FROM big WHERE v < 20"],
    ),
    "a full-text table": (
        "CREATE VIRTUAL TABLE notes USING fts5(body); INSERT INTO notes VALUES ('tea and ink');"
        "CREATE TABLE t (v INT); INSERT INTO t VALUES (1);",
        ["SELECT body FROM notes WHERE body = 'tea'", "SELECT v FROM t WHERE v > 9"],
    ),
    "a check that nothing new fits": (
        "CREATE TABLE t (v INT CHECK (v = 1)); INSERT INTO t VALUES (1);",
        ["SELECT v FROM t WHERE v > 5", "SELECT v FROM t WHERE v = 1"],
    ),
    "a unique index on an expression": (
        "CREATE TABLE t (n TEXT, v INT); CREATE UNIQUE INDEX i ON t (lower(n));"
        "CREATE UNIQUE INDEX j ON t (v) WHERE v > 100; INSERT INTO t VALUES ('a', 101);",
        ["SELECT n FROM t WHERE v >= 101 AND n = 'b'"],
    ),
    "texts that are no Unicode": (
        "CREATE TABLE t (n TEXT PRIMARY KEY, v INT);"
        "INSERT INTO t VALUES (CAST(x'ff61' AS TEXT), 1), (CAST(x'c3' AS TEXT), 2);",
        ["SELECT n FROM t WHERE v > 1", "SELECT n FROM t ORDER BY v DESC LIMIT 1"],
    ),
    "numbers at the ends": (
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v INT);"
        "INSERT INTO t VALUES (9223372036854775807, 9223372036854775807), (-5, 9e999);",
        ["SELECT id FROM t WHERE v > 9223372036854775806", "SELECT v FROM t WHERE id < 0"],
    ),
    "write-ahead logging": (
        "PRAGMA journal_mode = WAL; CREATE TABLE t (v INT); INSERT INTO t VALUES (1);",
        ["SELECT v FROM t WHERE v > 5"],
    ),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_rows_fit_the_schema(name: str, tmp_path: Path) -> None:
    script, golds = SCHEMAS[name]
    original = write(tmp_path / "o" / "x.sqlite", script)
    before, broken = content(original), violations(original)
    report = populate(original, golds, tmp_path / "copy.sqlite")
    after = content(tmp_path / "copy.sqlite")
    assert is_sound(tmp_path / "copy.sqlite")
    assert violations(tmp_path / "copy.sqlite") <= broken
    assert after["the schema"] == before["the schema"]
    for table, rows in before.items():
        assert set(map(repr, rows)) <= set(map(repr, after[table])) or table == "sqlite_sequence"
    assert sorted(gold.gold for gold in report.golds) == sorted(golds)
    assert sum(len(after[t]) - len(before[t]) for t in before if "sqlite" not in t) == sum(
        report.added.values()
    )


FILLED = {
    "no keys, no rows", "empty tables with references", "without rowid", "generated columns",
    "references to itself", "references in a circle", "a reference that SQLite rejects",
    "a reference to nothing", "autoincrement", "awkward names", "a column named rowid",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FILLED))
def test_golds_get_rows_and_are_told_apart(name: str, tmp_path: Path) -> None:
    script, golds = SCHEMAS[name]
    original = write(tmp_path / "o" / "x.sqlite", script)
    report = populate(original, golds, tmp_path / "copy.sqlite")
    for gold in report.golds:
        assert gold.error is None
        assert gold.empty is None
        assert gold.rows_after > 0
        assert gold.open_ties == ()


def test_triggers_are_there_and_did_not_fire(tmp_path: Path) -> None:
    script, golds = SCHEMAS["a view and a trigger"]
    original = write(tmp_path / "o" / "x.sqlite", script)
    report = populate(original, golds, tmp_path / "copy.sqlite")
    assert report.added["t"] > 0
    with closing(sqlite3.connect(tmp_path / "copy.sqlite")) as connection:
        assert connection.execute("SELECT * FROM log").fetchall() == []
        assert connection.execute("SELECT v FROM t WHERE v = 1").fetchall()
        connection.execute("INSERT INTO t VALUES (77)")
        assert connection.execute("SELECT * FROM log").fetchall() == [(77,)]
