"""No database distinguishes queries proven equivalent; some database distinguishes the others."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest
from magnifico_golds import ALL, ONE_IN, a_part
from proofs_cases import (
    NOT_EVEN_UNLESS_EMPTY,
    ONLY_LOOK_OPEN,
    ONLY_LOOK_SAME,
    SAME,
    SAME_BUT_FOR_WHAT_IS_OPEN,
    SAME_UNLESS_EMPTY,
    SCHEMA,
)
from random_rows import RandomDatabases, declarations, may_result, same_result

from lm_eval_ext.sql.compare import ReferenceExpected
from lm_eval_ext.sql.engines.sqlite import SQLiteEngine
from lm_eval_ext.sql.mutants import Mutant, UnparsedQuery, mutants
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.proofs import (
    OPEN_RULES,
    RULES,
    WHERE_EMPTY,
    equivalent,
    simplified,
    unsatisfiable,
)
from lm_eval_ext.sql.schema import Schema, read_schema, schema_of
from lm_eval_ext.sql.values import Failure

pytestmark = pytest.mark.slow

Pairs = list[tuple[Path, str, Schema, list[Mutant]]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "library.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
    return path


@pytest.fixture(scope="module")
def schema(library: Path) -> Schema:
    return read_schema(library)


def differ(one: str, other: str, library: Path, count: int) -> int | None:
    """The number of the first random database that tells two queries apart."""
    for number, database in enumerate(databases(one, other, library, count)):
        if same_result(database, one, other) is False:
            return number
    return None


def databases(one: str, other: str, library: Path, count: int) -> Iterator[sqlite3.Connection]:
    """Random databases with all tables, around the literals of two queries."""
    made = RandomDatabases(f"{one} UNION {other}" if " LIMIT " not in one + other else one,
                           read_schema(library), declarations(library), seed=1)  # fmt: skip
    made.tables = sorted(declarations(library))
    return islice(made, count)


@pytest.mark.parametrize(("gold", "other"), SAME)
def test_proven_pairs_are_never_told_apart(
    library: Path, schema: Schema, gold: str, other: str
) -> None:
    reason = equivalent(gold, Mutant("", other, ""), schema, first_grade_only=True)
    assert reason and "\n" not in reason
    assert equivalent(other, Mutant("", gold, ""), schema) is not None
    assert differ(gold, other, library, 300 if ALL else 100) is None


@pytest.mark.parametrize(("gold", "other"), ONLY_LOOK_SAME)
def test_pairs_that_only_look_the_same_are_not_proven(
    library: Path, schema: Schema, gold: str, other: str
) -> None:
    assert equivalent(gold, Mutant("", other, ""), schema) is None
    assert differ(gold, other, library, 3_000) is not None, "then it belongs to the others"


@pytest.mark.parametrize(("gold", "other"), SAME_BUT_FOR_WHAT_IS_OPEN)
def test_pairs_of_the_second_grade_may_have_each_others_results(
    library: Path, schema: Schema, gold: str, other: str
) -> None:
    for one, two in ((gold, other), (other, gold)):
        reason = equivalent(one, Mutant("", two, ""), schema)
        assert reason and any(RULES[name] in reason for name in OPEN_RULES)
        assert equivalent(one, Mutant("", two, ""), schema, first_grade_only=True) is None
    for database in databases(gold, other, library, 100):
        assert may_result(database, schema, gold, other, tries=300) is True
        assert may_result(database, schema, other, gold, tries=300) is True


@pytest.mark.parametrize(("gold", "other"), ONLY_LOOK_OPEN)
def test_pairs_that_only_look_the_same_but_for_what_is_open(
    library: Path, schema: Schema, gold: str, other: str
) -> None:
    assert equivalent(gold, Mutant("", other, ""), schema) is None
    assert equivalent(other, Mutant("", gold, ""), schema) is None
    made = databases(gold, other, library, 500)
    assert any(
        may_result(database, schema, one, two, tries=60) is False
        for database in made
        for one, two in ((gold, other), (other, gold))
    ), "then it belongs to the others"


@pytest.mark.parametrize(("gold", "other"), SAME_UNLESS_EMPTY)
def test_pairs_of_the_third_grade_differ_only_where_the_gold_is_empty(
    library: Path, schema: Schema, gold: str, other: str
) -> None:
    assert equivalent(gold, Mutant("", other, ""), schema) == WHERE_EMPTY
    assert equivalent(other, Mutant("", gold, ""), schema) is None
    seen: set[tuple[bool, bool | None]] = set()
    for database in databases(gold, other, library, 2_000 if ALL else 500):
        empty = not database.execute(gold).fetchall()
        seen.add((empty, same_result(database, gold, other)))
    assert seen == {(False, True), (True, True), (True, False)}


@pytest.mark.parametrize(("gold", "other"), NOT_EVEN_UNLESS_EMPTY)
def test_pairs_that_differ_where_the_gold_is_not_empty(
    library: Path, schema: Schema, gold: str, other: str
) -> None:
    assert equivalent(gold, Mutant("", other, ""), schema) is None
    assert any(
        database.execute(gold).fetchall() and same_result(database, gold, other) is False
        for database in databases(gold, other, library, 10_000)
    )


def test_every_rule_is_used_by_a_proven_pair(schema: Schema) -> None:
    used: dict[bool, set[str]] = {False: set(), True: set()}
    for open_too, pairs in ((False, SAME), (True, SAME_BUT_FOR_WHAT_IS_OPEN)):
        for sql in (sql for pair in pairs for sql in pair):
            found = simplified(sql, schema, open_too=open_too)
            assert found is not None
            used[open_too].update(found[1])
    assert used[False] == set(RULES) - OPEN_RULES
    assert used[True] >= OPEN_RULES


def test_distinct_over_a_key_is_of_the_second_grade_where_the_order_shows(schema: Schema) -> None:
    """SQLite reads a declared key's index for DISTINCT, unless it sees that it is redundant."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            "CREATE TABLE t (k TEXT PRIMARY KEY, n); INSERT INTO t VALUES ('b', 1), ('a', 2)"
        )
        gold, other = "SELECT k FROM t WHERE n > 0", "SELECT DISTINCT k FROM t WHERE n > 0"
        assert connection.execute(gold).fetchall() != connection.execute(other).fetchall()
        own = schema_of(connection)
        assert own["t"].columns[0].not_null
        near_miss = Mutant("", other, "")
        assert equivalent(gold, near_miss, own, first_grade_only=True) is None
        assert equivalent(gold, near_miss, own)
    same = "SELECT isbn FROM book WHERE pages > 0"
    near_miss = Mutant("", same.replace(" ", " DISTINCT ", 1), "")
    assert equivalent(same, near_miss, schema, first_grade_only=True)


