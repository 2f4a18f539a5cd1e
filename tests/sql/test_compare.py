"""Equality of results: a table of cases for all semantics, and general properties."""

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.databases import opened

from lm_eval_ext.sql import SEMANTICS, Rows
from lm_eval_ext.sql.compare import Gold
from lm_eval_ext.sql.values import Failure, Row, Value


def matches(semantics: str, gold: Rows, predicted: Rows) -> bool:
    """Without a query that the rule could ask more of."""
    asked = Gold("SELECT 1 FROM t", gold, lambda sql: Failure("error", sql))
    return SEMANTICS[semantics].prepare(asked).matches(predicted)


def equal(semantics: str, *results: list[Row]) -> bool:
    gold, predicted = (Rows(("c",) * len(rows[0] if rows else "1"), rows) for rows in results)
    return matches(semantics, gold, predicted)


# What, gold and prediction as rows of VALUES or a query, who calls the prediction right.
BOTH, REFERENCE, STRICT, SETS, NOBODY = "rst", "rt", "st", "t", ""
TABLE = [
    ("same", "(1, 'x'), (2, 'y')", "(1, 'x'), (2, 'y')", BOTH),
    ("both empty", "SELECT 1 WHERE 0", "SELECT 1 WHERE 0", BOTH),
    ("gold empty", "SELECT 1 WHERE 0", "(1)", NOBODY),
    ("columns of nothing", "SELECT 1, 2 WHERE 0", "SELECT 1 WHERE 0", REFERENCE),
    ("rows swapped", "(1, 'x'), (2, 'y')", "(2, 'y'), (1, 'x')", STRICT),
    ("row twice", "(1, 'x'), (2, 'y')", "(1, 'x'), (1, 'x')", NOBODY),
    ("row once more", "(1)", "(1), (1)", NOBODY),
    ("noisy row once more", "(0.1 + 0.2), (NULL)", "(0.3), (0.3), (NULL)", NOBODY),
    ("columns swapped", "(1, 'x')", "('x', 1)", REFERENCE),
    ("value repeated", "(1, 1)", "(1)", REFERENCE),
    ("other value repeated", "(1, 1, 2)", "(1, 2, 2)", REFERENCE),
    ("column more", "(1)", "(1, 2)", NOBODY),
    ("integer and float", "(1)", "(1.0)", BOTH),
    ("integer and text", "(1)", "('1')", NOBODY),
    ("float and text", "(1.5)", "('1.5')", NOBODY),
    ("text and blob", "('x')", "(x'78')", NOBODY),
    ("blobs", "(x'78')", "(x'78')", BOTH),
    ("null and null", "(NULL)", "(NULL)", BOTH),
    ("null and zero", "(NULL)", "(0)", NOBODY),
    ("null and empty text", "(NULL)", "('')", NOBODY),
    ("null and its name", "(NULL)", "('NULL')", NOBODY),
    ("case of letters", "('x')", "('X')", NOBODY),
    ("space at the end", "('x')", "('x ')", NOBODY),
    ("last bit", "(0.1 + 0.2)", "(0.3)", STRICT),
    ("last bit near zero", "(0.1 + 0.2 - 0.3)", "(0)", STRICT),
    ("last bit, rows swapped", "(0.1 + 0.2), (7)", "(7), (0.3)", STRICT),
    ("rounded", "(10 / 3.0)", "(3.333333)", NOBODY),
    ("truncated", "(2.5)", "(2)", NOBODY),
    ("neighbouring integers", "(1000000000000)", "(1000000000001)", NOBODY),
    ("large integer and its float", "(9007199254740993)", "(9007199254740992.0)", STRICT),
    ("infinite", "(9e999)", "(9e999)", BOTH),
    ("infinite and huge", "(9e999)", "(1e308)", NOBODY),
    # Each of two is within 1e-9 of a partner, if neither takes the only partner of the other.
    ("chain of noise", "(1.0), (1.0000000008)", "(1.0000000004), (0.9999999992)", STRICT),
    ("broken chain", "(1.0), (1.0000000008)", "(0.9999999996), (0.9999999992)", NOBODY),
    ("other sign", "(0.5)", "(-0.5)", NOBODY),
    ("lone surrogates", "(CAST(x'ff' AS TEXT))", "(CAST(x'fe' AS TEXT))", NOBODY),
    ("values traded between rows", "(1, 'x'), (2, 'y')", "(1, 'y'), (2, 'x')", NOBODY),
    ("rows and columns swapped", "(1, 'x'), (2, 'y')", "('y', 2), ('x', 1)", SETS),
    ("columns swapped, last bit", "(0.1 + 0.2, 'x')", "('x', 0.3)", SETS),
    ("value repeated, rows swapped", "(1, 1), (2, 3)", "(3, 2), (1, 1)", SETS),
    ("value dropped, last bit", "(0.1 + 0.2, 0.3)", "(0.3)", SETS),
    ("values traded, columns swapped", "(1, 'x'), (2, 'y')", "('y', 1), ('x', 2)", NOBODY),
    ("row twice, columns swapped", "(1, 'x'), (2, 'y')", "('x', 1), ('x', 1)", NOBODY),
    ("column more, rows swapped", "(1), (2)", "(2, 0), (1, 0)", NOBODY),
    ("rounded, columns swapped", "(10 / 3.0, 'x')", "('x', 3.333333)", NOBODY),
]


