"""Equality of results: a table of cases for all semantics, and general properties."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.sql import SEMANTICS, Rows
from lm_eval_ext.sql.compare import Gold, among, close, close_rows
from lm_eval_ext.sql.values import Failure, Row, Value


def names(width: int) -> tuple[str, ...]:
    return tuple(f"c{i}" for i in range(width))


def no_more_queries(sql: str) -> Rows | Failure:
    return Failure("error", sql)


def equal(
    semantics: str, gold: list[Row], predicted: list[Row], *, sql: str = "SELECT 1 FROM t"
) -> bool:
    rows = [Rows(names(len(r[0]) if r else 1), r) for r in (gold, predicted)]
    expected = SEMANTICS[semantics].prepare(Gold(sql, rows[0], no_more_queries))
    return expected.matches(rows[1])


A: Row = (1, "x")
B: Row = (2, "y")

#        what, gold, prediction, reference says, strict says
TABLE: list[tuple[str, list[Row], list[Row], bool, bool]] = [
    ("same", [A, B], [A, B], True, True),
    ("both empty", [], [], True, True),
    ("gold empty", [], [A], False, False),
    ("prediction empty", [A], [], False, False),
    ("rows swapped", [A, B], [B, A], False, True),
    ("row twice", [A, B], [A, A], False, False),
    ("row once more", [A], [A, A], False, False),
    ("row missing", [A, A], [A], False, False),
    ("columns swapped", [(1, "x")], [("x", 1)], True, False),
    ("value repeated", [(1, 1)], [(1,)], True, False),
    ("other value repeated", [(1, 1, 2)], [(1, 2, 2)], True, False),
    ("column more", [(1,)], [(1, 2)], False, False),
    ("integer and float", [(1,)], [(1.0,)], True, True),
    ("integer and text", [(1,)], [("1",)], False, False),
    ("float and text", [(1.5,)], [("1.5",)], False, False),
    ("text and blob", [("x",)], [(b"x",)], False, False),
    ("blobs", [(b"x",)], [(b"x",)], True, True),
    ("null and null", [(None,)], [(None,)], True, True),
    ("null and zero", [(None,)], [(0,)], False, False),
    ("null and empty text", [(None,)], [("",)], False, False),
    ("null and its name", [(None,)], [("NULL",)], False, False),
    ("case of letters", [("x",)], [("X",)], False, False),
    ("space at the end", [("x",)], [("x ",)], False, False),
    ("last bit", [(0.1 + 0.2,)], [(0.3,)], False, True),
    ("last bit near zero", [(0.1 + 0.2 - 0.3,)], [(0,)], False, True),
    ("last bit, rows swapped", [(0.1 + 0.2,), (7,)], [(7,), (0.3,)], False, True),
    ("rounded", [(10 / 3,)], [(3.333333,)], False, False),
    ("truncated", [(2.5,)], [(2,)], False, False),
    ("neighbouring integers", [(10**12,)], [(10**12 + 1,)], False, False),
    ("large integer and its float", [(2**53 + 1,)], [(float(2**53),)], False, True),
    ("infinite", [(float("inf"),)], [(float("inf"),)], True, True),
    ("infinite and huge", [(float("inf"),)], [(1e308,)], False, False),
    ("other sign", [(0.5,)], [(-0.5,)], False, False),
    ("lone surrogates", [("\udcff",)], [("\udcfe",)], False, False),
    ("values traded between rows", [(1, "x"), (2, "y")], [(1, "y"), (2, "x")], False, False),
]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case[0])
def test_table(case: tuple[str, list[Row], list[Row], bool, bool]) -> None:
    _, gold, predicted, reference, strict = case
    assert equal("reference", gold, predicted) is reference
    assert equal("reference", predicted, gold) is reference
    assert equal("strict", gold, predicted) is strict
    assert equal("strict", predicted, gold) is strict
    # Of these cases, what either of the two forgives.
    assert equal("sets", gold, predicted) is (reference or strict)
    assert equal("sets", predicted, gold) is (reference or strict)


#        what, gold, prediction, sets says; reference and strict both say no
SETS: list[tuple[str, list[Row], list[Row], bool]] = [
    ("rows and columns swapped", [(1, "x"), (2, "y")], [("y", 2), ("x", 1)], True),
    ("columns swapped, last bit", [(0.1 + 0.2, "x")], [("x", 0.3)], True),
    ("value repeated, rows swapped", [(1, 1), (2, 3)], [(3, 2), (1,)], True),
    ("numbers that are close count once", [(0.1 + 0.2, 0.3)], [(0.3,)], True),
    ("values traded, columns swapped", [(1, "x"), (2, "y")], [("y", 1), ("x", 2)], False),
    ("row twice, columns swapped", [(1, "x"), (2, "y")], [("x", 1), ("x", 1)], False),
    ("column more, rows swapped", [(1,), (2,)], [(2, 0), (1, 0)], False),
    ("rounded, columns swapped", [(10 / 3, "x")], [("x", 3.333333)], False),
]


@pytest.mark.parametrize("case", SETS, ids=lambda case: case[0])
def test_sets(case: tuple[str, list[Row], list[Row], bool]) -> None:
    _, gold, predicted, sets = case
    assert not equal("reference", gold, predicted)
    assert not equal("strict", gold, predicted)
    assert equal("sets", gold, predicted) is sets
    assert equal("sets", predicted, gold) is sets


def test_what_we_make_is_judged_by_a_rule_that_forgives_order() -> None:
    made = {name: semantics.made for name, semantics in SEMANTICS.items()}
    assert made == {"reference": "sets", "strict": "strict", "sets": "sets"}


def test_strict_wants_as_many_columns_even_of_nothing() -> None:
    gold = Gold("SELECT a, b FROM t", Rows(("a", "b"), []), no_more_queries)
    strict, reference = (SEMANTICS[n].prepare(gold) for n in ("strict", "reference"))
    assert not strict.matches(Rows(("a",), []))
    assert strict.matches(Rows(("x", "y"), []))
    assert reference.matches(Rows(("a",), []))


def test_signatures() -> None:
    assert [s.signature for s in SEMANTICS.values()] == [
        "reference-v1", "strict-v2", "sets-v1",
    ]  # fmt: skip


# --- what the gold's ORDER BY leaves open, on a real database -----------------------------

PEOPLE = [
    ("Ada", 36, "Rome"), ("Bob", 36, "Bonn"), ("Cy", 41, "Rome"), ("Dee", None, "Oslo"),
    ("Eve", 25, "Bonn"), ("ada", 25, "rome"),
]  # fmt: skip


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE p (name TEXT COLLATE NOCASE, age INTEGER, city TEXT)")
        connection.executemany("INSERT INTO p VALUES (?, ?, ?)", PEOPLE)
        yield connection


def judge(
    database: sqlite3.Connection, sql: str, predicted: list[Any], semantics: str = "strict"
) -> bool:
    def run(query: str) -> Rows | Failure:
        try:
            cursor = database.execute(query)
        except sqlite3.Error as error:
            return Failure("error", str(error))
        return Rows(tuple(column[0] for column in cursor.description), cursor.fetchall())

    result = run(sql)
    assert isinstance(result, Rows)
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
def test_a_result_equals_itself_in_any_order(rows: list[Row], rng: random.Random) -> None:
    assert equal("reference", rows, rows)
    shuffled = rng.sample(rows, len(rows))
    assert equal("strict", rows, shuffled)
    assert equal("strict", shuffled, rows)


@given(TABLES, st.randoms(use_true_random=False))
def test_noise_is_no_difference(rows: list[Row], rng: random.Random) -> None:
    def noisy(value: Value) -> Value:
        return value * (1 + rng.choice([-1, 0, 1]) * 2e-16) if isinstance(value, float) else value

    moved = [tuple(map(noisy, row)) for row in rng.sample(rows, len(rows))]
    assert equal("strict", rows, moved)


@given(PAIRS)
def test_the_order_of_gold_and_prediction_does_not_matter(
    pair: tuple[list[Row], list[Row]],
) -> None:
    first, second = pair
    for semantics in SEMANTICS:
        assert equal(semantics, first, second) == equal(semantics, second, first)


@given(PAIRS)
def test_strict_without_floats_is_the_multiset(pair: tuple[list[Row], list[Row]]) -> None:
    first, second = ([tuple(str(v) for v in row) for row in rows] for rows in pair)
    assert equal("strict", list(first), list(second)) == (sorted(first) == sorted(second))


@given(TABLES.filter(bool), st.data())
def test_a_row_taken_away_or_added_is_seen(rows: list[Row], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(rows) - 1))
    for semantics in SEMANTICS:
        assert not equal(semantics, rows, rows[:at] + rows[at + 1 :])
        assert not equal(semantics, rows, [*rows, rows[at]])


@given(VALUES, VALUES)
def test_close_is_symmetric_and_keeps_types_apart(a: Value, b: Value) -> None:
    assert close(a, b) == close(b, a)
    assert close(a, a)
    kinds = [float if isinstance(v, int) else type(v) for v in (a, b)]
    assert kinds[0] is kinds[1] or not close(a, b)


@given(
    st.lists(st.integers(0, 12).map(lambda i: (1 + i * 4e-10,)), max_size=6),
    st.lists(st.integers(0, 12).map(lambda i: (1 + i * 4e-10,)), max_size=7),
)
def test_pairing_is_as_good_as_trying_all(rows: list[Row], others: list[Row]) -> None:
    """Values so near that being close is not transitive: no row may take another's partner."""

    def try_all(left: list[Row], free: list[Row]) -> bool:
        if not left:
            return True
        return any(
            close_rows(left[0], other) and try_all(left[1:], free[:i] + free[i + 1 :])
            for i, other in enumerate(free)
        )

    if set(rows).isdisjoint(others):  # equal rows are paired first, by design
        assert among(rows, others) == try_all(rows, others)
    elif among(rows, others):
        assert try_all(rows, others)


def test_many_noisy_rows_are_quick() -> None:
    rng = random.Random(0)
    rows: list[Row] = [(i % 50, rng.random()) for i in range(20_000)]
    moved: list[Row] = [(a, b * (1 + 4e-16)) for a, b in rows]  # type: ignore[operator]
    rng.shuffle(moved)
    assert among(rows, moved)
    assert not among(rows, [*moved[1:], (1, 2.0)])