TOLD_APART = [
    (
        "CREATE TABLE t (a TEXT, b TEXT); INSERT INTO t VALUES ('x%', 'a')",
        "SELECT a FROM t WHERE a || b LIKE '%x%' ESCAPE 'x'",
        "SELECT a FROM t WHERE b || a LIKE '%x%' ESCAPE 'x'",
    ),
    (
        "CREATE TABLE t (a TEXT, n INTEGER); INSERT INTO t VALUES ('x', 1);"
        "CREATE VIEW v AS SELECT a FROM t UNION SELECT n FROM t",
        "SELECT COUNT(*) FROM t EXCEPT SELECT a FROM v",
        "SELECT COUNT(*) FROM t EXCEPT SELECT a FROM v WHERE a = 'x'",
    ),
    (
        "CREATE TABLE t (a TEXT COLLATE NOCASE); INSERT INTO t VALUES ('b');"
        "CREATE VIEW v AS SELECT a FROM t",
        "SELECT a FROM v WHERE a = 'b' AND a <> 'B'",
        "SELECT a FROM v WHERE a = 'b'",
    ),
]
"""Escaped per cents; a view whose column has the type TEXT and holds integers; another one
whose column has the collation of the table's."""


@pytest.mark.parametrize(("script", "gold", "other"), TOLD_APART)
def test_pairs_that_these_rows_tell_apart_are_not_proven(
    script: str, gold: str, other: str
) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script)
        assert same_result(connection, gold, other) is False
        own = schema_of(connection)
    assert equivalent(gold, Mutant("", other, ""), own) is None
    assert equivalent(other, Mutant("", gold, ""), own) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT isbn FROM book WHERE pages = 3 AND pages = 4",
        "SELECT isbn FROM book WHERE pages > 3 AND tag = 'a' AND pages <= 3",
        "SELECT isbn FROM book WHERE title IN ('a', 'b') AND title = 'c'",
        "SELECT title FROM book WHERE pages BETWEEN 5 AND 3 GROUP BY title",
        "SELECT DISTINCT isbn FROM book WHERE NOT title IS NULL AND LENGTH(title) > 3"
        " AND LENGTH(title) < 2 ORDER BY isbn LIMIT 3",
    ],
)
def test_always_empty(library: Path, schema: Schema, sql: str) -> None:
    assert unsatisfiable(sql, schema) == RULES["contradiction"]
    made = RandomDatabases(sql, schema, declarations(library), seed=2)
    assert all(not database.execute(sql).fetchall() for database in islice(made, 200))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM book WHERE pages = 3 AND pages = 4",
        "SELECT isbn FROM book WHERE pages > 2 AND pages < 3",
        "SELECT isbn FROM book WHERE title = 3 AND title = '3'",
        "SELECT isbn FROM book WHERE pages = '3' AND pages = 3",
        "SELECT isbn FROM book WHERE label = 'A' AND label = 'a'",
        "SELECT isbn FROM book WHERE pages = 3 OR pages = 4",
        "SELECT isbn FROM book WHERE pages = 3 UNION SELECT isbn FROM book WHERE pages = 4",
        "SELECT a.isbn FROM book a, book b WHERE a.pages = 3 AND b.pages = 4",
    ],
)
def test_not_always_empty(library: Path, schema: Schema, sql: str) -> None:
    assert unsatisfiable(sql, schema) is None
    made = RandomDatabases(sql, schema, declarations(library), seed=3)
    assert any(database.execute(sql).fetchall() for database in islice(made, 2_000))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM shelf ORDER BY random() LIMIT 1",
        "SELECT row_number() OVER (ORDER BY id) FROM shelf",
        "WITH t AS (SELECT 1 AS id) SELECT id FROM t",
        "not a query",
    ],
)
def test_nothing_is_proven_of_what_no_rule_knows(schema: Schema, sql: str) -> None:
    assert simplified(sql, schema) is None
    assert equivalent(sql, Mutant("", sql, ""), schema) is None
    assert unsatisfiable(sql, schema) is None


