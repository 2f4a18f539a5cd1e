"""What a verdict says of a wrong result."""

import pytest

from lm_eval_ext.sql import SEMANTICS, Difference, Rows
from lm_eval_ext.sql.compare import Gold
from lm_eval_ext.sql.difference import MAX_CELLS, shown_value
from lm_eval_ext.sql.values import Failure, Row, Value

CITIES: list[Row] = [("Rome", 3), ("Oslo", 1), ("Bonn", 2)]


def as_result(rows: list[Row], *, columns: int | None = None) -> Rows:
    width = columns or len(rows[0])
    return Rows(("c",) * width, rows)


def difference(
    semantics: str, gold: Rows, predicted: Rows, sql: str = "SELECT a, b FROM t"
) -> Difference:
    query = Gold(sql, gold, lambda sql: Failure("error", sql))
    expected = SEMANTICS[semantics].prepare(query)
    assert not expected.matches(predicted)
    return expected.difference(predicted)


TEXTS = {
    "columns": ("strict", CITIES, [("Rome",), ("Oslo",), ("Bonn",)], "1 column instead of 2"),
    "a row less": ("strict", CITIES, CITIES[:2], "2 rows instead of 3: 1 missing"),
    "a row more": (
        "strict",
        CITIES,
        [*CITIES, ("Rome", 3)],
        "4 rows instead of 3: 1 too many",
    ),
    "less and others": (
        "strict",
        CITIES,
        [("Rome", 3), ("Rome", 4)],
        "2 rows instead of 3: 2 missing, 1 too many",
    ),
    "none right": ("strict", CITIES, [("Rome", 9)], "1 row instead of 3: none right"),
    "no rows": ("strict", CITIES, [], "no rows instead of 3"),
    "no rows in the gold": ("strict", [], CITIES, "3 rows instead of none"),
    "changed rows": ("strict", CITIES, [*CITIES[:2], ("Bonn", 9)], "1 of 3 rows wrong"),
    "a value": ("strict", [(3,)], [(4.5,)], "4.5 instead of 3"),
    "a text": ("strict", [("Rome",)], [(None,)], "NULL instead of 'Rome'"),
    "columns swapped": (
        "strict",
        CITIES,
        [(1, "Oslo"), (3, "Rome"), (2, "Bonn")],
        "the right columns in another order",
    ),
    "columns swapped, one value changed": (
        "strict",
        CITIES,
        [(1, "Oslo"), (3, "Rome"), (9, "Bonn")],
        "3 of 3 rows wrong",
    ),
    "columns swapped in one row": (
        "strict",
        [(1, 2), (3, 4)],
        [(1, 2), (4, 3)],
        "1 of 2 rows wrong",
    ),
    "columns swapped under bird": (
        "bird",
        CITIES,
        [(1, "Oslo"), (3, "Rome"), (2, "Bonn")],
        "the right columns in another order",
    ),
    "rounding is no difference": (
        "strict",
        [(0.1 + 0.2,), (1.5,), (2.5,)],
        [(0.3,), (1.5,), (7.5,)],
        "1 of 3 rows wrong",
    ),
    "rounding under reference": (
        "reference",
        [(0.1 + 0.2,), (1.5,)],
        [(0.3,), (1.5,)],
        "1 of 2 rows wrong",
    ),
    "order under reference": (
        "reference",
        CITIES,
        [(3, "Rome"), *CITIES[:0:-1]],
        "the right rows in another order",
    ),
    "sets": ("sets", CITIES, [(3, "Rome"), (1, "Oslo"), (2, "Lima")], "1 of 3 rows wrong"),
    "spider": ("spider", CITIES, [(3, "Rome"), (1, "Oslo"), (2, "Lima")], "1 of 3 rows wrong"),
    "spider, values traded": (
        "spider",
        [(1, 2), (3, 4)],
        [(1, 2), (4, 3)],
        "the right values, but others stand together in a row",
    ),
    "bird": ("bird", [*CITIES, *CITIES], CITIES[:2], "2 rows instead of 3: 1 missing"),
}


@pytest.mark.parametrize(("semantics", "gold", "predicted", "text"), TEXTS.values(), ids=TEXTS)
def test_a_line_says_what_differs(
    semantics: str, gold: list[Row], predicted: list[Row], text: str
) -> None:
    """One line says what differs: columns, rows, their order or a value."""
    width = len(predicted[0]) if predicted else 2
    gold_width = len(gold[0]) if gold else 2
    results = as_result(gold, columns=gold_width), as_result(predicted, columns=width)
    assert difference(semantics, *results).as_text() == text


ORDERED = "SELECT a, b FROM t ORDER BY b"


@pytest.mark.parametrize("semantics", ["strict", "spider"])
def test_order_where_the_gold_orders(semantics: str) -> None:
    """The right rows in another order are told from other rows."""
    gold = as_result(sorted(CITIES, key=lambda row: str(row[1])))
    reversed_rows = as_result(gold.rows[::-1])
    other_rows = as_result([*gold.rows[:2], ("Lima", 4)])
    assert difference(semantics, gold, reversed_rows, ORDERED).kind == "order"
    assert difference(semantics, gold, other_rows, ORDERED).kind == "rows"


def test_missing_and_extra_rows_are_those_of_the_results() -> None:
    """The rows themselves, as the results have them, also where rows count as sets."""
    predicted = as_result([(3, "Rome"), ("Oslo", 1), (9, "Bonn")])
    shown = difference("sets", as_result(CITIES), predicted)
    assert (shown.missing, shown.extra) == ([("Bonn", 2)], [(9, "Bonn")])


def test_rows_of_large_results_are_not_compared() -> None:
    """Rows of large results are not compared, so that a reason takes no time."""
    large: list[Row] = [(number,) for number in range(MAX_CELLS)]
    shorter = difference("strict", as_result(large), as_result(large[1:]))
    assert shorter.as_text() == "199,999 rows instead of 200,000"
    changed = difference("strict", as_result(large), as_result([*large[1:], (-1,)]))
    assert changed.as_text() == "200,000 rows, but not all of them right"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (2**63, "9223372036854775808"),
        (0.1 + 0.2, "0.30000000000000004"),
        ("a\x1b[31m\nb", "'a [31m b'"),
        (b"\x00\xff", "x'00ff'"),
        ("x" * 1_000, f"'{'x' * 29}…{'x' * 29}'"),
    ],
)
def test_values_are_shown_on_one_line(value: Value, text: str) -> None:
    """Values of a database are no safe text: no control characters, no long lines."""
    assert shown_value(value) == text
