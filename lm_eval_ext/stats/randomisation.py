"""Tests of two systems on the same documents, exact or by random exchanges.

If two systems are alike, it is arbitrary in every cluster which answers are called whose. So a
difference is judged against those that arise when the systems change places in some clusters:
Fisher's randomisation test for paired data. It assumes nothing about the scores, and no
difference is proof that fewer than six clusters could show (2 · 2⁻⁵ = 0.06).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]

Test = Literal["mcnemar", "sign-flip", "swap"]

EXACT_UP_TO = 16
"""For up to so many clusters that differ, all 2**k assignments are tried."""

DRAWS = 20_000
"""Assignments that are drawn where there are more: p is good to about 0.003 at 0.05."""

_CHUNK = 500_000
"""Signs in memory at a time."""

_TIE = 1e-9
"""Sums that differ by less, relatively, are equal but for rounding."""

_NOTHING = 1e-12
"""A cluster's sum below this, relative to the largest, is 0 but for rounding."""


def paired_tests(
    systems: Sequence[Sequence[float]], clusters: Sequence[str], *, seed: int = 0
) -> list[tuple[float, Test]]:
    """Tests the means of every two systems, in the order of ``itertools.combinations``.

    The test is McNemar's, exact, if both systems' scores are 0 or 1 and no cluster has two
    documents; otherwise :func:`sign_flips` on the clusters' sums of differences. All pairs are
    tested together, which for many systems is far faster than one after the other, and gives what
    each pair alone would give.

    Args:
        systems: For each, the scores of the documents.
        clusters: Of each document.
        seed: Of random exchanges.

    Raises:
        ValueError: If the lengths differ.
    """
    import numpy as np

    members: dict[str, list[int]] = {}
    for place, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(place)
    if any(len(scores) != len(clusters) for scores in systems):
        raise ValueError("systems and clusters must have the same documents")
    alone = len(members) == len(clusters)
    binary = [alone and all(score in (0.0, 1.0) for score in scores) for scores in systems]
    # Exact sums, in the order of the clusters' names: the order of documents changes nothing.
    sums = np.array(
        [
            [math.fsum(scores[place] for place in members[name]) for name in sorted(members)]
            for scores in systems
        ]
    )
    pairs = list(combinations(range(len(systems)), 2))
    found: dict[tuple[int, int], tuple[float, Test]] = {}
    flipped = [pair for pair in pairs if not (binary[pair[0]] and binary[pair[1]])]
    if flipped:
        one, two = (sums[[pair[place] for pair in flipped]] for place in (0, 1))
        found = {
            pair: (p, "sign-flip")
            for pair, p in zip(flipped, sign_flips(one - two, seed=seed), strict=True)
        }
    for pair in pairs:
        if pair not in found:
            gaps = sums[pair[0]] - sums[pair[1]]
            found[pair] = (mcnemar(int((gaps > 0).sum()), int((gaps < 0).sum())), "mcnemar")
    return [found[pair] for pair in pairs]


def mcnemar(only_first: int, only_second: int) -> float:
    """McNemar's exact test (1947), two-sided, on the documents that one system alone gets right.

    It is 1.0 where there are no such documents.
    """
    from scipy import special

    fewer, discordant = min(only_first, only_second), only_first + only_second
    return min(1.0, 2 * float(special.bdtr(fewer, discordant, 0.5)))


def sign_flips(sums: "NDArray[np.float64]", *, seed: int = 0) -> list[float]:
    """The p-values of differences of means, from each cluster's sum of differences.

    The p is the share of assignments of signs whose total is at least as far from 0 as the observed
    one: of all assignments for up to ``EXACT_UP_TO`` clusters that differ, otherwise of
    ``DRAWS`` random ones and the observed one (Phipson and Smyth 2010).

    Args:
        sums: A row for each comparison, a column for each cluster.
        seed: Of the draws, which are the same for all comparisons.
    """
    import numpy as np

    largest = np.abs(sums).max(axis=1, keepdims=True, initial=0.0)
    sums = np.where(np.abs(sums) > _NOTHING * largest, sums, 0.0)
    moved = (sums != 0).sum(axis=1)
    p_values = np.ones(len(sums))
    many = np.flatnonzero(moved > EXACT_UP_TO)
    exact = np.flatnonzero((moved > 0) & (moved <= EXACT_UP_TO))
    for count in np.unique(moved[exact]).tolist():
        rows = exact[moved[exact] == count]
        kept = np.stack([sums[row][sums[row] != 0] for row in rows])
        p_values[rows] = _shares(kept, seed)
    if len(many):
        p_values[many] = _shares(sums[many], seed)
    return [float(p) for p in p_values]


