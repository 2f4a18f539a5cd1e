"""Many comparisons: Holm against statsmodels, letters against their definition."""

from itertools import combinations
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.stats.paired import holm, letters


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    with patch("gc.collect"):  # which it calls each time, for a third of a second among many tests
        expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(list(expected), abs=1e-12)


def test_nothing_to_adjust() -> None:
    assert holm([]) == []
    assert letters(0, []) == []
    assert letters(1, []) == ["a"]


def test_a_hand_made_display() -> None:
    # The best differs from the last two, the second from the last only.
    assert letters(4, [(0, 2), (0, 3), (1, 3)]) == ["a", "ab", "bc", "c"]
    assert letters(3, []) == ["a", "a", "a"]
    assert letters(3, [(0, 1), (0, 2), (1, 2)]) == ["a", "b", "c"]


@st.composite
def systems(draw: st.DrawFn) -> tuple[int, set[tuple[int, int]]]:
    count = draw(st.integers(2, 9))
    pairs = list(combinations(range(count), 2))
    return count, draw(st.sets(st.sampled_from(pairs)))


@given(systems())
def test_two_share_a_letter_exactly_if_they_are_not_told_apart(
    case: tuple[int, set[tuple[int, int]]],
) -> None:
    count, different = case
    marks = letters(count, different)
    for pair in combinations(range(count), 2):
        assert bool(set(marks[pair[0]]) & set(marks[pair[1]])) == (pair not in different), pair
    used = set("".join(marks))
    members = {name: {i for i, mark in enumerate(marks) if name in mark} for name in used}
    assert not any(members[a] <= members[b] for a in used for b in used if a != b), "one too many"


def test_more_systems_than_letters() -> None:
    marks = letters(30, list(combinations(range(30), 2)))
    assert marks[0] == "a"
    assert marks[25:28] == ["z", "a1", "b1"]
    assert len(set(marks)) == 30
