"""Two systems on the same documents: the difference, its interval and a test.

A difference per document removes the documents' difficulty, so a paired interval is narrower
than two intervals side by side suggest (Miller 2024, arXiv 2411.00640, section 4). Documents
that share a source stay together, in intervals and in tests.

If two systems are alike, they could change places in any cluster. So a difference is judged
against those that arise when the systems change places in some clusters: Fisher's randomisation
test for paired data. It assumes nothing about the scores. With fewer than six clusters, no
difference is significant (2 · 2⁻⁵ = 0.06).

For many comparisons at once there are adjusted p-values.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lm_eval_ext.stats.intervals import (
    NO_LIMITS,
    ClusteredValue,
    Limits,
    interval,
    jackknife,
    mean_estimate,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lm_eval_ext.stats.intervals import Array, Statistic

Test = Literal["mcnemar", "sign-flip", "swap"]

EXACT_UP_TO = 16
"""For up to so many clusters that differ, all 2**k assignments are tried."""

DRAWS = 20_000
"""Assignments that are drawn where there are more: p is good to about 0.003 at 0.05."""

_CHUNK = 500_000
"""Signs in memory at a time."""

_TIE = 1e-9
"""Statistics that differ by less than this share of the largest are equal but for rounding."""

_NEGLIGIBLE = 1e-12
"""A cluster's gap below this, relative to the largest, is 0 but for rounding."""


@dataclass
class Difference:
    """The first system minus the second; None for what could not be computed.

    ``p`` is the two-sided p-value under the null hypothesis that both are equally good.
    """

    value: float | None
    stderr: float | None = None
    low: float | None = None
    high: float | None = None
    method: str | None = None
    p: float | None = None
    test: Test | None = None


def paired_difference(
    scores_a: Sequence[float],
    scores_b: Sequence[float],
    clusters: Sequence[str],
    *,
    limits: Limits = NO_LIMITS,
) -> Difference:
    """Compare the means of two systems on the same documents.

    The test is McNemar's, exact, if all scores are 0 or 1 and no cluster has two documents;
    otherwise :func:`swap_test` on the clusters' sums of differences, which is a sign-flip test.

    Args:
        scores_a: The score of each document by system A.
        scores_b: The same of system B, in the same order.
        clusters: The documents' clusters.
        limits: The limits of the difference.

    Returns:
        The difference; with fewer than two clusters, only its value.
    """
    import numpy as np
    import pandas as pd

    scores = np.array([scores_a, scores_b], dtype=float)
    gaps = scores[0] - scores[1]
    value = math.fsum(gaps) / len(gaps)
    estimate = mean_estimate(gaps, clusters)
    is_binary = bool(np.isin(scores, (0, 1)).all())
    if is_binary and len(set(clusters)) == len(gaps) > 1:
        p = mcnemar(int((gaps > 0).sum()), int((gaps < 0).sum()))
        return _difference(value, estimate, limits, p, "mcnemar")
    # Exact, in the order of the clusters' names: where systems tie, they tie in any order.
    by_cluster = pd.Series(gaps).groupby(list(clusters)).agg(math.fsum)
    sums: Array = by_cluster.to_numpy()[:, None]

    def total_gap(total: "Array") -> "Array":
        return total[:, 0]

    p_flipped = swap_test(sums, 0 * sums, total_gap)
    return _difference(value, estimate, limits, p_flipped, "sign-flip")


def paired_statistic(
    sums_a: "Array",
    sums_b: "Array",
    statistic: "Statistic",
    sizes: "Array",
    *,
    counting: "NDArray[np.bool_] | None" = None,
    limits: Limits = NO_LIMITS,
) -> Difference:
    """Compare two systems on a statistic of sums over clusters; :func:`swap_test` is the test.

    The standard error is that of the jackknife, both systems without the same cluster.

    Args:
        sums_a: By cluster, the sums of system A.
        sums_b: The same of system B, in the same order.
        statistic: From sums to values, as in :func:`swap_test`.
        sizes: By cluster, the number of documents.
        counting: By cluster, whether either system's value uses it; None if all are used.
        limits: The limits of the difference.

    Returns:
        The difference, with None for what is undefined or could not be computed.
    """
    import numpy as np

    def gap(sums: "Array") -> "Array":
        return statistic(sums[:, 0]) - statistic(sums[:, 1])

    sums = np.stack([sums_a, sums_b], axis=1)
    value = float(gap(sums.sum(axis=0)[None])[0])
    estimate = jackknife(sums, gap, sizes, counting)
    p = swap_test(sums_a, sums_b, statistic)
    return _difference(value, estimate, limits, p, "swap")


