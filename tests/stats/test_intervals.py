"""Intervals: legal, with a width, as libraries have them where they can, and as the page says."""

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.api.metrics import mean_stderr
from scipy import stats
from support import legal

from lm_eval_ext.stats.intervals import (
    DIFFERENCE,
    LEAST_CLUSTERS,
    NO_LIMITS,
    UNIT,
    Estimate,
    interval,
    interval_of_independent,
    jackknife,
    mean_estimate,
)


def values(scores: list[float], size: int) -> list[tuple[float, str]]:
    return [(score, str(place // size)) for place, score in enumerate(scores)]


def made(scores: list[float], size: int = 1, limits: Any = UNIT) -> Any:
    return interval(mean_estimate(values(scores, size)), limits)


def error(pairs: list[tuple[float, str]]) -> float | None:
    found = mean_estimate(pairs)
    return found.stderr if found else None


numbers = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
clustered = st.lists(st.tuples(numbers, st.sampled_from("abcdefgh")), min_size=1, max_size=40)


@given(clustered)
@pytest.mark.slow
def test_the_error_is_statsmodels_cluster_robust_error_of_a_mean(pairs: Any) -> None:
    import statsmodels.api as sm

    ours = error(pairs)
    if len({cluster for _, cluster in pairs}) < 2:
        assert ours is None
        return
    x = np.array([score for score, _ in pairs])
    groups = np.array([ord(c) for _, c in pairs])
    fitted = sm.OLS(x, np.ones(len(x))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert ours == pytest.approx(float(fitted.bse[0]), rel=1e-6, abs=1e-9)


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=40))
def test_with_one_document_per_cluster_it_is_lm_evals_own(numbers: list[float]) -> None:
    assert error(values(numbers, 1)) == pytest.approx(mean_stderr(numbers), rel=1e-9, abs=1e-12)


@given(clustered, st.randoms())
def test_any_scores_have_a_legal_interval(rows: list[Any], rng: random.Random) -> None:
    """Or none; and the order of documents changes nothing."""
    scores = [(row[0], row[1]) for row in rows]
    differences = [(2 * score - 1, cluster) for score, cluster in scores]
    for each, limits in ((scores, UNIT), (differences, DIFFERENCE)):
        estimate = mean_estimate(each)
        found = interval(estimate, limits)
        assert (found is None) == (len({cluster for _, cluster in each}) < LEAST_CLUSTERS)
        if found and estimate:
            legal.check(found.low, found.high, estimate.value, limits, str(rows))
        rng.shuffle(each)
        assert mean_estimate(each) == estimate


@pytest.mark.parametrize(("size", "low"), [(1, 0.9222), (3, 0.7789), (8, 0.4759)])
def test_all_right_counts_clusters(size: int, low: float) -> None:
    """48 of 48: Wilson's interval of as many right answers as there are clusters, with t for z."""
    from statsmodels.stats.proportion import proportion_confint

    count = 48 // size
    alpha = 2 * stats.norm.sf(stats.t.ppf(0.975, count - 1))
    expected = proportion_confint(count, count, alpha, method="wilson")
    found = made([1.0] * 48, size)
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.low == pytest.approx(low, abs=1e-4)
    wrong = made([0.0] * 48, size)
    assert (wrong.low, wrong.high) == pytest.approx((1 - found.high, 1 - found.low))


def test_more_right_answers_raise_the_interval() -> None:
    """But for the last: 48 of 48 do not show that answers of one cluster differ, as 47 do."""
    lows = [made([1.0] * right + [0.0] * (48 - right), 3).low for right in range(24, 49)]
    assert lows[:-1] == sorted(lows[:-1])
    assert lows[-2] - 0.06 < lows[-1] < lows[-2]


def test_many_independent_answers_are_wilsons_and_many_differences_students() -> None:
    from statsmodels.stats.proportion import proportion_confint

    for right in (300, 700, 950):
        expected = proportion_confint(right, 1000, method="wilson")
        found = made([1.0] * right + [0.0] * (1000 - right))
        assert (found.low, found.high) == pytest.approx(expected, abs=2e-4)
    drawn = np.random.default_rng(2).normal(0.3, 0.2, size=400)
    students = stats.ttest_1samp(drawn, 0).confidence_interval(0.95)
    found = made(list(drawn), limits=NO_LIMITS)
    assert (found.low, found.high) == pytest.approx((students.low, students.high), abs=2e-4)
    assert found.method == "t"


def test_few_clusters_have_none() -> None:
    scores = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    assert made(scores[:5]) is None
    assert made(scores) is not None
    assert made(scores * 8, 16) is None, "48 documents of three clusters"
    assert made([0.25] * 12, limits=NO_LIMITS) is None, "what varies not at all, without a range"
    one_large = [(n % 2, "large" if n > 6 else str(n)) for n in range(400)]
    assert interval(mean_estimate(one_large), UNIT) is None


def test_uneven_clusters_count_as_fewer() -> None:
    rng = np.random.default_rng(3)
    scores = [float(one) for one in rng.integers(0, 2, size=120)]
    uneven = [(score, str(min(place // 2, 19))) for place, score in enumerate(scores)]
    estimate, even = mean_estimate(uneven), mean_estimate(values(scores, 6))
    assert estimate and even
    assert estimate.effective == pytest.approx(120**2 / (19 * 4 + 82**2))
    assert (even.effective, even.clusters) == (20, estimate.clusters)
    one, two = interval(estimate, UNIT), interval(even, UNIT)
    assert one and two and one.high - one.low > two.high - two.low


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_the_jackknife_of_a_mean_is_its_standard_error(rows: list[tuple[int, int]]) -> None:
    totals = {str(place): np.array([sum(row), 2.0]) for place, row in enumerate(rows)}
    found = jackknife(totals, lambda sums: sums[:, 0] / sums[:, 1], dict.fromkeys(totals, 2))
    expected = mean_estimate((one, str(place)) for place, row in enumerate(rows) for one in row)
    assert found is not None and expected is not None
    assert found.value == pytest.approx(expected.value)
    assert found.stderr == pytest.approx(expected.stderr, abs=1e-12)
    assert (found.documents, found.clusters) == (2 * len(rows), len(rows))


def test_a_statistic_that_needs_a_cluster_has_no_error() -> None:
    totals = {"a": np.array([1.0]), "b": np.array([0.0]), "c": np.array([0.0])}

    def share(sums: Any) -> Any:
        with np.errstate(invalid="ignore"):
            return sums[:, 0] / sums[:, 0]

    assert jackknife(totals, share, dict.fromkeys(totals, 1)) is None
    assert jackknife({"a": np.ones(1)}, share, {"a": 1}) is None


@pytest.mark.parametrize("value", [0.0, 0.2, 50.0, 99.9, 100.0])
@pytest.mark.parametrize("stderr", [0.0, 0.5, 30.0])
def test_statistics_are_legal_too(value: float, stderr: float) -> None:
    estimate = Estimate(value, stderr, 90, 9, 7.5)
    for limits in ((0.0, 100.0), (-100.0, 100.0)):
        found = interval(estimate, limits)
        assert found is not None
        legal.check(found.low, found.high, value, limits, f"{value} {stderr}")


def test_independent_documents_of_other_tasks() -> None:
    """A rate shows in its standard error; other means may have any range."""
    error = math.sqrt(0.9 * 0.1 / 39)
    assert interval_of_independent(0.9, error, 40) == made([1.0] * 36 + [0.0] * 4)
    perplexity = interval_of_independent(0.9, 0.3, 40)
    assert perplexity is not None
    assert (perplexity.method, perplexity.high > 1) == ("t", True)
    assert interval_of_independent(0.9, error, 5) is None
    assert interval_of_independent(12.0, 0.0, 40) is None


@pytest.mark.parametrize(("rate", "correlation"), [(0.5, 0.1), (0.8, 0.3)])
def test_intervals_of_lieders_design_hold_the_truth(rate: float, correlation: float) -> None:
    """16 items of 3 documents, beta-binomial; docs/coverage.csv has all designs."""
    rng, runs = np.random.default_rng(0), 400
    both = (1 - correlation) / correlation
    held = 0
    for _ in range(runs):
        right = rng.binomial(3, rng.beta(rate * both, (1 - rate) * both, size=16))
        found = interval(
            mean_estimate(
                (float(n < k), str(item)) for item, k in enumerate(right) for n in range(3)
            ),
            UNIT,
        )
        assert found is not None
        held += found.low <= rate <= found.high
    assert 0.93 <= held / runs <= 0.98