def _shares(sums: "NDArray[np.float64]", seed: int) -> "NDArray[np.float64]":
    """For rows with the same clusters: the share of assignments that are as extreme."""

    def totals(codes: "NDArray[np.int8]") -> "NDArray[np.float64]":
        result: Any = (1.0 - 2.0 * codes) @ sums.T
        return result  # type: ignore[no-any-return]

    observed = [math.fsum(sorted(row)) for row in sums.tolist()]
    return randomisation_p(totals, sums.shape[1], observed, seed=seed)


def swap_test(
    first: "Mapping[str, NDArray[np.float64]]",
    second: "Mapping[str, NDArray[np.float64]]",
    statistic: "Statistic",
    *,
    seed: int = 0,
) -> float | None:
    """Tests a statistic of sums over clusters, recomputed for every exchange of the systems.

    Args:
        first: By cluster, the sums that the statistic needs: arrays of one shape.
        second: The same of the other system.
        statistic: From sums, with one axis in front, to values (NaN: undefined).
        seed: Of random exchanges.

    Returns:
        The p-value; None if the statistic is undefined on all documents, or there are fewer than
        two clusters.

    Raises:
        ValueError: If the two do not have the same clusters.
    """
    import numpy as np

    if first.keys() != second.keys():
        raise ValueError("the two systems do not have the same clusters")
    names = sorted(first)
    if len(names) < 2:  # noqa: PLR2004
        return None
    both: Any = np.stack([[first[name], second[name]] for name in names])
    total = both.sum(axis=0)
    seen = float(difference_of(total[None], statistic)[0])
    if math.isnan(seen):
        return None
    gaps = both[:, 1] - both[:, 0]
    moved = gaps[np.any(gaps != 0, axis=tuple(range(1, gaps.ndim)))]
    if not len(moved):
        return 1.0

    def totals(codes: "NDArray[np.int8]") -> "NDArray[np.float64]":
        exchanged = np.tensordot(codes.astype(np.float64), moved, axes=1)
        sums = np.stack([total[0] + exchanged, total[1] - exchanged], axis=1)
        return difference_of(sums, statistic)[:, None]

    return float(randomisation_p(totals, len(moved), [seen], seed=seed)[0])


def difference_of(sums: "NDArray[np.float64]", statistic: "Statistic") -> "NDArray[np.float64]":
    """First value minus the second, for sums of shape (..., system, ...) with one axis in front."""
    return statistic(sums[:, 0]) - statistic(sums[:, 1])


def randomisation_p(
    totals: "Callable[[NDArray[np.int8]], NDArray[np.float64]]",
    clusters: int,
    observed: Sequence[float],
    *,
    seed: int = 0,
) -> "NDArray[np.float64]":
    """P-values: the share of assignments whose total is at least as far from 0 as observed.

    Args:
        totals: From assignments to totals, a column for each comparison. An assignment is a row,
            with 1 for each cluster whose two systems are exchanged. An undefined total counts as
            extreme.
        clusters: The number of clusters that differ.
        observed: For each comparison, the total where no systems are exchanged.
        seed: Of the draws, where not all assignments are tried.
    """
    import numpy as np

    least = np.abs(np.asarray(observed)) * (1 - _TIE)
    rows = max(1, _CHUNK // clusters)

    def count_extreme(codes: "NDArray[np.int8]") -> "NDArray[np.int64]":
        found: Any = (~(np.abs(totals(codes)) < least)).sum(axis=0)
        return found  # type: ignore[no-any-return]

    found = np.zeros(len(least), dtype=np.int64)
    if clusters <= EXACT_UP_TO:
        # Exchanging all clusters only changes the sign, so one cluster can be fixed.
        count = 1 << (clusters - 1)
        for start in range(0, count, rows):
            numbers = np.arange(start, min(start + rows, count))[:, None]
            found += count_extreme((numbers >> np.arange(clusters) & 1).astype(np.int8))
        return found / count
    rng = np.random.default_rng(seed)
    for start in range(0, DRAWS, rows):
        size = (min(rows, DRAWS - start), clusters)
        found += count_extreme(rng.integers(0, 2, size=size, dtype=np.int8))
    return (1 + found) / (1 + DRAWS)
