"""Rewrites: the gold's result in other words, where a rule's condition holds, and only there."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from rewrites_cases import GIVEN, NOT_GIVEN, SCRIPT

from lm_eval_ext.sql.parsing import parse, to_sql
from lm_eval_ext.sql.policy import register
from lm_eval_ext.sql.rewrites import CONDITIONS, KINDS, NEEDS, Facts, Need, Rewrite, rewrites
from lm_eval_ext.sql.schema import Schema, schema_of

pytestmark = pytest.mark.slow

GOLDS = sorted({gold for _, gold, *_ in [*GIVEN, *NOT_GIVEN]})


@pytest.fixture(scope="module")
def library() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCRIPT)
        register(connection)
        yield connection


@pytest.fixture(scope="module")
def facts(library: sqlite3.Connection) -> Facts:
    return facts_of(library)


def facts_of(connection: sqlite3.Connection, schema: Schema | None = None) -> Facts:
    """Facts whose queries fail for a reason only: a rewrite that SQLite refuses raises."""

    def rows(sql: str) -> list[tuple[object, ...]]:
        try:
            return connection.execute(sql).fetchall()
        except sqlite3.OperationalError as error:
            if "no such" in str(error) or "syntax" in str(error) or "ambiguous" in str(error):
                raise AssertionError(f"{error}: {sql}") from error
            raise

    return Facts(schema or schema_of(connection), rows, sqlite3.Error)


def of_kind(kind: str, gold: str, facts: Facts) -> list[Rewrite]:
    return [r for r in rewrites(gold, facts.schema, facts) if r.kind == kind]


def test_every_rule_is_described_and_shown_both_ways() -> None:
    assert set(KINDS) == set(CONDITIONS) == {k for k, *_ in GIVEN} == {k for k, _ in NOT_GIVEN}
    assert len(KINDS) >= 25
    assert all(line and "\n" not in line for line in [*KINDS.values(), *CONDITIONS.values()])


@pytest.mark.parametrize(("kind", "gold", "expected"), GIVEN)
def test_given(kind: str, gold: str, expected: str, facts: Facts) -> None:
    assert expected in [rewrite.sql for rewrite in of_kind(kind, gold, facts)]


@pytest.mark.parametrize(("kind", "gold"), NOT_GIVEN)
def test_not_given_where_the_condition_fails(kind: str, gold: str, facts: Facts) -> None:
    facts.ask(gold)
    assert [rewrite.sql for rewrite in of_kind(kind, gold, facts)] == []


@pytest.mark.parametrize("gold", GOLDS)
def test_all_rewrites_have_the_golds_rows_in_its_order(
    library: sqlite3.Connection, facts: Facts, gold: str
) -> None:
    expected = library.execute(gold).fetchall()
    found = rewrites(gold, facts.schema, facts)
    assert found == rewrites(gold, facts.schema, facts_of(library))
    texts = [rewrite.sql for rewrite in found]
    assert len({*texts, gold, to_sql(parse(gold, facts.schema))}) > len(texts)
    for rewrite in found:
        assert library.execute(rewrite.sql).fetchall() == expected, rewrite
        assert to_sql(parse(rewrite.sql, facts.schema)).replace(" CROSS JOIN ", ", ") == rewrite.sql
        assert " -> " in rewrite.text and "\n" not in rewrite.text
        assert all(facts.holds(need) for need in rewrite.needs)


BROKEN = [
    (Need("no null", "book", "note"), "INSERT INTO t VALUES ('a'), (NULL)"),
    (Need("integers", "book", "pages"), "INSERT INTO t VALUES (1), (1.5)"),
    (Need("texts", "book", "tag"), "INSERT INTO t VALUES ('a'), (x'61')"),
    (Need("dates", "book", "bought"), "INSERT INTO t VALUES ('1987-02-28'), ('1987-02-30')"),
    (Need("dates", "book", "bought"), "INSERT INTO t VALUES ('1987-02-28'), ('1987-02-28x')"),
    (Need("dates", "book", "bought"), "INSERT INTO t VALUES ('1987-02-28'), (19870228)"),
    (Need("timestamps", "book", "read_at"),
     "INSERT INTO t VALUES ('1987-02-28 10:00:00'), ('1987-02-28 10:00:000')"),
    (Need("timestamps", "book", "read_at"),
     "INSERT INTO t VALUES ('1987-02-28 10:00:00'), ('1987-02-28 24:00:00')"),
    (Need("unique", "book", "isbn"), "INSERT INTO t VALUES (1), (1)"),
    (Need("spelled", "book", "tag", "new"), "INSERT INTO t VALUES ('new'), ('New')"),
    (Need("trimmed", "book", "tag"), "INSERT INTO t VALUES ('new'), ('new ')"),
    (Need("no tie", value="SELECT 1 FROM t LIMIT 1 OFFSET 1"), "INSERT INTO t VALUES (1), (2)"),
]  # fmt: skip


@pytest.mark.parametrize(("need", "rows"), BROKEN)
def test_a_need_is_broken_by_one_row(need: Need, rows: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (c)")
        own = Need(need.kind, "t" if need.table else "", "c" if need.table else "", need.value)
        connection.execute(rows.rpartition(", (")[0])
        assert facts_of(connection).holds(own)
        connection.execute("DELETE FROM t")
        connection.execute(rows)
        assert not facts_of(connection).holds(own)


def test_every_kind_of_need_is_shown() -> None:
    assert {need.kind for need, _ in BROKEN} == set(NEEDS)


@pytest.mark.parametrize("kind", ["integers", "texts", "dates", "timestamps"])
def test_a_column_without_values_promises_nothing(kind: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript("CREATE TABLE t (c); INSERT INTO t VALUES (NULL)")
        assert not facts_of(connection).holds(Need(kind, "t", "c"))


def test_a_gold_that_sqlite_refuses_has_none(library: sqlite3.Connection) -> None:
    schema = schema_of(library)
    quiet = Facts(schema, lambda sql: library.execute(sql).fetchall(), sqlite3.Error)
    assert rewrites("SELECT nothing FROM book WHERE pages > 3", schema, quiet) == ()


def test_a_comma_between_tables_stays_one(facts: Facts) -> None:
    gold = "SELECT COUNT(*) FROM book, shelf WHERE shelf_id = id AND pages > 90"
    found = rewrites(gold, facts.schema, facts)
    assert found and not any("CROSS" in rewrite.sql for rewrite in found)
