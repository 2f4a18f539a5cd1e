"""On random rows that keep the promises, every rewrite of a random query has the gold's result."""

import random
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from magnifico_golds import ALL
from rewrites_cases import GIVEN, SCRIPT

from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.rewrites import KINDS, Facts, Need, Rewrite, UnparsedQuery, rewrites
from lm_eval_ext.sql.schema import schema_of

pytestmark = pytest.mark.slow

COLUMN = st.sampled_from(["pages", "size", "shelf_id", "isbn", "tag", "title", "bought", "read_at"])
TEXT = st.sampled_from(["tag", "title", "author", "note"])
COMPARISON = st.sampled_from(["=", "<>", "<", ">", "<=", ">="])
NUMBER = st.sampled_from(["3", "90", "120", "'90'", "2.5"])
DAY = st.sampled_from(["'1987-07-01'", "'1987-08-31'", "'1987-09-01'", "'1987-07-01 00:00:00'"])
SUBQUERY = st.sampled_from([
    "SELECT book FROM loan", "SELECT book FROM loan WHERE price > 2", "SELECT id FROM shelf",
    "SELECT shelf_id FROM book WHERE pages > 100", "SELECT size FROM book",
    "SELECT id FROM shelf INTERSECT SELECT book FROM loan", "SELECT id FROM shelf EXCEPT SELECT "
    "book FROM loan", "SELECT shelf_id FROM book GROUP BY shelf_id ORDER BY COUNT(*) DESC LIMIT 1",
])  # fmt: skip
NUMERIC = st.sampled_from(["pages", "size", "shelf_id", "isbn", "pages * size", "LENGTH(title)"])
CONDITION = st.recursive(
    st.builds("{} {} {}".format, NUMERIC, COMPARISON, NUMBER)
    | st.builds("{} {} {}".format, st.sampled_from(["bought", "read_at"]), COMPARISON, DAY)
    | st.sampled_from([
        "bought >= '1987-07-01' AND bought < '1987-09-01'",
        "read_at >= '1987-07-01' AND read_at < '1987-08-01'",
        "bought BETWEEN '1987-07-01' AND '1987-08-31'",
    ])
    | st.builds("{} {} 'new'".format, TEXT, st.sampled_from(["=", "<>", "IN ('x', 'a') OR tag ="]))
    | st.builds("{} LIKE '{}'".format, TEXT, st.sampled_from(["%a%", "n%", "new", "%"]))
    | st.just("title || author LIKE '%n%'")
    | st.builds("{} {} ({})".format, NUMERIC, st.sampled_from(["IN", "NOT IN"]), SUBQUERY)
    | st.builds("{0} {1} (SELECT {2}({0}) FROM book)".format, st.sampled_from(["pages", "size"]),
        COMPARISON, st.sampled_from(["MAX", "MIN", "AVG"])),
    lambda inner: st.builds("({}) {} ({})".format, inner, st.sampled_from(["AND", "OR"]), inner),
    max_leaves=3,
)  # fmt: skip
SHAPE = st.sampled_from([
    "SELECT {c} FROM book WHERE {p}",
    "SELECT DISTINCT {c} FROM book WHERE {p} ORDER BY {c}",
    "SELECT title, {c} FROM book WHERE {p} ORDER BY {c} DESC LIMIT 1",
    "SELECT COUNT(*) FROM book WHERE {p}",
    "SELECT COUNT(DISTINCT {c}), AVG(pages) FROM book WHERE {p}",
    "SELECT COUNT(DISTINCT {c}) FROM book WHERE {p}",
    "SELECT MAX({c}), MIN({c}) FROM book WHERE {p}",
    "SELECT {c}, COUNT(*) FROM book WHERE {p} GROUP BY {c}",
    "SELECT {c} FROM book GROUP BY {c} HAVING COUNT(*) > 1 ORDER BY COUNT(*) DESC",
    "SELECT {c} FROM book WHERE {p} GROUP BY {c} ORDER BY COUNT(*) DESC LIMIT 1",
    "SELECT tag, AVG(pages) FROM book GROUP BY tag HAVING tag = 'new'",
    "SELECT room, {c} FROM book JOIN shelf ON shelf_id = id WHERE {p}",
    "SELECT book.title FROM book JOIN shelf ON book.shelf_id = shelf.id WHERE {p}",
    "SELECT COUNT(*) FROM shelf JOIN book ON book.shelf_id = shelf.id WHERE {p}",
    "SELECT t1.title FROM book AS t1 JOIN loan AS t2 ON t1.isbn = t2.book WHERE {p}",
    "SELECT isbn FROM book WHERE {p} EXCEPT SELECT book FROM loan",
    "SELECT isbn FROM book WHERE {p} UNION SELECT isbn FROM book WHERE pages > 100",
    "SELECT title FROM (SELECT title, {c} AS p FROM book ORDER BY {c} DESC LIMIT 2) AS t "
    "ORDER BY t.p LIMIT 1",
])  # fmt: skip

