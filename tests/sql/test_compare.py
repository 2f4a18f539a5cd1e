"""Equality of results: a table of cases for all semantics, and general properties."""

import random
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.databases import opened

from lm_eval_ext.api import score_sql
from lm_eval_ext.cli.sql_options import SemanticsOption
from lm_eval_ext.sql import SEMANTICS, Rows
from lm_eval_ext.sql.compare import Gold
from lm_eval_ext.sql.values import Failure, Row, Value


def matches(semantics: str, gold: Rows, predicted: Rows) -> bool:
    """Judge by rows alone: the rule cannot run a further query."""
    gold_query = Gold("SELECT 1 FROM t", gold, lambda sql: Failure("error", sql))
    return SEMANTICS[semantics].prepare(gold_query).matches(predicted)


def as_result(rows: list[Row]) -> Rows:
    """Return rows with names of columns; of no rows there is one column."""
    width = len(rows[0]) if rows else 1
    return Rows(("c",) * width, rows)


def equal(semantics: str, gold: list[Row], predicted: list[Row]) -> bool:
    return matches(semantics, as_result(gold), as_result(predicted))


ALL = "reference strict sets spider bird"
ANY_ROWS = "strict sets spider bird"
ANY_COLUMNS = "reference sets spider"
ANY_ORDER = "sets spider"
VALUE_SETS = "reference sets"
TOLERANT = "strict sets"
EMPTY = "reference sets spider bird"
SETS = "sets"
BIRD = "bird"
NOBODY = ""
CASES = {
    "same": ("(1, 'x'), (2, 'y')", "(1, 'x'), (2, 'y')", ALL),
    "both empty": ("SELECT 1 WHERE 0", "SELECT 1 WHERE 0", ALL),
    "gold empty": ("SELECT 1 WHERE 0", "(1)", NOBODY),
    "columns of nothing": ("SELECT 1, 2 WHERE 0", "SELECT 1 WHERE 0", EMPTY),
    "rows swapped": ("(1, 'x'), (2, 'y')", "(2, 'y'), (1, 'x')", ANY_ROWS),
    "row twice": ("(1, 'x'), (2, 'y')", "(1, 'x'), (1, 'x')", NOBODY),
    "row once more": ("(1)", "(1), (1)", BIRD),
    "noisy row once more": ("(0.1 + 0.2), (NULL)", "(0.3), (0.3), (NULL)", NOBODY),
    "columns swapped": ("(1, 'x')", "('x', 1)", ANY_COLUMNS),
    "value repeated": ("(1, 1)", "(1)", VALUE_SETS),
    "other value repeated": ("(1, 1, 2)", "(1, 2, 2)", VALUE_SETS),
    "column more": ("(1)", "(1, 2)", NOBODY),
    "integer and float": ("(1)", "(1.0)", ALL),
    "integer and text": ("(1)", "('1')", NOBODY),
    "float and text": ("(1.5)", "('1.5')", NOBODY),
    "text and blob": ("('x')", "(x'78')", NOBODY),
    "blobs": ("(x'78')", "(x'78')", ALL),
    "null and null": ("(NULL)", "(NULL)", ALL),
    "null and zero": ("(NULL)", "(0)", NOBODY),
    "null and empty text": ("(NULL)", "('')", NOBODY),
    "null and its name": ("(NULL)", "('NULL')", NOBODY),
    "case of letters": ("('x')", "('X')", NOBODY),
    "space at the end": ("('x')", "('x ')", NOBODY),
    "last bit": ("(0.1 + 0.2)", "(0.3)", TOLERANT),
    "last bit near zero": ("(0.1 + 0.2 - 0.3)", "(0)", TOLERANT),
    "last bit, rows swapped": ("(0.1 + 0.2), (7)", "(7), (0.3)", TOLERANT),
    "rounded": ("(10 / 3.0)", "(3.333333)", NOBODY),
    "truncated": ("(2.5)", "(2)", NOBODY),
    "neighbouring integers": ("(1000000000000)", "(1000000000001)", NOBODY),
    "large integer and its float": ("(9007199254740993)", "(9007199254740992.0)", TOLERANT),
    "infinite": ("(9e999)", "(9e999)", ALL),
    "infinite and huge": ("(9e999)", "(1e308)", NOBODY),
    # Each of two is within 1e-9 of a partner, if neither takes the only partner of the other.
    "chain of noise": ("(1.0), (1.0000000008)", "(1.0000000004), (0.9999999992)", TOLERANT),
    "broken chain": ("(1.0), (1.0000000008)", "(0.9999999996), (0.9999999992)", NOBODY),
    "other sign": ("(0.5)", "(-0.5)", NOBODY),
    "lone surrogates": ("(CAST(x'ff' AS TEXT))", "(CAST(x'fe' AS TEXT))", NOBODY),
    "values traded between rows": ("(1, 'x'), (2, 'y')", "(1, 'y'), (2, 'x')", NOBODY),
    "rows and columns swapped": ("(1, 'x'), (2, 'y')", "('y', 2), ('x', 1)", ANY_ORDER),
    "columns swapped, last bit": ("(0.1 + 0.2, 'x')", "('x', 0.3)", SETS),
    "value repeated, rows swapped": ("(1, 1), (2, 3)", "(3, 2), (1, 1)", ANY_ORDER),
    "value dropped, last bit": ("(0.1 + 0.2, 0.3)", "(0.3)", SETS),
    "values traded, columns swapped": ("(1, 'x'), (2, 'y')", "('y', 1), ('x', 2)", NOBODY),
    "row twice, columns swapped": ("(1, 'x'), (2, 'y')", "('x', 1), ('x', 1)", NOBODY),
    "column more, rows swapped": ("(1), (2)", "(2, 0), (1, 0)", NOBODY),
    "rounded, columns swapped": ("(10 / 3.0, 'x')", "('x', 3.333333)", NOBODY),
}
"""Gold and prediction (rows of VALUES, or a query), and the semantics that call it right."""


