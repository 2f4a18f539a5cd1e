"""A query read and written again means the same to SQLite."""

import sqlite3
from collections.abc import Iterator

import pytest
from support.databases import opened

from lm_eval_ext.errors import LmEvalExtError
from lm_eval_ext.sql import parsing
from lm_eval_ext.sql.parsing import UnparsedQuery, parse, to_sql
from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.schema import Schema, schema_of

SCRIPT = """
CREATE TABLE shelf (id INTEGER PRIMARY KEY, room TEXT, width REAL, "order" INT);
INSERT INTO shelf VALUES (1, 'attic', 7, 3), (2, 'room', 2.5, 1), (3, 'it''s', NULL, 2),
  (4, 'a"b', -7, NULL), (5, '%x%', 9007199254740993, 2);
CREATE TABLE book (isbn TEXT, title TEXT, pages INTEGER, shelf_id INTEGER, bought DATE);
INSERT INTO book VALUES ('1', 'Sea', 7, 1, '2020-02-01'), ('2', 'sea%', 2, 2, '2020-03-01'),
  ('3', NULL, -3, NULL, NULL), ('4', 'Hill', 7, 1, '2019-12-31');
"""


@pytest.fixture(scope="module")
def library() -> Iterator[sqlite3.Connection]:
    with opened(SCRIPT) as connection:
        register(connection)
        yield connection


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT id FROM shelf WHERE room = "attic"',
        'SELECT id FROM shelf WHERE "room" = "room"',
        "SELECT id FROM shelf WHERE room = 'it''s' OR room = 'a\"b' OR room = \"it's\"",
        'SELECT "nothing", "Id", \'id\' FROM shelf',
        'SELECT s.id FROM shelf AS s WHERE s."room" IN ("attic", "room")',
        'SELECT title FROM book WHERE shelf_id IN (SELECT id FROM shelf WHERE "title" = "Sea")',
        'SELECT title AS "label" FROM book WHERE "label" = "Sea"',
        'SELECT t.n FROM (SELECT room AS n FROM shelf) AS t WHERE "n" = "attic"',
        'SELECT * FROM (SELECT * FROM shelf) WHERE "room" = "attic"',
        "WITH c AS (SELECT room AS n FROM shelf) SELECT n FROM c WHERE \"n\" = 'attic'",
        'SELECT id FROM shelf WHERE "rowid" = 2',
        'SELECT id FROM shelf ORDER BY "width" DESC, "nowhere"',
        'SELECT "order" FROM shelf ORDER BY "order" LIMIT 2',
        "SELECT [order], `id` FROM shelf",
        "SELECT stdev(pages), STDEV(pages) / 2 FROM book",
        "SELECT 7 / 2, -7 / 2, 7 % 3, 7 / 2.0, pages / 2 FROM book",
        "SELECT title || ' ' || isbn FROM book",
        "SELECT id FROM shelf WHERE id != 2 AND id <> 3 AND NOT id == 1",
        "SELECT title FROM book WHERE title LIKE 'SEA\\%' ESCAPE '\\'",
        "SELECT title FROM book WHERE title NOT LIKE 's%' OR title GLOB 'H*'",
        "SELECT id FROM shelf WHERE NOT id IN (1, 2) AND width IS NOT NULL OR width ISNULL",
        "SELECT id FROM shelf WHERE width NOTNULL AND id NOT BETWEEN 2 AND 3",
        "SELECT id FROM shelf ORDER BY width LIMIT 1, 3",
        "SELECT id FROM shelf ORDER BY width DESC LIMIT 3 OFFSET 1;",
        "SELECT id FROM shelf ORDER BY width NULLS LAST",
        "SELECT id FROM shelf UNION SELECT pages FROM book EXCEPT SELECT 7 ORDER BY 1 DESC",
        "SELECT id FROM shelf UNION ALL SELECT pages FROM book INTERSECT SELECT 7",
        "SELECT count(*), count(title), count(DISTINCT title), total(pages) FROM book",
        "SELECT pages, count(*) AS n FROM book GROUP BY 1 HAVING n > 1 ORDER BY n",
        "SELECT min(pages, 3), max(1, pages), max(pages) FROM book",
        "SELECT strftime('%Y', bought), date(bought, '+1 day'), substr(title, 2, 1) FROM book",
        "SELECT ifnull(title, 'x'), coalesce(title, isbn), iif(pages > 2, 'a', 'b') FROM book",
        "SELECT CAST(width AS INTEGER), CAST(id AS TEXT), CAST(pages AS REAL) / 2 FROM shelf, book",
        "SELECT group_concat(title, '-'), instr('abc', 'c'), round(2.567, 1) FROM book",
        "SELECT CASE WHEN pages > 2 THEN 'long' ELSE 'short' END FROM book",
        "SELECT 9007199254740993, 0.1, 1e3, x'4142', -5, +5, ~1, 1 << 2, 5 & 3, 5 | 3",
        "SELECT s.room, b.title FROM shelf s LEFT JOIN book b ON s.id = b.shelf_id",
        "SELECT room FROM shelf JOIN book ON id = shelf_id AND pages > 1, (SELECT 1 AS k) AS z",
        "SELECT room FROM shelf WHERE EXISTS (SELECT 1 FROM book WHERE shelf_id = id)",
        "SELECT id FROM shelf WHERE (id, room) IN (SELECT shelf_id, 'attic' FROM book)",
        "SELECT room COLLATE NOCASE FROM shelf ORDER BY room COLLATE NOCASE",
        "SELECT pages, row_number() OVER (ORDER BY pages, isbn) FROM book",
        "SELECT /* a remark */ id -- another\nFROM shelf",
    ],
)
def test_written_again_it_gives_the_same(library: sqlite3.Connection, sql: str) -> None:
    schema = schema_of(library)
    written = to_sql(parse(sql, schema))
    expected = library.execute(sql).fetchall()
    assert library.execute(written).fetchall() == expected, written
    assert to_sql(parse(written, schema)) == written


@pytest.mark.parametrize(
    "text",
    ["", ";", "SELECT", "SELECT 1; SELECT 2", "DROP TABLE shelf", "hello there", "(" * 5000,
     "INSERT INTO shelf VALUES (1)", "SELECT 'open", "SELECT \x00 FROM", "VALUES (1)", "-- x"],
)  # fmt: skip
def test_a_text_that_is_no_query_raises_one_line(text: str) -> None:
    with pytest.raises(UnparsedQuery) as raised:
        parse(text, Schema(()))
    assert "\n" not in str(raised.value)
    assert "\x1b" not in str(raised.value)


def test_a_compiled_sqlglot_is_refused_in_one_line(
    library: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its classes take no subclasses, which shows as a TypeError from deep inside."""
    schema = schema_of(library)
    parsing._dialect.cache_clear()
    parsing._parsed.cache_clear()
    monkeypatch.setattr("sqlglot.parser.__file__", "/site-packages/sqlglot/parser.cpython-311.so")
    with pytest.raises(LmEvalExtError, match="pip uninstall sqlglotc") as caught:
        parse("SELECT 1", schema)
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    assert parse("SELECT 1", schema).sql() == "SELECT 1"
