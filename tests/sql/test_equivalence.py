"""What is called equivalent cannot be told apart; what only looks so, can."""

import sqlite3
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest
from equivalence_cases import ONLY_LOOK_SAME, SAME, SCHEMA
from magnifico_golds import distinct
from random_rows import RandomDatabases, declarations, same_result

from lm_eval_ext.sql.compare import ReferenceExpected
from lm_eval_ext.sql.engine import Engine
from lm_eval_ext.sql.equivalence import RULES, equivalent, simplified, unsatisfiable
from lm_eval_ext.sql.mutations import NearMiss, UnparsedQuery, near_misses
from lm_eval_ext.sql.policy import Limits
from lm_eval_ext.sql.schema import Schema, read_schema, schema_of
from lm_eval_ext.sql.values import Failure


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
    made = RandomDatabases(f"{one} UNION {other}" if " LIMIT " not in one + other else one,
                           read_schema(library), declarations(library), seed=1)  # fmt: skip
    made.tables = sorted(declarations(library))
    for number, database in enumerate(islice(made, count)):
        if same_result(database, one, other) is False:
            return number
    return None


@pytest.mark.parametrize(("gold", "other"), SAME)
def test_proven_pairs_are_never_told_apart(
    library: Path, schema: Schema, gold: str, other: str
) -> None:
    reason = equivalent(gold, NearMiss("", other, ""), schema)
    assert reason and "\n" not in reason
    assert equivalent(other, NearMiss("", gold, ""), schema) is not None
    assert differ(gold, other, library, 300) is None


@pytest.mark.parametrize(("gold", "other"), ONLY_LOOK_SAME)
def test_pairs_that_only_look_the_same_are_not_proven(
    library: Path, schema: Schema, gold: str, other: str
) -> None:
    assert equivalent(gold, NearMiss("", other, ""), schema) is None
    assert differ(gold, other, library, 3_000) is not None, "then it belongs to the others"


def test_every_rule_is_used_by_a_proven_pair(schema: Schema) -> None:
    used: set[str] = set()
    for pair in SAME:
        for sql in pair:
            found = simplified(sql, schema)
            assert found is not None
            used.update(found[1])
    assert used == set(RULES)


def test_distinct_over_a_key_is_not_proven_where_the_order_shows(schema: Schema) -> None:
    """SQLite reads a declared key's index for DISTINCT, unless it sees that it is redundant."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            "CREATE TABLE t (k TEXT PRIMARY KEY, n); INSERT INTO t VALUES ('b', 1), ('a', 2)"
        )
        gold, other = "SELECT k FROM t WHERE n > 0", "SELECT DISTINCT k FROM t WHERE n > 0"
        assert connection.execute(gold).fetchall() != connection.execute(other).fetchall()
        own = schema_of(connection)
        assert own["t"].columns[0].not_null
        assert equivalent(gold, NearMiss("", other, ""), own) is None
    same = "SELECT isbn FROM book WHERE pages > 0"
    assert equivalent(same, NearMiss("", same.replace(" ", " DISTINCT ", 1), ""), schema)


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
    assert equivalent(sql, NearMiss("", sql, ""), schema) is None
    assert unsatisfiable(sql, schema) is None


def test_real_pairs_called_equivalent_are_never_told_apart(real_data: Path) -> None:
    """On the original databases and on random ones, by the reference semantics."""
    engine = Engine(Limits(timeout_s=5.0))
    schemas: dict[Path, Schema] = {}
    creates: dict[Path, dict[str, str]] = {}
    proven = 0
    for path, gold in distinct(real_data):
        schema = schemas.setdefault(path, read_schema(path))
        creates.setdefault(path, declarations(path))
        try:
            found = [n for n in near_misses(gold, schema) if equivalent(gold, n, schema)]
        except UnparsedQuery:
            continue
        result = engine.run(str(path), gold)
        if not found or isinstance(result, Failure):
            continue
        proven += len(found)
        expected = ReferenceExpected(result.rows)
        for near_miss in found:
            other = engine.run(str(path), near_miss.sql)
            assert not isinstance(other, Failure) and expected.matches(other), (gold, near_miss)
        for database in islice(RandomDatabases(gold, schema, creates[path], seed=4), 10):
            for near_miss in found:
                assert same_result(database, gold, near_miss.sql) is not False, (gold, near_miss)
    engine.close()
    assert proven > 900
