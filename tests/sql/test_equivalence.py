# ruff: noqa: E501 (a pair reads best on one line)
"""Mutants that are proven equivalent are never distinguished; others that look so are."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest
from equivalence_cases import ONLY_LOOK_SAME, SAME, SCHEMA
from magnifico_golds import ALL, ONE_IN, a_part
from random_rows import RandomDatabases, declarations, may_result

from lm_eval_ext.sql.equivalence import equivalent
from lm_eval_ext.sql.mutants import UnparsedQuery, mutants
from lm_eval_ext.sql.schema import Schema, read_schema, schema_of

pytestmark = pytest.mark.slow

RULES = {
    "the query gives at most one row",
    "the rows differ from each other anyway",
    "all rows tie in that sort term",
}

MORE_SAME = [
    ("SELECT title FROM book GROUP BY isbn ORDER BY COUNT(*), title",
     "SELECT title FROM book GROUP BY isbn ORDER BY COUNT(DISTINCT isbn) DESC, title"),
    ("SELECT day FROM loan WHERE book = 'a' AND day = 2",
     "SELECT DISTINCT day FROM loan WHERE book = 'a' AND day = 2 LIMIT 3"),
]  # fmt: skip

MORE_ONLY_LOOK_SAME = [
    # a subquery that depends on the outer row, or may have several values
    ("SELECT isbn FROM book WHERE pages = (SELECT MAX(b.pages) FROM book AS b WHERE b.isbn = book.isbn) ORDER BY pages",
     "SELECT isbn FROM book WHERE pages = (SELECT MAX(b.pages) FROM book AS b WHERE b.isbn = book.isbn) ORDER BY pages DESC"),
    ("SELECT id FROM shelf WHERE width IN (SELECT pages FROM book) ORDER BY width",
     "SELECT id FROM shelf WHERE width IN (SELECT pages FROM book) ORDER BY width DESC"),
    # a number equals '3' and '03'
    ("SELECT room FROM shelf WHERE room IN (SELECT pages FROM book LIMIT 1) ORDER BY room",
     "SELECT room FROM shelf WHERE room IN (SELECT pages FROM book LIMIT 1) ORDER BY room DESC"),
    ("SELECT isbn FROM book WHERE pages = 4 OR pages > 2", "SELECT isbn FROM book WHERE pages = 4"),
    ("SELECT isbn FROM book WHERE pages = 4 AND pages > 4", "SELECT isbn FROM book WHERE pages = 4"),
    ("SELECT isbn FROM book WHERE pages = 4 AND shelf_id > 2", "SELECT isbn FROM book WHERE pages = 4"),
    ("SELECT title FROM book GROUP BY title ORDER BY COUNT(*)",
     "SELECT title FROM book GROUP BY title ORDER BY COUNT(*) DESC"),
    ("SELECT title FROM book GROUP BY isbn ORDER BY COUNT(tag)",
     "SELECT title FROM book GROUP BY isbn ORDER BY COUNT(tag) DESC"),
    ("SELECT COUNT(*) FROM book", "SELECT COUNT(*) FROM book LIMIT 0"),
    ("SELECT COUNT(*) FROM book", "SELECT COUNT(*) FROM book LIMIT 1 OFFSET 1"),
    ("SELECT day FROM loan WHERE book = 'a'", "SELECT DISTINCT day FROM loan WHERE book < 'b'"),
    ("SELECT MAX(pages, 2) FROM book", "SELECT DISTINCT MAX(pages, 2) FROM book"),
]  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "library.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
    return path


@pytest.fixture(scope="module")
def schema(library: Path) -> Schema:
    return read_schema(library)


def databases(one: str, other: str, library: Path, count: int) -> Iterator[sqlite3.Connection]:
    """Random databases with all tables, around the literals of two queries."""
    made = RandomDatabases(
        f"{one} UNION {other}" if " LIMIT " not in one + other else one,
        read_schema(library), declarations(library), seed=1,
    )  # fmt: skip
    made.tables = sorted(declarations(library))
    return islice(made, count)


@pytest.mark.parametrize(("gold", "other"), [*SAME, *MORE_SAME])
def test_what_is_proven_has_the_golds_result_everywhere(
    library: Path, schema: Schema, gold: str, other: str
) -> None:
    """Up to what the gold leaves open: the order without ORDER BY, and which of tied rows."""
    for one, two in ((gold, other), (other, gold)):
        reason = equivalent(one, two, schema)
        assert reason is not None and set(reason.split("; ")) <= RULES
        for database in databases(one, two, library, 100 if ALL else 30):
            assert may_result(database, schema, one, two, tries=300) is True


@pytest.mark.parametrize(("gold", "other"), [*ONLY_LOOK_SAME, *MORE_ONLY_LOOK_SAME])
def test_what_only_looks_the_same_is_not_proven(schema: Schema, gold: str, other: str) -> None:
    assert equivalent(gold, other, schema) is None
    assert equivalent(other, gold, schema) is None


@pytest.mark.parametrize(("gold", "other"), MORE_ONLY_LOOK_SAME)
def test_some_database_distinguishes_what_only_looks_the_same(
    library: Path, schema: Schema, gold: str, other: str
) -> None:
    assert any(
        may_result(database, schema, one, two, tries=60) is False
        for database in databases(gold, other, library, 1_000)
        for one, two in ((gold, other), (other, gold))
    )


def test_each_rule_is_used(schema: Schema) -> None:
    reasons = {equivalent(gold, other, schema) for gold, other in [*SAME, *MORE_SAME]}
    assert {part for reason in reasons for part in str(reason).split("; ")} == RULES


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE t (k TEXT COLLATE NOCASE UNIQUE NOT NULL)",
        "CREATE TABLE t (k TEXT UNIQUE)",
        "CREATE TABLE s (k TEXT); CREATE VIEW t AS SELECT k FROM s",
        "CREATE TABLE t (k TEXT)",
    ],
)
def test_without_a_key_rows_may_be_equal(script: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script)
        own = schema_of(connection)
    assert equivalent("SELECT k FROM t", "SELECT DISTINCT k FROM t", own) is None


@pytest.mark.parametrize("sql", ["not a query", "SELECT nothing FROM nowhere", ""])
def test_nothing_is_proven_of_what_cannot_be_read(schema: Schema, sql: str) -> None:
    assert equivalent(sql, "SELECT 1 FROM book", schema) is None


def test_proven_mutants_of_real_golds_have_the_golds_result(shared_data: Path) -> None:
    """On random databases, around one in :data:`ONE_IN` golds."""
    proven = 0
    schemas: dict[Path, Schema] = {}
    for path, gold in a_part(shared_data):
        schema = schemas.setdefault(path, read_schema(path))
        try:
            found = [m for m in mutants(gold, schema) if equivalent(gold, m.sql, schema)]
        except UnparsedQuery:
            continue
        proven += len(found)
        if found:
            made = RandomDatabases(gold, schema, declarations(path), seed=5)
            for database in islice(made, 5):
                for mutant in found:
                    same = may_result(database, schema, gold, mutant.sql, tries=300)
                    assert same is not False, (gold, mutant)
    assert proven > 400 // ONE_IN
