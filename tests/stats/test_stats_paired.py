"""Paired differences: against libraries, all signs, other orders."""

import itertools
import math
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.stats import paired
from lm_eval_ext.stats.intervals import DIFFERENCE
from lm_eval_ext.stats.paired import (
    holm,
    mcnemar,
    paired_difference,
    paired_statistic,
    swap_test,
)

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def first_column(sums: Array) -> Array:
    return sums[:, 0]


def ratio(sums: Array) -> Array:
    return sums[:, 0] / sums[:, 1]


def undefined(sums: Array) -> Array:
    return np.full(len(sums), np.nan)


def sign_flip(sums: Sequence[float]) -> float:
    """Return the p-value of the clusters' sums of differences; 1 for a single cluster."""
    differences = np.array(sums)[:, None]
    p_value = swap_test(differences, 0 * differences, first_column)
    return 1.0 if p_value is None else p_value


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60))
def test_right_and_wrong_without_clusters_is_statsmodels_mcnemar(
    pairs: list[tuple[bool, bool]],
) -> None:
    from statsmodels.stats.contingency_tables import mcnemar as reference

    first = [float(first_right) for first_right, _ in pairs]
    second = [float(second_right) for _, second_right in pairs]
    clusters = [str(number) for number in range(len(pairs))]
    difference = paired_difference(first, second, clusters)
    only_first = pairs.count((True, False))
    only_second = pairs.count((False, True))
    expected = reference([[5, only_first], [only_second, 5]], exact=True).pvalue
    assert difference.test == "mcnemar"
    assert difference.p == mcnemar(only_first, only_second)
    assert difference.p == pytest.approx(expected, rel=1e-12, abs=1e-15)


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_all_signs_are_tried(sums: list[int]) -> None:
    """The p-value is the share of signs that give as large a sum, whatever the clusters' order."""
    all_signed = list(itertools.product(*[(value, -value) for value in sums]))
    as_far = sum(abs(sum(signed)) >= abs(sum(sums)) for signed in all_signed)
    sevenths = [value / 7 for value in sums]
    assert sign_flip(sevenths) == pytest.approx(as_far / len(all_signed))
    assert sign_flip(sevenths[::-1]) == pytest.approx(as_far / len(all_signed))


def test_rounding_is_no_difference() -> None:
    assert sign_flip([0.1, 0.2, -0.3]) == 1


def test_drawn_signs_agree_with_all_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = list(np.random.default_rng(5).normal(0.4, 1.0, size=14))
    exact = sign_flip(sums)
    monkeypatch.setattr(paired, "EXACT_UP_TO", 0)
    drawn = sign_flip(sums)
    assert 0.01 < exact < 0.5, "a case in which something can go wrong"
    assert 0 < abs(drawn - exact) < 4 * math.sqrt(exact * (1 - exact) / paired.DRAWS)
    assert drawn == sign_flip(sums), "the same signs are drawn"
    assert sign_flip([1.0] * 40) == 1 / (1 + paired.DRAWS), "the observed signs are one of them"
    monkeypatch.setattr(paired, "_CHUNK", 14 * 1000)
    assert sign_flip(sums) == drawn, "in pieces, too"


@pytest.mark.parametrize("differ", [24, 60])
def test_the_order_of_documents_changes_nothing(differ: int) -> None:
    """All exchanges are tried for few clusters that differ, and drawn for many."""
    rng = np.random.default_rng(6)
    first = rng.normal(size=60)
    second = np.where(np.arange(60) < differ, rng.normal(0.8, 1, size=60), first)
    clusters = (np.arange(60) // 2).astype(str)
    order = rng.permutation(60)
    difference = paired_difference(list(first), list(second), list(clusters))
    reordered = paired_difference(list(first[order]), list(second[order]), list(clusters[order]))
    assert reordered == difference
    assert difference.p is not None
    assert 0 < difference.p < 1


TOTALS = np.array([[number % 3, 3.0] for number in range(12)])
SIZES = np.ones(12)


def test_a_statistic_of_equal_systems_does_not_differ() -> None:
    same = paired_statistic(TOTALS, TOTALS, ratio, SIZES, limits=DIFFERENCE)
    assert (same.value, same.p, same.stderr) == (0.0, 1.0, 0.0)
    assert same.low is not None
    assert same.low < 0


def test_an_undefined_statistic_has_no_difference() -> None:
    difference = paired_statistic(TOTALS, TOTALS, undefined, SIZES)
    assert set(vars(difference).values()) == {None}


def test_a_statistic_of_one_cluster_has_only_a_value() -> None:
    difference = paired_statistic(np.ones((1, 1)), np.zeros((1, 1)), first_column, np.ones(1))
    assert (difference.value, difference.p) == (1.0, None)


def test_a_mean_as_a_statistic_agrees_with_its_formula() -> None:
    """Exchanging systems in clusters is flipping signs."""
    first, second = np.random.default_rng(8).normal(size=(2, 36))
    clusters = [f"{number // 3:02}" for number in range(36)]
    formula = paired_difference(list(first), list(second), clusters)
    sizes = np.full(12, 3.0)
    first_totals = np.column_stack([first.reshape(12, 3).sum(axis=1), sizes])
    second_totals = np.column_stack([second.reshape(12, 3).sum(axis=1), sizes])
    statistic = paired_statistic(first_totals, second_totals, ratio, sizes)
    assert (statistic.value, statistic.stderr, statistic.p) == pytest.approx(
        (formula.value, formula.stderr, formula.p)
    )
    assert statistic.low == pytest.approx(formula.low, abs=0.1)


@given(st.lists(st.floats(0, 1), max_size=40))
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    with patch("gc.collect"):  # which it calls each time, for a third of a second among many tests
        expected = multipletests(p_values, method="holm")[1] if p_values else []
    assert holm(p_values) == pytest.approx(list(expected), abs=1e-12)
