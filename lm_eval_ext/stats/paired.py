"""Two systems on the same documents: the difference, its interval and a test.

A difference per document removes the documents' difficulty, so a paired interval is narrower
than two intervals side by side suggest (Miller 2024, arXiv 2411.00640, section 4). Documents
that share a source stay together, in intervals and in tests.

If two systems are alike, it is arbitrary in every cluster which answers are called whose. So a
difference is judged against those that arise when the systems change places in some clusters:
Fisher's randomisation test for paired data. It assumes nothing about the scores, and no
difference is proof that fewer than six clusters could show (2 · 2⁻⁵ = 0.06).

For many comparisons at once there are adjusted p-values.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from lm_eval_ext.stats.intervals import (
    NO_LIMITS,
    ClusteredValue,
    Limits,
    interval,
    jackknife,
    mean_estimate,
)

if TYPE_CHECKING:
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

_NOTHING = 1e-12
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
    first: Sequence[float],
    second: Sequence[float],
    clusters: Sequence[str],
    *,
    limits: Limits = NO_LIMITS,
) -> Difference:
    """Compares the means of two systems on the same documents.

    ``limits`` are those of the difference. The test is McNemar's, exact, if all scores are 0 or 1
    and no cluster has two documents; otherwise :func:`swap_test` on the clusters' sums of
    differences, which is a sign-flip test.

    Returns:
        Only the value for fewer than two clusters.
    """
    import numpy as np
    import pandas as pd

    both = np.array([first, second], dtype=float)
    gaps = both[0] - both[1]
    value = math.fsum(gaps) / len(gaps)
    estimate = mean_estimate(gaps, clusters)
    if len(set(clusters)) == len(gaps) > 1 and np.isin(both, (0, 1)).all():
        p = mcnemar(int((gaps > 0).sum()), int((gaps < 0).sum()))
        return _difference(value, estimate, limits, p, "mcnemar")
    # Exact, in the order of the clusters' names: where systems tie, they tie in any order.
    summed = pd.Series(gaps).groupby(list(clusters)).agg(math.fsum)
    sums: Any = summed.to_numpy()[:, None]
    flipped = swap_test(sums, 0 * sums, lambda total: total[:, 0])
    return _difference(value, estimate, limits, flipped, "sign-flip")


def paired_statistic(
    first: "Array",
    second: "Array",
    statistic: "Statistic",
    sizes: "Array",
    *,
    limits: Limits = NO_LIMITS,
) -> Difference:
    """Compares two systems on a statistic of sums over clusters.

    ``first``, ``second`` and ``statistic`` are those of :func:`swap_test`, which is the test;
    ``sizes`` are the clusters' numbers of documents. The standard error is that of the jackknife,
    both systems without the same cluster.

    Returns:
        None for what is undefined or could not be computed.
    """
    import numpy as np

    def gap(sums: "Array") -> "Array":
        return statistic(sums[:, 0]) - statistic(sums[:, 1])

    both = np.stack([first, second], axis=1)
    (value,) = gap(both.sum(axis=0)[None])
    estimate = jackknife(both, gap, sizes)
    return _difference(float(value), estimate, limits, swap_test(first, second, statistic), "swap")


def _difference(
    value: float, estimate: ClusteredValue | None, limits: Limits, p: float | None, test: Test
) -> Difference:
    return Difference(
        None if math.isnan(value) else value,
        estimate.stderr if estimate else None,
        *interval(estimate, limits),
        p,
        None if p is None else test,
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """McNemar's exact test (1947), two-sided, on the documents that one system alone gets right.

    It is 1.0 where there are no such documents.
    """
    from scipy import special

    fewer, discordant = min(only_first, only_second), only_first + only_second
    return min(1.0, 2 * float(special.bdtr(fewer, discordant, 0.5)))


def swap_test(first: "Array", second: "Array", statistic: "Statistic") -> float | None:
    """Tests a statistic of sums over clusters, recomputed for exchanges of the systems.

    The p-value is the share of exchanges whose difference is at least as far from 0 as the observed
    one: of all exchanges for up to ``EXACT_UP_TO`` clusters that differ, otherwise of ``DRAWS``
    random ones and the observed one (Phipson and Smyth 2010).

    Args:
        first: By cluster, the sums that the statistic needs.
        second: The same of the other system, in the same order.
        statistic: From sums, with one axis in front, to values (NaN: undefined, which counts as
            extreme).

    Returns:
        None if the statistic is undefined on all documents, or there are fewer than two clusters.
    """
    import numpy as np

    if len(first) < 2:  # noqa: PLR2004
        return None
    one, two, gaps = first.sum(axis=0), second.sum(axis=0), second - first

    def distance(exchanged: Any) -> Any:
        return np.abs(statistic(one + exchanged) - statistic(two - exchanged))

    (seen,) = distance(np.zeros((1, *one.shape)))
    if math.isnan(seen):
        return None
    gaps[np.abs(gaps) <= _NOTHING * np.abs(gaps).max()] = 0
    moved = gaps.any(axis=tuple(range(1, gaps.ndim)))
    if not moved.any():
        return 1.0
    exact = moved.sum() <= EXACT_UP_TO
    gaps = gaps[moved] if exact else gaps
    count = len(gaps)
    # Exchanging all clusters only changes the sign, so one cluster can stay.
    every = 1 << (count - 1) if exact else DRAWS
    rng = np.random.default_rng(0)
    extreme = 0
    step = max(1, _CHUNK // count)
    for start in range(0, every, step):
        numbers = np.arange(start, min(start + step, every))[:, None]
        size = (len(numbers), count)
        drawn = numbers >> np.arange(count) & 1 if exact else rng.integers(0, 2, size, np.int8)
        found = distance(np.tensordot(drawn.astype(np.float64), gaps, axes=1))
        near = _TIE * max(seen, np.nanmax(found, initial=0.0))
        extreme += int((~(found < seen - near)).sum())
    return extreme / every if exact else (1 + extreme) / (1 + every)


def difference_limits(limits: Limits) -> Limits:
    """The limits of a difference of two values within ``limits``."""
    low, high = limits
    return NO_LIMITS if low is None or high is None else (low - high, high - low)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusts p-values so that the probability of any false finding stays below the level.

    Holm (1979): the smallest is multiplied by the number of tests, the next by one less, and
    so on; none may be below the one before. They are returned in the given order.
    """
    import numpy as np

    found = np.array(p_values, dtype=float)
    order = np.argsort(found)
    raised = np.maximum.accumulate(np.arange(len(found), 0, -1) * found[order])
    found[order] = np.minimum(raised, 1)
    return [float(p) for p in found]
