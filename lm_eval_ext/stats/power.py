"""How many clusters a paired comparison needs, and what a number of them can show.

The model is a t-test of the clusters' mean differences (Miller 2024, arXiv 2411.00640, section 5,
with clusters in the place of questions). The sign-flip test that ``compare`` does has nearly the
same power.
"""

import math

from lm_eval_ext.stats.intervals import LEAST_CLUSTERS

CERTAIN = 30.0
"""A noncentrality from which power is 1 but for rounding."""

MOST = 10**9
"""Clusters, beyond which no number is given."""


def stated_variance(
    rates: tuple[float, float], icc: float, per_cluster: float, correlation: float = 0.0
) -> float:
    """The variance of a cluster's mean difference of two systems with right and wrong answers.

    Args:
        rates: The systems' shares of right answers.
        icc: Intra-cluster correlation of the differences; 0 if documents are independent.
        per_cluster: Documents in each cluster.
        correlation: Between the two systems' verdicts on the same document.
    """
    first, second = (rate * (1 - rate) for rate in rates)
    document = first + second - 2 * correlation * math.sqrt(first * second)
    return document * (1 + (per_cluster - 1) * icc) / per_cluster


def power_of(clusters: int, difference: float, variance: float, alpha: float) -> float:
    """The probability that a two-sided test finds a true difference.

    Args:
        clusters: Two or more.
        difference: Of the systems' means.
        variance: Of a cluster's mean difference, above 0.
        alpha: The test's level.
    """
    from scipy import special

    shift = abs(difference) * math.sqrt(clusters / variance)
    if shift > CERTAIN:
        return 1.0
    degrees = clusters - 1
    quantile = special.stdtrit(degrees, 1 - alpha / 2)
    beyond = 1 - float(special.nctdtr(degrees, shift, quantile))
    wrong_way = float(special.nctdtr(degrees, shift, -quantile))
    return beyond + (0.0 if math.isnan(wrong_way) else wrong_way)  # too small to be computed


def clusters_needed(
    difference: float, variance: float, *, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """The least number of clusters with which a difference is found with this power.

    It is at least as large as the number that intervals need, and None above a billion.
    """
    few, many = LEAST_CLUSTERS - 1, LEAST_CLUSTERS
    while power_of(many, difference, variance, alpha) < power:
        few, many = many, many * 2
        if many > MOST:
            return None
    while many - few > 1:
        middle = (few + many) // 2
        if power_of(middle, difference, variance, alpha) < power:
            few = middle
        else:
            many = middle
    return many


def detectable(
    clusters: int, variance: float, *, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """The least difference that so many clusters show with this power; None for fewer than six."""
    from scipy import optimize

    if clusters < LEAST_CLUSTERS:
        return None
    top = CERTAIN * math.sqrt(variance / clusters)
    return float(
        optimize.brentq(lambda one: power_of(clusters, one, variance, alpha) - power, 0, top)
    )
