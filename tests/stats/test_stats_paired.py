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


def sign_flip(sums: Sequence[float]) -> float:
    """Of the sums by cluster."""
    gaps = np.array(sums)[:, None]
    p = swap_test(gaps, 0 * gaps, lambda total: total[:, 0])
    return 1.0 if p is None else p  # of a single cluster


def ratio(sums: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return sums[:, 0] / sums[:, 1]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60))
def test_right_and_wrong_without_clusters_is_statsmodels_mcnemar(
    pairs: list[tuple[bool, bool]],
) -> None:
    from statsmodels.stats.contingency_tables import mcnemar as reference

    first, second = ([float(one) for one in own] for own in zip(*pairs, strict=True))
    found = paired_difference(first, second, [str(i) for i in range(len(pairs))])
    only = [sum(a > b for a, b in pairs), sum(b > a for a, b in pairs)]
    expected = reference([[5, only[0]], [only[1], 5]], exact=True).pvalue
    assert found.test == "mcnemar"
    assert found.p == mcnemar(*only) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_all_signs_are_tried(sums: list[int]) -> None:
    """In whatever order the clusters come."""
    total = abs(sum(sums))
    signs = list(itertools.product((1, -1), repeat=len(sums)))
    as_far = sum(abs(sum(s * v for s, v in zip(row, sums, strict=True))) >= total for row in signs)
    sevenths = [value / 7 for value in sums]
    assert sign_flip(sevenths) == pytest.approx(as_far / len(signs))
    assert sign_flip(sevenths[::-1]) == pytest.approx(as_far / len(signs))
    assert sign_flip([0.1, 0.2, -0.3]) == 1, "but for rounding the difference is 0"


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
    """Where all exchanges are tried, and where they are drawn."""
    rng = np.random.default_rng(6)
    one, clusters = rng.normal(size=60), np.arange(60) // 2
    two = np.where(np.arange(60) < differ, rng.normal(0.8, 1, size=60), one)
    found, other = (
        paired_difference(*(list(own[order]) for own in (one, two, clusters.astype(str))))
        for order in (np.arange(60), rng.permutation(60))
    )
    assert found == other and found.p is not None and 0 < found.p < 1


def test_a_statistic_of_equal_systems_and_of_undefined_values() -> None:
    totals, sizes = np.array([[n % 3, 3.0] for n in range(12)]), np.ones(12)
    same = paired_statistic(totals, totals, ratio, sizes, limits=DIFFERENCE)
    assert (same.value, same.p, same.stderr) == (0.0, 1.0, 0.0)
    assert same.low is not None and same.low < 0
    undefined = paired_statistic(totals, totals, lambda sums: np.full(len(sums), np.nan), sizes)
    assert set(vars(undefined).values()) == {None}
    one = paired_statistic(np.ones((1, 1)), np.zeros((1, 1)), lambda s: s[:, 0], np.ones(1))
    assert (one.value, one.p) == (1.0, None)


def test_a_mean_as_a_statistic_agrees_with_its_formula() -> None:
    """And exchanging systems in clusters is flipping signs."""
    both = np.random.default_rng(8).normal(size=(2, 36))
    formula = paired_difference(*map(list, both), [f"{n // 3:02}" for n in range(36)])  # type: ignore[call-arg, arg-type, misc]
    totals = [np.array([[own.sum(), 3.0] for own in one.reshape(12, 3)]) for one in both]
    found = paired_statistic(totals[0], totals[1], ratio, np.full(12, 3.0))
    assert (found.value, found.stderr, found.p) == pytest.approx(
        (formula.value, formula.stderr, formula.p)
    )
    assert found.low == pytest.approx(formula.low, abs=0.1)


@given(st.lists(st.floats(0, 1), max_size=40))
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    with patch("gc.collect"):  # which it calls each time, for a third of a second among many tests
        expected = multipletests(p_values, method="holm")[1] if p_values else []
    assert holm(p_values) == pytest.approx(list(expected), abs=1e-12)