@pytest.fixture(scope="module")
def real_pairs(shared_data: Path) -> Pairs:
    """A part of the real golds that can be read, with their near misses that are proven equal."""
    schemas: dict[Path, Schema] = {}
    pairs = []
    for path, gold in a_part(shared_data):
        schema = schemas.setdefault(path, read_schema(path))
        try:
            found = [n for n in mutants(gold, schema) if equivalent(gold, n, schema)]
        except UnparsedQuery:
            continue
        if found:
            pairs.append((path, gold, schema, found))
    return pairs


@pytest.mark.xdist_group("real_pairs")
@pytest.mark.slow
def test_real_pairs_called_equivalent_are_never_told_apart(real_pairs: Pairs) -> None:
    """Those of the first grade, on the original databases and on random ones."""
    engine = SQLiteEngine(Limits(timeout_s=5.0))
    proven = 0
    for path, gold, schema, pairs in real_pairs:
        found = [n for n in pairs if equivalent(gold, n, schema, first_grade_only=True)]
        result = engine.run(str(path), gold)
        if not found or isinstance(result, Failure):
            continue
        proven += len(found)
        expected = ReferenceExpected(result.rows)
        for near_miss in found:
            other = engine.run(str(path), near_miss.sql)
            assert not isinstance(other, Failure) and expected.matches(other), (gold, near_miss)
        for database in islice(RandomDatabases(gold, schema, declarations(path), seed=4), 10):
            for near_miss in found:
                assert same_result(database, gold, near_miss.sql) is not False, (gold, near_miss)
    engine.close()
    assert proven > 360 // ONE_IN


@pytest.mark.xdist_group("real_pairs")
@pytest.mark.slow
def test_real_pairs_of_the_other_grades_are_told_apart_by_what_is_open_only(
    real_pairs: Pairs,
) -> None:
    proven = {True: 0, False: 0}
    for path, gold, schema, pairs in real_pairs:
        found = [n for n in pairs if not equivalent(gold, n, schema, first_grade_only=True)]
        for near_miss in found:
            where_empty = equivalent(gold, near_miss, schema) == WHERE_EMPTY
            proven[where_empty] += 1
            made = RandomDatabases(gold, schema, declarations(path), seed=5)
            for database in islice(made, 10):
                if where_empty and not database.execute(gold).fetchall():
                    continue
                same = may_result(database, schema, gold, near_miss.sql, tries=300)
                assert same is not False, (gold, near_miss)
    assert proven[False] > 40 // ONE_IN
    assert proven[True] > 5 or ONE_IN > 1