VALUES: dict[str, list[object]] = {
    "title": ["Sea", "new", "an", "Sun", "x"], "author": ["Ann", "new", "b", "N"],
    "pages": [3, 90, 91, 119, 120, 200], "shelf_id": [1, 2, 3, 4, None],
    "size": [3, 5, 3, None],
    "bought": ["1987-06-30", "1987-07-01", "1987-08-01", "1987-08-31", "1987-09-01"],
    "read_at": ["1987-06-30 23:59:59", "1987-07-01 00:00:00", "1987-08-31 12:00:00"],
    "returned": ["1988-01-01", "1987-12-31"], "tag": ["new", "old", "New", None, "a"],
    "note": ["x", "X", None, "new", " y "], "room": ["hall", "attic"],
    "book": [1, 2, 3, 4, 9], "reader": ["Eve", None, "new"], "due": ["1987-07-01", "soon"],
    "price": [1.5, 2.25, 0.1, 0.2, 3.0],
}  # fmt: skip


INDEXES = """
CREATE INDEX by_tag ON book (tag, pages);
CREATE INDEX by_shelf ON book (shelf_id);
CREATE INDEX by_book ON loan (book);
"""
"""With them SQLite often reads rows in another order."""


def grow(connection: sqlite3.Connection, needs: tuple[Need, ...], draw: random.Random) -> None:
    """Adds rows one by one; one that breaks a promise is taken back."""
    for _ in range(draw.randint(1, 8)):
        table = draw.choice(["book", "book", "loan", "shelf"])
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")][1:]
        row = [draw.choice(VALUES[name]) for name in names]
        marks = ", ".join("?" * len(row))
        connection.execute("SAVEPOINT one")
        connection.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", row)
        if any(connection.execute(need.broken).fetchall() for need in needs):
            connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")


def found_for(connection: sqlite3.Connection, gold: str) -> tuple[Rewrite, ...]:
    facts = Facts(schema_of(connection), lambda q: connection.execute(q).fetchall(), sqlite3.Error)
    try:
        connection.execute(gold)
        return rewrites(gold, facts.schema, facts)
    except (UnparsedQuery, sqlite3.Error):
        return ()


def check(gold: str, number: int, *, databases: int) -> set[str]:
    """Each rewrite on databases that keep its own promises only; returns the rules."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        register(connection)
        connection.executescript(SCRIPT + INDEXES * (number % 2))
        found = found_for(connection, gold)
        by_needs: dict[tuple[Need, ...], list[Rewrite]] = {}
        for rewrite in found:
            by_needs.setdefault(rewrite.needs, []).append(rewrite)
        draw = random.Random(number)
        for needs, group in by_needs.items():
            for _ in range(databases):
                connection.execute("SAVEPOINT all_rows")
                grow(connection, needs, draw)
                expected = connection.execute(gold).fetchall()
                for rewrite in group:
                    assert connection.execute(rewrite.sql).fetchall() == expected, (gold, rewrite)
                connection.execute("ROLLBACK TO all_rows")
                connection.execute("RELEASE all_rows")
    return {rewrite.kind for rewrite in found}


@settings(max_examples=1_000 if ALL else 100)
@given(SHAPE, COLUMN, CONDITION, st.integers(0, 1 << 20))
def test_random_queries(shape: str, column: str, condition: str, number: int) -> None:
    check(shape.format(c=column, p=condition), number, databases=3)


def test_every_rule_on_random_rows() -> None:
    kinds: set[str] = set()
    for number, gold in enumerate(sorted({gold for _, gold, _ in GIVEN})):
        kinds |= check(gold, 2 * number, databases=60 if ALL else 10)
    assert kinds == set(KINDS)
