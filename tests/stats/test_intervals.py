"""Intervals: legal, with a width, as libraries have them where they can, and as the page says."""

import itertools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support import legal

from lm_eval_ext.stats.intervals import (
    DIFFERENCE,
    LEAST_CLUSTERS,
    NO_LIMITS,
    UNIT,
    ClusteredValue,
    Interval,
    interval,
    mean_estimate,
)


def estimate(scores: list[float], size: int = 1) -> Any:
    return mean_estimate(scores, [str(place // size) for place in range(len(scores))])


def made(scores: list[float], size: int = 1, limits: Any = UNIT) -> Any:
    return interval(estimate(scores, size), limits)


numbers = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
clustered = st.lists(st.tuples(numbers, st.sampled_from("abcdefgh")), min_size=1, max_size=40)


@given(clustered)
@pytest.mark.slow
def test_the_error_is_statsmodels_cluster_robust_error_of_a_mean(pairs: Any) -> None:
    import statsmodels.api as sm

    ours = mean_estimate(*zip(*pairs, strict=True))
    if len({cluster for _, cluster in pairs}) < 2:
        assert ours is None
        return
    x = np.array([score for score, _ in pairs])
    groups = np.array([ord(c) for _, c in pairs])
    fitted = sm.OLS(x, np.ones(len(x))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert ours and ours.stderr == pytest.approx(float(fitted.bse[0]), rel=1e-6, abs=1e-9)


@given(clustered, st.randoms())
def test_any_scores_have_a_legal_interval(rows: list[Any], rng: random.Random) -> None:
    """Or none; and the order of documents changes nothing."""
    for limits, least in ((UNIT, 0.0), (DIFFERENCE, -1.0)):
        each = [(least + score * (1 - least), cluster) for score, cluster in rows]
        one = mean_estimate(*zip(*each, strict=True))
        found = interval(one, limits)
        assert (found.low is None) == (len({cluster for _, cluster in each}) < LEAST_CLUSTERS)
        if found.low is not None and one:
            legal.check(found.low, found.high, one.value, limits, str(rows))
        rng.shuffle(each)
        assert mean_estimate(*zip(*each, strict=True)) == one


@pytest.mark.parametrize(("size", "low"), [(1, 0.9222), (3, 0.7789), (8, 0.4759)])
def test_all_right_counts_clusters(size: int, low: float) -> None:
    """48 of 48: Wilson's interval of as many right answers as there are clusters, with t for z."""
    from statsmodels.stats.proportion import proportion_confint

    count = 48 // size
    alpha = 2 * stats.norm.sf(stats.t.ppf(0.975, count - 1))
    expected = proportion_confint(count, count, alpha, method="wilson")
    found = made([1.0] * 48, size)
    assert found == (pytest.approx(expected[0]), pytest.approx(expected[1]), "wilson")
    assert found.low == pytest.approx(low, abs=1e-4)
    assert made([0.0] * 48, size)[:2] == pytest.approx((1 - found.high, 1 - found.low))


def test_many_independent_answers_are_wilsons_and_many_differences_students() -> None:
    from statsmodels.stats.proportion import proportion_confint

    for right in (300, 700, 950):
        expected = proportion_confint(right, 1000, method="wilson")
        assert made([1.0] * right + [0.0] * (1000 - right))[:2] == pytest.approx(expected, abs=2e-4)
    drawn = np.random.default_rng(2).normal(0.3, 0.2, size=400)
    students = stats.ttest_1samp(drawn, 0).confidence_interval(0.95)
    *found, method = made(list(drawn), limits=NO_LIMITS)
    assert found == pytest.approx((students.low, students.high), abs=2e-4) and method == "t"


def test_few_clusters_have_none() -> None:
    scores = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    assert made(scores).low is not None
    assert made(scores[:5]) == Interval()
    assert made(scores * 8, 16) == Interval(), "48 documents of three clusters"
    assert made([0.25] * 12, limits=NO_LIMITS) == Interval(), "nothing varies, and no range"
    clusters = ["large" if n > 6 else str(n) for n in range(400)]
    assert interval(mean_estimate([n % 2 for n in range(400)], clusters), UNIT) == Interval()


def test_uneven_clusters_count_as_fewer() -> None:
    scores = np.random.default_rng(3).integers(0, 2, size=120).tolist()
    uneven = mean_estimate(scores, [str(min(place // 2, 19)) for place in range(120)])
    even = estimate(scores, 6)
    assert uneven and uneven.effective == pytest.approx(120**2 / (19 * 4 + 82**2))
    assert (even.effective, even.clusters) == (pytest.approx(20), uneven.clusters)
    assert np.diff(interval(uneven, UNIT)[:2]) > np.diff(interval(even, UNIT)[:2])  # type: ignore[arg-type]


def test_statistics_are_legal_too() -> None:
    """And of many answers half an answer more changes little."""
    for value, stderr in itertools.product((0.0, 0.2, 50.0, 99.9, 100.0), (0.0, 0.5, 30.0)):
        for limits in ((0.0, 100.0), (-100.0, 100.0)):
            low, high, _ = interval(ClusteredValue(value, stderr, 90, 9, 7.5), limits)
            legal.check(low, high, value, limits, f"{value} {stderr}")
    found = interval(ClusteredValue(50.0, 4.0, 10**6, 1000, 1000.0), (0.0, 100.0))
    assert found[:2] == pytest.approx((50 - 1.96 * 4, 50 + 1.96 * 4), abs=0.2)


@pytest.mark.parametrize(("rate", "correlation"), [(0.5, 0.1), (0.8, 0.3)])
def test_intervals_of_lieders_design_hold_the_truth(rate: float, correlation: float) -> None:
    """16 items of 3 documents, beta-binomial; docs/coverage.csv has all designs."""
    rng, runs = np.random.default_rng(0), 400
    both = (1 - correlation) / correlation
    held = 0
    for _ in range(runs):
        right = rng.binomial(3, rng.beta(rate * both, (1 - rate) * both, size=16))
        found = made([float(n < k) for k in right for n in range(3)], 3)
        held += found.low <= rate <= found.high
    assert 0.93 <= held / runs <= 0.98