@pytest.mark.parametrize(("_", "gold", "predicted", "right"), TABLE)
def test_table(database: sqlite3.Connection, _: str, gold: str, predicted: str, right: str) -> None:
    one, other = (
        run_on(database, sql if "SELECT" in sql else f"VALUES {sql}") for sql in (gold, predicted)
    )
    for rows, others in ((one, other), (other, one)):
        said = {name: matches(name, rows, others) for name in SEMANTICS}
        assert said == {"reference": "r" in right, "strict": "s" in right, "sets": "t" in right}


# --- what the gold's ORDER BY leaves open, on a real database -----------------------------


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    script = (
        "CREATE TABLE p (name TEXT COLLATE NOCASE, age INTEGER, city TEXT);"
        "INSERT INTO p VALUES"
        "('Ada', 36, 'Rome'), ('Bob', 36, 'Bonn'), ('Cy', 41, 'Rome'), ('Dee', NULL, 'Oslo'),"
        "('Eve', 25, 'Bonn'), ('ada', 25, 'rome')"
    )
    with opened(script) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        yield connection


def run_on(database: sqlite3.Connection, sql: str) -> Rows:
    cursor = database.execute(sql)
    return Rows(tuple(column[0] for column in cursor.description), cursor.fetchall())


def judge(
    database: sqlite3.Connection, sql: str, predicted: list[Any], semantics: str = "strict"
) -> bool:
    def run(query: str) -> Rows | Failure:
        try:
            return run_on(database, query)
        except sqlite3.Error as error:
            return Failure("error", str(error))

    result = run_on(database, sql)
    rows = [tuple(row) if isinstance(row, list) else (row,) for row in predicted]
    expected = SEMANTICS[semantics].prepare(Gold(sql, result, run))
    assert expected.matches(result)
    return expected.matches(Rows(result.columns, rows))


ORDERED = yaml.safe_load(
    (Path(__file__).parents[1] / "fixtures" / "ordered_results.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", ORDERED, ids=lambda case: case["gold"])
def test_order(database: sqlite3.Connection, case: dict[str, Any]) -> None:
    sql, right, wrong = case.values()
    if "DISTINCT FROM" in sql and sqlite3.sqlite_version_info < (3, 39):
        pytest.skip("this SQLite is too old for IS DISTINCT FROM")
    assert [judge(database, sql, rows) for rows in right] == [True] * len(right)
    assert [judge(database, sql, rows) for rows in wrong] == [False] * len(wrong)
    for rows in right:
        swapped = [row[::-1] if isinstance(row, list) else row for row in rows]
        assert judge(database, sql, swapped, "sets")
    for rows in wrong:
        if not any(isinstance(row, list) for row in rows):
            assert not judge(database, sql, rows, "sets")


# --- laws ----------------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-3, 3),
    st.floats(allow_nan=False),
    st.sampled_from([0.1, 0.2, 0.1 + 0.2, 0.3, 1.0, 1e-13]),
)
VALUES = st.one_of(
    st.none(), NUMBERS, st.sampled_from(["", "1", "x", "\udcff"]), st.binary(max_size=2)
)
TABLES = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.tuples(*[VALUES] * width), max_size=8).map(list)
)
PAIRS = st.integers(1, 2).flatmap(
    lambda width: st.tuples(*[st.lists(st.tuples(*[VALUES] * width), max_size=4)] * 2)
)


@given(TABLES, st.randoms(use_true_random=False))
def test_a_result_equals_itself_in_any_order_and_with_noise(
    rows: list[Row], rng: random.Random
) -> None:
    def noisy(value: Value) -> Value:
        return value * (1 + rng.choice([-1, 0, 1]) * 2e-16) if isinstance(value, float) else value

    assert equal("reference", rows, rows)
    moved = [tuple(map(noisy, row)) for row in rng.sample(rows, len(rows))]
    assert equal("strict", rows, moved)
    assert equal("strict", moved, rows)


@given(PAIRS)
def test_strict_without_floats_is_the_multiset(pair: tuple[list[Row], list[Row]]) -> None:
    first, second = ([tuple(str(v) for v in row) for row in rows] for rows in pair)
    assert equal("strict", list(first), list(second)) == (sorted(first) == sorted(second))
