"""Intervals: legal, with a width, as libraries have them where they can, and as the page says."""

import itertools
import random

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
    Limits,
    interval,
    mean_estimate,
)

ScoresAndClusters = list[tuple[float, str]]


def estimate(scores: list[float], cluster_size: int = 1) -> ClusteredValue:
    """Return the mean of scores of which each ``cluster_size`` in a row are a cluster."""
    clusters = [str(position // cluster_size) for position in range(len(scores))]
    mean = mean_estimate(scores, clusters)
    assert mean is not None
    return mean


def mean_interval(
    scores: list[float], cluster_size: int = 1, limits: Limits = UNIT
) -> tuple[float, float, str | None]:
    """Return the interval of :func:`estimate`, which must have one."""
    bounds = interval(estimate(scores, cluster_size), limits)
    assert bounds.low is not None
    assert bounds.high is not None
    return bounds.low, bounds.high, bounds.method


def mean_of(pairs: ScoresAndClusters) -> ClusteredValue | None:
    scores, clusters = zip(*pairs, strict=True)
    return mean_estimate(scores, clusters)


def cluster_count(pairs: ScoresAndClusters) -> int:
    return len({cluster for _, cluster in pairs})


numbers = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
clustered = st.lists(st.tuples(numbers, st.sampled_from("abcdefgh")), min_size=1, max_size=40)


@given(clustered)
@pytest.mark.slow
def test_the_error_is_statsmodels_cluster_robust_error_of_a_mean(pairs: ScoresAndClusters) -> None:
    import statsmodels.api as sm

    mean = mean_of(pairs)
    if cluster_count(pairs) < 2:
        assert mean is None
        return
    scores = np.array([score for score, _ in pairs])
    groups = np.array([ord(cluster) for _, cluster in pairs])
    model = sm.OLS(scores, np.ones(len(scores)))
    fitted = model.fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert mean is not None
    assert mean.stderr == pytest.approx(float(fitted.bse[0]), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("limits", "least"),
    [pytest.param(UNIT, 0.0, id="share"), pytest.param(DIFFERENCE, -1.0, id="difference")],
)
@given(pairs=clustered, rng=st.randoms())
def test_any_scores_have_a_legal_interval_or_none(
    limits: Limits, least: float, pairs: ScoresAndClusters, rng: random.Random
) -> None:
    """Enough clusters have one, and the order of documents changes nothing."""
    scaled = [(least + score * (1 - least), cluster) for score, cluster in pairs]
    mean = mean_of(scaled)
    bounds = interval(mean, limits)
    assert (bounds.low is None) == (cluster_count(scaled) < LEAST_CLUSTERS)
    if bounds.low is not None:
        assert bounds.high is not None
        assert mean is not None
        legal.check(bounds.low, bounds.high, mean.value, limits, str(pairs))
    rng.shuffle(scaled)
    assert mean_of(scaled) == mean


@pytest.mark.parametrize(("cluster_size", "low"), [(1, 0.9222), (3, 0.7789), (8, 0.4759)])
def test_the_interval_of_right_answers_alone_counts_clusters(cluster_size: int, low: float) -> None:
    """48 of 48: Wilson's interval of as many right answers as there are clusters, with t for z."""
    from statsmodels.stats.proportion import proportion_confint

    clusters = 48 // cluster_size
    alpha = 2 * stats.norm.sf(stats.t.ppf(0.975, clusters - 1))
    expected = proportion_confint(clusters, clusters, alpha, method="wilson")
    all_right = mean_interval([1.0] * 48, cluster_size)
    assert all_right[:2] == pytest.approx(expected)
    assert all_right[2] == "wilson"
    assert all_right[0] == pytest.approx(low, abs=1e-4)
    all_wrong = mean_interval([0.0] * 48, cluster_size)
    assert all_wrong[:2] == pytest.approx((1 - all_right[1], 1 - all_right[0]))


@pytest.mark.parametrize("right", [300, 700, 950])
def test_many_independent_answers_have_wilsons_interval(right: int) -> None:
    from statsmodels.stats.proportion import proportion_confint

    expected = proportion_confint(right, 1000, method="wilson")
    low, high, _ = mean_interval([1.0] * right + [0.0] * (1000 - right))
    assert (low, high) == pytest.approx(expected, abs=2e-4)


def test_many_independent_differences_have_students_interval() -> None:
    differences = np.random.default_rng(2).normal(0.3, 0.2, size=400)
    expected = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    low, high, method = mean_interval(list(differences), limits=NO_LIMITS)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=2e-4)
    assert method == "t"


SIX_SCORES = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("scores", "cluster_size", "limits"),
    [
        pytest.param(SIX_SCORES[:5], 1, UNIT, id="five documents"),
        pytest.param(SIX_SCORES * 8, 16, UNIT, id="48 documents of three clusters"),
        pytest.param([0.25] * 12, 1, NO_LIMITS, id="nothing varies, and no range"),
    ],
)
def test_few_clusters_have_no_interval(
    scores: list[float], cluster_size: int, limits: Limits
) -> None:
    assert interval(estimate(scores, cluster_size), limits) == Interval()


