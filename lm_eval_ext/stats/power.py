"""Power: how many clusters a paired comparison needs, and what a number of them can show.

The model is a t-test of the clusters' mean differences (Miller 2024, arXiv 2411.00640, section 5,
with clusters in the place of questions). The sign-flip test that ``compare`` does has nearly the
same power.
"""

import math
from bisect import bisect_left

from lm_eval_ext.stats.intervals import ALPHA, LEAST_CLUSTERS

CERTAIN = 30.0
"""A noncentrality from which power is 1 but for rounding."""

MAX_CLUSTERS = 10**9
"""Clusters beyond which no number is given."""

_HALVINGS = 40
"""Steps until a difference is known to twelve digits."""


def stated_variance(
    rates: tuple[float, float], icc: float, per_cluster: float, unevenness: float = 1.0
) -> float:
    """Return the variance of a cluster's mean difference of two systems' right answers.

    Args:
        rates: The systems' shares of right answers, which do not depend on each other.
        icc: Intra-cluster correlation of the differences; 0 if documents are independent.
        per_cluster: Documents in each cluster, on average.
        unevenness: The number of clusters by that of clusters of one size that say as much, 1 or
            more. It raises what lies between clusters, not what lies within them.
    """
    document = math.fsum(rate * (1 - rate) for rate in rates)
    within_clusters = (1 - icc) / per_cluster
    between_clusters = icc * unevenness
    return document * (within_clusters + between_clusters)


def power_of(clusters: int, difference: float, variance: float, alpha: float) -> float:
    """Return the probability that a two-sided test finds a true difference.

    Args:
        clusters: Two or more.
        difference: The difference of the systems' means.
        variance: The variance of a cluster's mean difference, above 0.
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
    if math.isnan(wrong_way):  # too small to be computed
        return beyond
    return beyond + wrong_way


def clusters_needed(
    difference: float, variance: float, *, alpha: float = ALPHA, power: float = 0.8
) -> int | None:
    """Return the least number of clusters with which a difference is found with this power.

    It is at least as large as the number that intervals need, and None above a billion.
    """

    def power_with(clusters: int) -> float:
        return power_of(clusters, difference, variance, alpha)

    clusters = bisect_left(range(MAX_CLUSTERS), power, LEAST_CLUSTERS, key=power_with)
    return clusters if clusters < MAX_CLUSTERS else None


def detectable_difference(
    clusters: int, variance: float, *, alpha: float = ALPHA, power: float = 0.8
) -> float:
    """Return the smallest difference that so many clusters show with this power.

    Args:
        clusters: Two or more.
        variance: The variance of a cluster's mean difference, above 0.
        alpha: The level of the test.
        power: The probability that the difference is found.
    """
    low, high = 0.0, math.sqrt(variance)
    while power_of(clusters, high, variance, alpha) < power:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if power_of(clusters, middle, variance, alpha) < power:
            low = middle
        else:
            high = middle
    return high
