"""The one place that decides on intervals, for every number that is shown (docs/statistics.md).

Few clusters, uneven clusters and rates near 0 or 1 make the usual interval, value ± 1.96 standard
errors, too narrow or lead it out of the legal range. Here

- quantiles are those of Student's t with one degree of freedom fewer than *effective* clusters,
  G* = n² / Σ n_c² for clusters of n_c documents (Carter, Schnepel and Steigerwald 2017); clusters
  of one size are all effective;
- what has a legal range from 0 up (rates, other means, F1, relative performance) gets Wilson's
  score interval with the effective sample size, as in surveys (Korn and Graubard 1998; Dean and
  Pagano 2015): it never leaves the range, and has a width at 0 and at 1;
- differences, and what has no upper limit, get value ± t · SE, cut off at the legal limits;
- the design effect, which few clusters show badly, is estimated as if half an answer more had
  been seen that differs from the others, and its whole cluster with it. So where answers hardly
  differ, it approaches the size of a cluster; at 0 of n and n of n, clusters count instead of
  documents;
- below :data:`LEAST_CLUSTERS` clusters there is no interval.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[np.float64]
    Statistic: TypeAlias = Callable[[Array], Array]

ALPHA = 0.05
"""The level of tests; intervals contain the true value in the rest of all cases, 95 %."""

LEAST_CLUSTERS = 6
"""Clusters below which there is no interval. Five that all point one way have a p of 0.06 in an
exact test, and intervals from so few say next to nothing (docs/statistics.md)."""

LEAST_EFFECTIVE = 2.0
"""The same for effective clusters: where one holds nearly all documents, the others do not help."""

HALF = 0.5
"""The part of an answer that the design effect is estimated with in addition (Jeffreys' half)."""

Limits: TypeAlias = tuple[float | None, float | None]
"""The least and the largest legal value; None: there is no limit."""

UNIT: Limits = (0.0, 1.0)
DIFFERENCE: Limits = (-1.0, 1.0)
NO_LIMITS: Limits = (None, None)


@dataclass(frozen=True)
class ClusteredValue:
    """A value and what its interval depends on.

    Attributes:
        value: A mean or another statistic.
        stderr: Its standard error, clustered.
        documents: The number of documents.
        clusters: The number of clusters they come from.
        effective: The number of clusters of one size that would say as much.
        variance: The variance of single documents; None for a statistic that isn't a mean.
        tail: Their fourth central moment by their variance: the squared distance of the documents
            that differ most. (1 where a few of many answers are wrong.)
        uneven: By how much the squared error has to be raised for clusters of several sizes.
    """

    value: float
    stderr: float
    documents: int
    clusters: int
    effective: float
    variance: float | None = None
    tail: float = 0.0
    uneven: float = 1.0


class Interval(NamedTuple):
    """An interval, and its method, ``wilson``, ``t`` or ``own``; None where none can be had."""

    low: float | None = None
    high: float | None = None
    method: str | None = None


def mean_estimate(scores: Iterable[float], clusters: Iterable[str]) -> ClusteredValue | None:
    """Return the mean of documents' scores by cluster; None for fewer than two clusters.

    The error is the sandwich estimator for a mean, with the correction G / (G - 1) for a small
    number G of clusters: sqrt(G / (G - 1) * sum over clusters of (sum of deviations)²) / n. With
    one document per cluster it is the usual s / sqrt(n). Documents about one noun, one database or
    one dish are not independent, and treating them as independent makes intervals too narrow
    (Miller 2024, arXiv 2411.00640, section 2.2).

    The order of the documents, which varies between ranks, changes no digit.
    """
    import numpy as np

    values = np.fromiter(scores, float)
    _, cluster_of, sizes = np.unique([*clusters], return_inverse=True, return_counts=True)
    count, groups = len(values), len(sizes)
    if groups < 2:  # noqa: PLR2004
        return None
    order = np.lexsort((values, cluster_of))
    values = values[order]
    mean = float(values.mean())
    squares = (values - mean) ** 2
    variance = float(squares.mean())
    if variance <= (_ROUNDING * max(abs(mean), 1.0)) ** 2:
        variance = 0.0
    stderr = tail = 0.0
    if variance:
        sums = np.bincount(cluster_of[order], values - mean)
        stderr = math.sqrt(groups / (groups - 1) * (sums @ sums)) / count
        tail = float((squares @ squares) / squares.sum())
    effective, uneven = _effective_clusters(sizes.astype(float))
    return ClusteredValue(
        value=mean,
        stderr=stderr,
        documents=count,
        clusters=groups,
        effective=effective,
        variance=variance,
        tail=tail,
        uneven=uneven,
    )


_ROUNDING = 1e-12
"""Relative deviations below this come from rounding."""


def _effective_clusters(sizes: "Array") -> tuple[float, float]:
    """Return the number of effective clusters, and the factor that corrects the squared error.

    The number is n² / Σ n_c²: that of all clusters if they have one size, otherwise less. Large
    clusters pull the mean to themselves: if the documents of a cluster are alike, the expected sum
    of squares shrinks by the factor 1 + Σw² - 2 Σw³/Σw², where w are the clusters' shares of all
    documents. For clusters of one size it is (G-1)/G, for which the standard error allows already.
    """
    shares = sizes / sizes.sum()
    squares, cubes = float((shares**2).sum()), float((shares**3).sum())
    expected_if_even = (len(sizes) - 1) / len(sizes)
    return 1 / squares, expected_if_even / (1 + squares - 2 * cubes / squares)


def level_of(names: Sequence[Sequence[str]]) -> int:
    """Return the level to cluster by, where clusters lie within each other.

    Args:
        names: The cluster of each document, from the coarsest level to the finest.

    Returns:
        The coarsest level, unless all documents are in one cluster there; then the next with
        enough clusters for an interval, or the finest.
    """
    if len(set(names[0])) > 1:
        return 0
    for level in range(1, len(names)):
        if len(set(names[level])) >= LEAST_CLUSTERS:
            return level
    return len(names) - 1


def jackknife(
    totals: "Array",
    statistic: "Statistic",
    sizes: "Array",
    counting: "NDArray[np.bool_] | None" = None,
) -> ClusteredValue | None:
    """Return a statistic of sums over clusters, with the error of the delete-one jackknife.

    Args:
        totals: By cluster, the sums that the statistic needs.
        statistic: From sums over clusters, with one axis in front, to values (NaN: undefined).
        sizes: By cluster, the number of documents.
        counting: By cluster, whether the statistic uses its sums; None if it uses all. Clusters
            that it leaves out say nothing about the value, so they must not narrow its interval;
            one whose removal changes the value counts all the same.

    Returns:
        None for fewer than two clusters, or if the statistic is undefined, with all clusters or
        with one left out.
    """
    import numpy as np

    total = totals.sum(axis=0)
    # With all clusters, then without each of them.
    values = statistic(np.concatenate([total[None], total - totals]))
    if len(totals) < 2 or not np.isfinite(values).all():  # noqa: PLR2004
        return None
    left_out = values[1:]
    if counting is not None:
        counting = counting | (np.abs(left_out - values[0]) > _ROUNDING * max(abs(values[0]), 1.0))
        left_out, sizes = left_out[counting], sizes[counting]
    count = len(left_out)
    if count < 2:  # noqa: PLR2004
        return None
    effective, _ = _effective_clusters(sizes)
    return ClusteredValue(
        value=float(values[0]),
        stderr=math.sqrt((count - 1) * left_out.var()),
        documents=int(sizes.sum()),
        clusters=count,
        effective=effective,
    )


def interval(estimate: ClusteredValue | None, limits: Limits = NO_LIMITS) -> Interval:
    """Return the interval of an estimate, if one can be had.

    Args:
        estimate: An estimate from one of the functions above.
        limits: The limits of legal values. From 0 to a limit: Wilson's interval; otherwise t.
    """
    if estimate is None or not math.isfinite(estimate.value + estimate.stderr):
        return Interval()
    if estimate.clusters < LEAST_CLUSTERS or estimate.effective < LEAST_EFFECTIVE:
        return Interval()
    from scipy import special

    quantile = float(special.stdtrit(round(estimate.effective, 9) - 1, 1 - ALPHA / 2))
    low, high = limits
    if low == 0 and high is not None:
        return _wilson(estimate, high, quantile)
    return _student(estimate, low, high, quantile)


def _wilson(estimate: ClusteredValue, high: float, quantile: float) -> Interval:
    share = min(max(estimate.value / high, 0.0), 1.0)
    ratio = quantile**2 / _independent_answers(estimate, high)
    centre = (share + ratio / 2) / (1 + ratio)
    reach = math.sqrt(ratio * share * (1 - share) + ratio**2 / 4) / (1 + ratio)
    return Interval(high * max(centre - reach, 0.0), high * min(centre + reach, 1.0), "wilson")


def _independent_answers(estimate: ClusteredValue, high: float) -> float:
    """Return the number of independent answers that would say as much about the share."""
    share = min(max(estimate.value / high, 0.0), 1.0)
    answer_variance = share * (1 - share)
    if not answer_variance or estimate.variance == 0:
        return estimate.effective
    return answer_variance / (_squared_error(estimate, high) / high**2)


def _squared_error(estimate: ClusteredValue, high: float) -> float:
    """Return the squared standard error with the design effect that half an answer more shows."""
    squared = estimate.stderr**2 * estimate.uneven
    if estimate.variance is None:
        share = estimate.value / high
        variance = share * (1 - share) * high**2
        answers: float = estimate.documents
        if squared:
            answers = min(variance / squared, answers)
        rare = answers * min(share, 1 - share)
    else:
        variance = estimate.variance
        unclustered = variance / estimate.documents
        rare = estimate.documents * variance / estimate.tail / max(squared / unclustered, 1.0)
    return (rare * squared + HALF * variance / estimate.effective) / (rare + HALF)


def _student(
    estimate: ClusteredValue, low: float | None, high: float | None, quantile: float
) -> Interval:
    squared = _student_error(estimate, low, high)
    if not squared:
        return Interval()
    reach = quantile * math.sqrt(squared)
    bottom, top = estimate.value - reach, estimate.value + reach
    if low is not None:
        bottom = max(bottom, low)
    if high is not None:
        top = min(top, high)
    return Interval(bottom, top, "t")


def _student_error(estimate: ClusteredValue, low: float | None, high: float | None) -> float:
    """Return the squared error of the t interval; 0 if nothing varies and the range is unknown."""
    if estimate.variance:
        squared = _squared_error(estimate, 1.0)
        return squared * (1 + HALF * estimate.tail / (estimate.variance * estimate.documents))
    # What one answer can change, where no answer differs.
    unit = 0.0
    if low is not None and high is not None:
        unit = ((high - low) / 2) ** 2
    return estimate.stderr**2 + HALF * unit / (estimate.documents * estimate.effective)


def probability_of(
    estimate: ClusteredValue | None, baseline: float, limits: Limits = NO_LIMITS
) -> float | None:
    """Test a value against a fixed one, by the interval that :func:`interval` gives.

    Args:
        estimate: The value with its error.
        baseline: What the value is compared with, such as chance.
        limits: The least and the largest legal value.

    Returns:
        The two-sided p-value: the interval of level 1 - p ends at the baseline. None if no
        interval can be had.
    """
    if estimate is None or interval(estimate, limits).low is None:
        return None
    distance = abs(estimate.value - baseline)
    if not distance:
        return 1.0
    from scipy import special

    low, high = limits
    if low == 0 and high is not None and 0 < baseline < high:
        share = baseline / high
        squared = share * (1 - share) * high**2 / _independent_answers(estimate, high)
    else:
        squared = _student_error(estimate, low, high)
    if not squared:
        return None
    freedom = round(estimate.effective, 9) - 1
    return 2 * float(special.stdtr(freedom, -distance / math.sqrt(squared)))