def test_six_clusters_have_an_interval() -> None:
    assert interval(estimate(SIX_SCORES), UNIT).low is not None


def test_one_cluster_with_nearly_all_documents_has_no_interval() -> None:
    scores = [float(number % 2) for number in range(400)]
    clusters = ["large" if number > 6 else str(number) for number in range(400)]
    assert interval(mean_estimate(scores, clusters), UNIT) == Interval()


def test_uneven_clusters_count_as_fewer() -> None:
    scores = np.random.default_rng(3).integers(0, 2, size=120).tolist()
    even = estimate(scores, 6)
    uneven = mean_estimate(scores, [str(min(position // 2, 19)) for position in range(120)])
    assert uneven is not None
    assert uneven.effective == pytest.approx(120**2 / (19 * 4 + 82**2))
    assert even.effective == pytest.approx(20)
    assert even.clusters == uneven.clusters
    wide, narrow = interval(uneven, UNIT), interval(even, UNIT)
    assert wide.low is not None
    assert wide.high is not None
    assert narrow.low is not None
    assert narrow.high is not None
    assert wide.high - wide.low > narrow.high - narrow.low


@pytest.mark.parametrize("limits", [(0.0, 100.0), (-100.0, 100.0)], ids=str)
@pytest.mark.parametrize("stderr", [0.0, 0.5, 30.0])
def test_intervals_of_other_statistics_are_legal_too(limits: Limits, stderr: float) -> None:
    for value in (0.0, 0.2, 50.0, 99.9, 100.0):
        low, high, _ = interval(ClusteredValue(value, stderr, 90, 9, 7.5), limits)
        assert low is not None
        assert high is not None
        legal.check(low, high, value, limits, f"{value} {stderr}")


def test_the_added_half_answer_matters_little_among_many() -> None:
    bounds = interval(ClusteredValue(50.0, 4.0, 10**6, 1000, 1000.0), (0.0, 100.0))
    assert bounds[:2] == pytest.approx((50 - 1.96 * 4, 50 + 1.96 * 4), abs=0.2)


@pytest.mark.parametrize(("rate", "correlation"), [(0.5, 0.1), (0.8, 0.3)])
def test_intervals_of_lieders_design_hold_the_truth(rate: float, correlation: float) -> None:
    """16 items of 3 documents, beta-binomial; docs/coverage.csv has all designs."""
    rng = np.random.default_rng(0)
    simulations = 400
    concentration = (1 - correlation) / correlation
    covered = 0
    for _ in range(simulations):
        item_rates = rng.beta(rate * concentration, (1 - rate) * concentration, size=16)
        right_by_item = rng.binomial(3, item_rates)
        answers = itertools.product(right_by_item, range(3))
        scores = [float(number < right) for right, number in answers]
        low, high, _ = mean_interval(scores, 3)
        if low <= rate <= high:
            covered += 1
    assert 0.93 <= covered / simulations <= 0.98
