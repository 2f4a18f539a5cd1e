"""Pairing rows whose floats may differ by rounding, beside a brute-force matching."""

import random
from collections import Counter
from collections.abc import Callable
from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lm_eval_ext.sql.matching import can_pair_all, close, close_rows, unpaired
from lm_eval_ext.sql.values import Exact, Row, Value


def brute_force(rows: list[Row], partners: list[Row]) -> bool:
    """Return the verdict by definition: exactly equal rows first, then any assignment."""
    rows_left = list((Counter(rows) - Counter(partners)).elements())
    partners_left = list((Counter(partners) - Counter(rows)).elements())
    return any(
        all(map(close_rows, rows_left, chosen))
        for chosen in permutations(partners_left, len(rows_left))
    )


NEAR_ONE = [1.0 + step * 4e-10 for step in range(-3, 4)]
NEAR_ZERO = [0.0, 1e-14, -1e-14, 4e-14, 6e-14, 5e-13, -5e-13, 8e-13, 1.1e-12]
LARGE = [1e18, 1e18 + 1e9, 1e18 + 2e9]
EXACT_NUMBERS: list[Value] = [1, 10**18, 10**18 + 1, Exact("0.5"), Exact("1.0000000001")]
VALUES = st.sampled_from(
    [*NEAR_ONE, *NEAR_ZERO, *LARGE, *EXACT_NUMBERS, 0.5, float("inf"), float("-inf"), None, "1"]
)
PAIRS_OF_RESULTS = st.integers(1, 3).flatmap(
    lambda width: st.tuples(
        st.lists(st.tuples(*[VALUES] * width), max_size=5),
        st.lists(st.tuples(*[VALUES] * width), max_size=5),
    )
)
CHAINS = st.tuples(
    st.lists(st.tuples(st.sampled_from(NEAR_ONE), st.sampled_from(NEAR_ONE)), max_size=5),
    st.lists(st.tuples(st.sampled_from(NEAR_ONE), st.sampled_from(NEAR_ONE)), max_size=5),
)


@given(st.one_of(PAIRS_OF_RESULTS, CHAINS))
@example(([(1.0,), (1.0 + 8e-10,)], [(1.0 + 4e-10,), (1.0 - 8e-10,)]))
@example(([(8e-13,), (0.0,)], [(1e-14,), (8e-13,)]))
def test_pairing_is_a_maximum_matching(pair: tuple[list[Row], list[Row]]) -> None:
    """All ways to the verdict (cells, sorting, augmenting paths) agree with the definition."""
    rows, partners = pair
    assert can_pair_all(rows, partners) == brute_force(rows, partners)


@given(st.one_of(PAIRS_OF_RESULTS, CHAINS))
def test_nothing_is_left_if_and_only_if_all_rows_can_be_paired(
    pair: tuple[list[Row], list[Row]],
) -> None:
    """Nothing is left over if and only if all rows can be paired, and counts fit."""
    rows, partners = pair
    rows_left, partners_left = unpaired(rows, partners)
    assert len(rows) - len(rows_left) == len(partners) - len(partners_left)
    assert not Counter(rows_left) - Counter(rows)
    assert not Counter(partners_left) - Counter(partners)
    all_paired = not rows_left and not partners_left
    assert all_paired == (len(rows) == len(partners) and can_pair_all(rows, partners))


def noisy(value: float, source: random.Random) -> float:
    return value * (1 + source.choice([-2, -1, 1, 2]) * 2.3e-16)


SIZE = 20_000


def same_value(index: int) -> Row:
    del index
    return (0.3,)


def same_values_in_two_columns(index: int) -> Row:
    del index
    return (0.3, 7e5)


def distinct_values(index: int) -> Row:
    return (index / 7, "text")


def near_values(index: int) -> Row:
    """Each value is close to hundreds of others: days as floats, a second apart."""
    return (2_460_000.5 + index / 86_400,)


def near_values_with_key(index: int) -> Row:
    return (10**18 + index, 2_460_000.5 + index / 86_400)


LARGE_RESULTS = {
    function.__name__: function
    for function in (
        same_value,
        same_values_in_two_columns,
        distinct_values,
        near_values,
        near_values_with_key,
    )
}


def with_floats_changed(row: Row, change: Callable[[float], float]) -> Row:
    """Return a row whose floats are changed."""
    return tuple(change(value) if isinstance(value, float) else value for value in row)


@pytest.mark.parametrize("make_row", LARGE_RESULTS.values(), ids=LARGE_RESULTS)
def test_many_floats_with_noise(make_row: object) -> None:
    """20,000 rows that differ in the last bit are paired; one that differs more is found."""
    assert callable(make_row)
    source = random.Random(0)
    rows: list[Row] = [make_row(index) for index in range(SIZE)]
    partners = [with_floats_changed(row, lambda value: noisy(value, source)) for row in rows]
    source.shuffle(partners)
    assert can_pair_all(rows, partners)
    changed = with_floats_changed(partners[0], lambda value: value * (1 + 1e-3))
    assert not can_pair_all(rows, [changed, *partners[1:]])


def test_a_smaller_result_is_paired_with_some_of_the_partners() -> None:
    """Such groups arise where a LIMIT cuts through tied rows."""
    assert can_pair_all([(1.0,), (2.0,)], [(3.0,), (2.0 + 1e-12,), (1.0,)])
    assert not can_pair_all([(1.0,), (1.0,)], [(1.0,), (2.0,), (3.0,)])
    assert not can_pair_all([(1.0,), (2.0,)], [(1.0,)])


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (0.1 + 0.2, 0.3, True),
        (1, 1.0, True),
        (1, 1 + 1e-12, True),
        (10**18, 10**18 + 1, False),
        (Exact("0.1"), 0.1, True),
        (Exact("0.1"), Exact("0.1000000000000000001"), False),
        (1.0, "1.0", False),
        (None, None, True),
        (None, 0.0, False),
    ],
)
def test_only_floats_have_a_tolerance(left: Value, right: Value, equal: bool) -> None:
    """Only floats have a tolerance, and it is symmetric."""
    assert close(left, right) is equal
    assert close(right, left) is equal