@pytest.mark.parametrize(("gold", "predicted", "right"), CASES.values(), ids=CASES)
def test_exactly_the_stated_rules_call_two_results_equal(
    database: sqlite3.Connection, gold: str, predicted: str, right: str
) -> None:
    """Exactly these semantics call the two results equal, whichever of them is the gold's."""
    results = []
    for sql in (gold, predicted):
        query = sql if "SELECT" in sql else f"VALUES {sql}"
        results.append(run_on(database, query))
    gold_rows, predicted_rows = results
    accepting = set(right.split())
    if "spider" in accepting:
        accepting.add("spider-distinct")
    assert {name for name in SEMANTICS if matches(name, gold_rows, predicted_rows)} == accepting
    assert {name for name in SEMANTICS if matches(name, predicted_rows, gold_rows)} == accepting


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
    rows: list[Row] = []
    for row in predicted:
        rows.append(tuple(row) if isinstance(row, list) else (row,))
    expected = SEMANTICS[semantics].prepare(Gold(sql, result, run))
    assert expected.matches(result)
    return expected.matches(Rows(result.columns, rows))


ORDERED = yaml.safe_load(
    (Path(__file__).parents[1] / "fixtures" / "ordered_results.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", ORDERED, ids=lambda case: case["gold"])
def test_a_golds_order_decides_which_predictions_are_right(
    database: sqlite3.Connection, case: dict[str, Any]
) -> None:
    """The rule "sets" also accepts right rows with swapped columns, and no wrong rows."""
    sql, right, wrong = case["gold"], case["right"], case["wrong"]
    if "DISTINCT FROM" in sql and sqlite3.sqlite_version_info < (3, 39):
        pytest.skip("this SQLite is too old for IS DISTINCT FROM")
    for rows in right:
        assert judge(database, sql, rows), rows
        swapped = [row[::-1] if isinstance(row, list) else row for row in rows]
        assert judge(database, sql, swapped, "sets"), swapped
    for rows in wrong:
        assert not judge(database, sql, rows), rows
        if not any(isinstance(row, list) for row in rows):
            assert not judge(database, sql, rows, "sets"), rows


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
        if not isinstance(value, float):
            return value
        return value * (1 + rng.choice([-1, 0, 1]) * 2e-16)

    assert equal("reference", rows, rows)
    moved = [tuple(map(noisy, row)) for row in rng.sample(rows, len(rows))]
    assert equal("strict", rows, moved)
    assert equal("strict", moved, rows)


def as_texts(rows: list[Row]) -> list[tuple[str, ...]]:
    """Return rows with texts in the place of all values."""
    return [tuple(map(str, row)) for row in rows]


@given(PAIRS)
def test_strict_without_floats_is_the_multiset(pair: tuple[list[Row], list[Row]]) -> None:
    gold, predicted = map(as_texts, pair)
    assert equal("strict", [*gold], [*predicted]) == (sorted(gold) == sorted(predicted))


# --- Spider's and BIRD's rules -------------------------------------------------------------


def spider(
    gold_sql: str, gold: list[Row], predicted: list[Row], *, semantics: str = "spider"
) -> bool:
    query = Gold(gold_sql, as_result(gold), lambda sql: Failure("error", sql))
    return SEMANTICS[semantics].prepare(query).matches(as_result(predicted))


LETTERS: list[Row] = [(1, "a"), (2, "b"), (2, "c")]
SPIDER_ORDER = {
    "no order": ("SELECT n, x FROM t", [("b", 2), ("c", 2), ("a", 1)], True),
    "right order": ("SELECT n, x FROM t ORDER BY n", [("a", 1), ("b", 2), ("c", 2)], True),
    "tied rows swapped": ("SELECT n, x FROM t ORDER BY n", [(1, "a"), (2, "c"), (2, "b")], False),
    "order within a subquery": (
        "SELECT n, x FROM (SELECT * FROM t order by n LIMIT 3)",
        [(2, "b"), (1, "a"), (2, "c")],
        False,
    ),
    "two spaces": ("SELECT n, x FROM t ORDER  BY n", [(2, "b"), (1, "a"), (2, "c")], True),
}


@pytest.mark.parametrize(("sql", "predicted", "right"), SPIDER_ORDER.values(), ids=SPIDER_ORDER)
def test_the_order_counts_under_spider_where_the_gold_says_order_by(
    sql: str, predicted: list[Row], right: bool
) -> None:
    """The order of rows counts where the text of the gold has "order by", ties included."""
    assert spider(sql, LETTERS, predicted) is right


REWRITES = {
    "distinct": ("SELECT DISTINCT x", "SELECT  x", "SELECT DISTINCT x"),
    "count": ("SELECT count(distinct x)", "SELECT count( x)", "SELECT count(distinct x)"),
    "in a text": ("SELECT 'distinct'", "SELECT 'distinct'", "SELECT 'distinct'"),
    "in a name": ('SELECT "a distinct"', 'SELECT "a distinct"', 'SELECT "a distinct"'),
    "part of a name": ("SELECT distinct_id", "SELECT distinct_id", "SELECT distinct_id"),
    "in a comment": ("SELECT 1 -- distinct", "SELECT 1 -- distinct", "SELECT 1 -- distinct"),
    "open text": ("SELECT DISTINCT 'x", "SELECT  'x", "SELECT DISTINCT 'x"),
    "split operator": ("SELECT x > = 1", "SELECT x >= 1", "SELECT x >= 1"),
    "current year": ("SELECT YEAR (CURDATE())", "SELECT 2020", "SELECT 2020"),
}


@pytest.mark.parametrize(("sql", "dropped", "kept"), REWRITES.values(), ids=REWRITES)
def test_text_that_spider_runs(sql: str, dropped: str, kept: str) -> None:
    """DISTINCT is dropped or kept; what the official evaluator repairs is repaired."""
    assert SEMANTICS["spider"].rewrite(sql) == dropped
    assert SEMANTICS["spider-distinct"].rewrite(sql) == kept
    assert SEMANTICS["strict"].rewrite(sql) == sql
    assert SEMANTICS["bird"].rewrite(sql) == sql


SMALL_TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[st.integers(0, 2)] * width), min_size=1, max_size=5)
)