def _difference(
    value: float, estimate: ClusteredValue | None, limits: Limits, p: float | None, test: Test
) -> Difference:
    ends = interval(estimate, limits)
    return Difference(
        value=None if math.isnan(value) else value,
        stderr=estimate.stderr if estimate else None,
        low=ends.low,
        high=ends.high,
        method=ends.method,
        p=p,
        test=None if p is None else test,
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the p-value of McNemar's exact test (1947), two-sided.

    Args:
        only_first: The number of documents that only the first system gets right.
        only_second: The number of those that only the second system gets right.

    Returns:
        1.0 where there are no such documents.
    """
    from scipy import special

    fewer, discordant = min(only_first, only_second), only_first + only_second
    return min(1.0, 2 * float(special.bdtr(fewer, discordant, 0.5)))


def swap_test(sums_a: "Array", sums_b: "Array", statistic: "Statistic") -> float | None:
    """Test a statistic of sums over clusters, recomputed for exchanges of the systems.

    The p-value is the share of exchanges whose difference is at least as far from 0 as the observed
    one: of all exchanges for up to ``EXACT_UP_TO`` clusters that differ, otherwise of ``DRAWS``
    random ones and the observed one (Phipson and Smyth 2010).

    Args:
        sums_a: By cluster, the sums that the statistic needs.
        sums_b: The same of the other system, in the same order.
        statistic: From sums, with one axis in front, to values (NaN: undefined, which counts as
            extreme).

    Returns:
        None if the statistic is undefined on all documents, or there are fewer than two clusters.
    """
    import numpy as np

    if len(sums_a) < 2:  # noqa: PLR2004
        return None
    total_a, total_b = sums_a.sum(axis=0), sums_b.sum(axis=0)

    def distance(exchanged: "Array") -> "Array":
        """Return how far apart the systems are, given what they exchange."""
        gaps: Array = statistic(total_a + exchanged) - statistic(total_b - exchanged)
        return np.abs(gaps)

    observed = float(distance(np.zeros((1, *total_a.shape)))[0])
    if math.isnan(observed):
        return None
    gaps = sums_b - sums_a
    gaps[np.abs(gaps) <= _NEGLIGIBLE * np.abs(gaps).max()] = 0
    differs = gaps.any(axis=tuple(range(1, gaps.ndim)))
    if not differs.any():
        return 1.0
    is_exact = bool(differs.sum() <= EXACT_UP_TO)
    if is_exact:
        gaps = gaps[differs]
    # Exchanging all clusters only changes the sign, so one cluster can stay.
    exchanges = 1 << (len(gaps) - 1) if is_exact else DRAWS
    extreme = 0
    for drawn in _exchanges(exchanges, len(gaps), is_exact=is_exact):
        distances = distance(np.tensordot(drawn.astype(np.float64), gaps, axes=1))
        tie = _TIE * max(observed, np.nanmax(distances, initial=0.0))
        is_extreme = ~(distances < observed - tie)  # also of an undefined distance
        extreme += int(is_extreme.sum())
    return extreme / exchanges if is_exact else (1 + extreme) / (1 + exchanges)


def _exchanges(count: int, clusters: int, *, is_exact: bool) -> "Iterator[NDArray[np.integer]]":
    """Yield which clusters are exchanged: a row of zeros and ones for each exchange, in chunks.

    Exact ones are the binary digits of the first ``count`` numbers; others are drawn.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    step = max(1, _CHUNK // clusters)
    for start in range(0, count, step):
        numbers = np.arange(start, min(start + step, count))
        if is_exact:
            yield numbers[:, None] >> np.arange(clusters) & 1
        else:
            yield rng.integers(0, 2, (len(numbers), clusters), np.int8)


def difference_limits(limits: Limits) -> Limits:
    """Return the limits of a difference of two values within ``limits``."""
    low, high = limits
    if low is None or high is None:
        return NO_LIMITS
    return low - high, high - low


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values so that the probability of any false finding stays below the level.

    Holm (1979): the smallest is multiplied by the number of tests, the next by one less, and
    so on; none may be below the one before. They are returned in the given order.
    """
    import numpy as np

    adjusted = np.array(p_values, dtype=float)
    order = np.argsort(adjusted)
    factors = np.arange(len(adjusted), 0, -1)
    raised = np.maximum.accumulate(factors * adjusted[order])
    adjusted[order] = np.minimum(raised, 1)
    return [float(p) for p in adjusted]