def permuted(rows: list[Row], columns: Sequence[int]) -> list[Row]:
    """Return rows with their columns in another order."""
    return [tuple(row[column] for column in columns) for row in rows]


@given(SMALL_TABLES, st.data(), st.booleans())
def test_spider_finds_any_permutation(
    gold: list[Row],
    data: st.DataObject,
    ordered: bool,
) -> None:
    """The search agrees with trying all permutations of the columns."""
    width = len(gold[0])
    order = data.draw(st.permutations(range(width)))
    predicted = permuted(gold, order)
    changed_row = data.draw(st.integers(0, len(gold) - 1))
    changed_column = data.draw(st.integers(0, width - 1))
    new_value = data.draw(st.integers(0, 2))
    row = list(predicted[changed_row])
    row[changed_column] = new_value
    predicted[changed_row] = tuple(row)
    predicted = data.draw(st.permutations(predicted))

    def equals_gold(columns: tuple[int, ...]) -> bool:
        rows = permuted(predicted, columns)
        if ordered:
            return rows == gold
        return Counter(rows) == Counter(gold)

    sql = "SELECT * FROM t ORDER BY 1" if ordered else "SELECT * FROM t"
    expected = any(equals_gold(columns) for columns in permutations(range(width)))
    assert spider(sql, gold, predicted) is expected


def test_a_comparison_of_similar_columns_ends() -> None:
    """Columns that are alike, and columns that nearly are, do not take forever."""
    alike: list[Row] = [(index % 2,) * 200 for index in range(500)]
    assert spider("SELECT 1", alike, alike[::-1])
    source = random.Random(0)
    size = 60
    nearly = [source.sample([0, 1] * (size // 2), size) for _ in range(40)]
    gold = list(zip(*nearly, strict=True))
    source.shuffle(nearly)
    nearly[0] = source.sample([0, 1] * (size // 2), size)
    assert not spider("SELECT 1", gold, list(zip(*nearly, strict=True)))


def test_help_and_documentation_name_all_semantics() -> None:
    """They are written by hand, since neither imports the SQL package before it is needed."""
    _, option = get_args(SemanticsOption)
    for description in (str(option.help), str(score_sql.__doc__)):
        words = re.findall(r"[\w-]+", description)
        assert set(SEMANTICS) <= set(words)
